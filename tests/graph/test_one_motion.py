"""Twist edges, joints and fixed edges in one motion model, against linear algebra."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples

import tmkit as tk
from tmkit.errors import ConfigurationError, SceneError, UnknownNameError
from tmkit.graph import (
    Expression,
    Fixed,
    Free,
    Inertia,
    Joint,
    Prismatic,
    Revolute,
    SceneArrays,
    SceneGraph,
    Unstated,
    is_rigid,
    relate,
    rigid_frames,
    rigid_inertia,
    transport,
    twist,
)
from tmkit.relations import SemanticError, SemanticWrench, TwistCoord, WrenchCoord
from tmkit.spatial import Pose, adjoint

SEEDS = st.integers(0, 2**32 - 1)
KINDS = ("fixed", "fixed", "free", "revolute", "prismatic", "unstated")


# --- a dense model


@dataclass
class World:
    """Random scene with the true velocity (6,) of each body at the origin of the root.

    ``says`` has for each frame whether its edge says by itself how it moves, with joint velocities;
    ``knows`` the twist edges.
    """

    scene: SceneGraph
    q: np.ndarray
    qd: np.ndarray
    velocity: dict[str, np.ndarray]
    knows: list[tuple[str, str]] = field(default_factory=list)

    def twist(self, frame: str, reference: str, at: str, axes: str) -> np.ndarray:
        """Return the twist by plain matrices."""
        difference = (
            self.velocity[self.scene.body(frame)] - self.velocity[self.scene.body(reference)]
        )
        point = self.scene.pose(at, relative_to="world", q=self.q).translation
        turn = self.scene.pose(axes, relative_to="world", q=self.q).as_matrix()[:3, :3].T
        return np.concatenate(
            [turn @ (difference[:3] + np.cross(difference[3:], point)), turn @ difference[3:]]
        )

    def crossed(self) -> set[str]:
        """Return the frames below edges of poses over which a twist edge leads."""
        over: set[str] = set()
        for head, body in self.knows:
            on = next(f for f in self.scene.frame_names if self.scene.body(f) == body)
            over |= {head, *self.scene.ancestors(head)} ^ {on, *self.scene.ancestors(on)}
        return over

    def is_known(self, frame: str, reference: str, *, with_qd: bool) -> bool:
        """Return whether a walk over bodies by twist edges and pose edges leads to a body."""
        scene, over = self.scene, self.crossed()
        near = [(scene.body(head), body) for head, body in self.knows]
        for name in scene.frame_names:
            parent = scene.parent(name)
            joint = scene.joint(name)
            is_stated = joint.is_stated and (with_qd or joint.type == "fixed")
            if parent is not None and name not in over and is_stated:
                near.append((scene.body(name), scene.body(parent)))
        reached = {scene.body(frame)}
        while more := {
            b for pair in near for a, b in (pair, pair[::-1]) if a in reached and b not in reached
        }:
            reached |= more
        return scene.body(reference) in reached


def path_edges(scene: SceneGraph, frame: str, reference: str) -> list[str]:
    """Return the frames below the edges between two frames."""
    return sorted({frame, *scene.ancestors(frame)} ^ {reference, *scene.ancestors(reference)})


def random_world(seed: int) -> World:
    """Return a tree with edges of all kinds and true twist edges."""
    rng = np.random.default_rng(seed)
    scene, kinds = SceneGraph("world"), dict[str, str]()
    for k in range(int(rng.integers(3, 14))):
        parent = str(rng.choice(scene.frame_names))
        pose = Pose.exp(rng.normal(size=6))
        kinds[f"f{k}"] = kind = str(rng.choice([*KINDS, "mimic", "same"]))
        axis = rng.normal(size=3)
        leaders = [f for f, known in kinds.items() if known == "revolute" and f != f"f{k}"]
        joints: dict[str, Joint] = {
            "free": Free(),
            "revolute": Revolute(axis),
            "prismatic": Prismatic(axis),
        }
        joint = {**joints, "unstated": Unstated()}.get(kind, Fixed())
        if kind == "mimic" and leaders:
            joint = Revolute(
                axis, mimic=tk.Mimic(scene.joint(leaders[0]).name, multiplier=-0.5, offset=0.2)
            )
        scene = scene.add_frame(
            f"f{k}",
            parent,
            pose=pose,
            joint=joint,
            body=scene.body(parent) if kind == "same" else None,
        )
    q, qd = rng.normal(size=(2, len(scene.zero_configuration())))
    velocity = {"world": np.zeros(6)}
    for name in scene.frame_names[1:]:
        above, body = velocity[scene.body(str(scene.parent(name)))], scene.body(name)
        if body in velocity:
            continue
        at = scene.pose(name, relative_to="world", q=q)
        own, joint = np.zeros(6), scene.joint(name)
        if (joint.type == "free" or not joint.is_stated) and rng.random() < 0.5:
            own = rng.normal(size=6)
        elif joint.type in ("revolute", "prismatic"):
            step = 1e-3  # exact: the joint's twist is the same all along
            before, after = (
                scene.pose(name, relative_to=str(scene.parent(name)), q=q + s * qd)
                for s in (0.0, step)
            )
            own = np.array((before.inverse() @ after).log()) / step
        velocity[body] = above + adjoint(at) @ own
    world = World(scene, q, qd, velocity)
    for _ in range(int(rng.integers(0, 5))):
        head, reference = (str(rng.choice(scene.frame_names)) for _ in range(2))
        vector = world.twist(head, reference, head, head)
        try:
            world.scene = world.scene.set_twist(
                head, vector, relative_to_body=scene.body(reference)
            )
        except SceneError:
            continue
        world.knows = [known for known in world.knows if known[0] != head] + [
            (head, scene.body(reference))
        ]
    return world


@settings(max_examples=scaled_examples(2.0))
@given(SEEDS)
def test_any_motion_is_that_of_plain_matrices(seed: int) -> None:
    """What is answered is right, and what can be known is answered: at any point, in any axes."""
    world = random_world(seed)
    rng, scene = np.random.default_rng(seed + 1), world.scene
    for _ in range(6):
        frame, reference, at, axes = (str(rng.choice(scene.frame_names)) for _ in range(4))
        truth = world.twist(frame, reference, at, axes)
        over = world.crossed()
        moving = [f for f in scene.frame_names if scene.joint(f).type == "free" and f not in over]
        is_told = all(np.allclose(world.twist(f, str(scene.parent(f)), f, f), 0.0) for f in moving)
        for qd in (world.qd, None):
            if not world.is_known(frame, reference, with_qd=qd is not None):
                unknown = [
                    f
                    for f in path_edges(scene, frame, reference)
                    if not scene.joint(f).is_stated and f not in over
                ]
                reason = (
                    f"edge between '({'|'.join(unknown)})' and"
                    if unknown
                    else "a path of twists leads from body"
                )
                with pytest.raises(SemanticError, match=reason):
                    twist(
                        scene,
                        frame,
                        relative_to=reference,
                        q=world.q,
                        qd=qd,
                        expression=Expression(at=at, axes=axes),
                    )
                continue
            found = twist(
                scene,
                frame,
                relative_to=reference,
                q=world.q,
                qd=qd,
                expression=Expression(at=at, axes=axes),
            )
            assert found.coord == TwistCoord.from_names(
                point=at, body=scene.body(frame), ref_body=scene.body(reference), coord=axes
            )
            # with joint velocities, free edges that no twist edge tells of stand still
            if qd is None or is_told:
                np.testing.assert_allclose(
                    found.representation.vector, truth, atol=1e-9 * (1 + np.abs(truth).max())
                )
        if is_told and world.is_known(frame, reference, with_qd=True):
            at_q = scene.at(world.q, world.qd)
            same = world.twist(frame, reference, frame, axes)
            np.testing.assert_allclose(
                at_q.twist(frame, relative_to=reference, axes=axes), same, atol=1e-8
            )


@settings(max_examples=scaled_examples(0.5))
@given(SEEDS)
def test_what_is_rigid_does_not_move(seed: int) -> None:
    """Rigid groups are an equivalence with zero twists, also after two integration steps."""
    world = random_world(seed)
    scene = world.scene
    for frame in scene.frame_names:
        together = rigid_frames(scene, frame)
        assert frame in together
        for other in scene.frame_names:
            assert is_rigid(scene, frame, other) == (other in together)
        for other in together:
            assert set(rigid_frames(scene, other)) == set(together)
            assert not twist(scene, frame, relative_to=other).representation.vector.any()


@settings(max_examples=scaled_examples(1.0))
@given(SEEDS)
def test_arrays_answer_with_the_same_bits(seed: int) -> None:
    """Twists at any point and in any axes equal the model, or both raise an error."""
    world = random_world(seed)
    rng, scene = np.random.default_rng(seed + 2), world.scene
    arrays = SceneArrays(scene)
    arrays.forward(world.q)
    for _ in range(6):
        frame, reference, at, axes = (str(rng.choice(scene.frame_names)) for _ in range(4))
        for qd in (world.qd, None):
            if not world.is_known(frame, reference, with_qd=qd is not None):
                with pytest.raises(
                    SceneError, match=f"the motion of frame '{frame}' relative to|is unknown, since"
                ):
                    arrays.twist(frame, relative_to=reference, at=at, axes=axes, qd=qd)
                continue
            expected = twist(
                scene,
                frame,
                relative_to=reference,
                q=world.q,
                qd=qd,
                expression=Expression(at=at, axes=axes),
            )
            found = arrays.twist(frame, relative_to=reference, at=at, axes=axes, qd=qd)
            assert found.tobytes() == expected.representation.vector.tobytes()
            assert (
                twist(
                    arrays,
                    frame,
                    relative_to=reference,
                    qd=qd,
                    expression=Expression(at=at, axes=axes),
                )
                == expected
            )
    if world.is_known("f0", "world", with_qd=True):
        given_q = arrays.twist("f0", q=2.0 * world.q, qd=world.qd)
        assert (
            given_q.tobytes()
            == twist(scene, "f0", q=2.0 * world.q, qd=world.qd).representation.vector.tobytes()
        )


# --- known answers


def test_arrays_reject_unknown_motions() -> None:
    """The frame, the number of joint velocities, and the tree."""
    arrays = SceneArrays(cart_with_camera().add_root("moon"))
    with pytest.raises(UnknownNameError, match="unknown frame 'camra'; did you mean 'camera'"):
        arrays.twist("camra")
    with pytest.raises(ConfigurationError, match="qd must hold 1 numbers"):
        arrays.twist("camera", qd=[1.0, 2.0])
    with pytest.raises(
        SceneError, match="the motion of frame 'camera' relative to 'moon' is unknown"
    ):
        arrays.twist("camera", relative_to="moon", qd=[1.0])
    with pytest.raises(SceneError, match=r"arrays have no twist at a stamp; freeze\(\) them first"):
        twist(arrays, "camera", stamp=1.0)


def cart_with_camera() -> SceneGraph:
    """Return a cart at 2 m/s and 1 rad/s, with a camera 0.5 m from a pan joint."""
    scene = SceneGraph("world").add_frame("cart", "world", pose=Pose([1.0, 0, 0]), joint=Free())
    scene = scene.add_frame("pan", "cart", joint=Revolute([0, 0, 1])).add_frame(
        "mount", "pan", pose=Pose([0.5, 0, 0])
    )
    scene = scene.add_frame("camera", "mount").add_frame(
        "ball", "world", pose=Pose([3.0, 0, 0]), joint=Free()
    )
    return scene.set_twist("cart", [2, 0, 0, 0, 0, 1], relative_to_body="world")


def test_a_camera_on_a_moving_base() -> None:
    """Base, joint and mount in one call: 2 m/s forward, and 0.5 m times 3 rad/s to the side."""
    scene = cart_with_camera()
    found = twist(scene, "camera", q=[0.0], qd=[2.0])
    np.testing.assert_allclose(found.representation.vector, [2, 1.5, 0, 0, 0, 3], atol=1e-12)
    np.testing.assert_allclose(
        scene.at([0.0], [2.0]).twist("camera"), [2, 1.5, 0, 0, 0, 3], atol=1e-12
    )
    assert not twist(scene, "camera", relative_to="pan").representation.vector.any()
    rolling = scene.set_twist("ball", [0, 1, 0, 0, 0, 0], relative_to_body="world")
    seen = twist(
        rolling,
        "camera",
        relative_to="ball",
        q=[np.pi / 2],
        qd=[2.0],
        expression=Expression(at="cart", axes="camera"),
    )
    np.testing.assert_allclose(seen.representation.vector, [-1, -2, 0, 0, 0, 3], atol=1e-12)


def test_what_is_not_known_is_said() -> None:
    """Missing velocities, twists, names and configurations raise errors."""
    scene = cart_with_camera()
    with pytest.raises(SemanticError, match=r"joint 'pan' is between them\); pass q and qd"):
        twist(scene, "camera", q=[0.0])
    with pytest.raises(
        SemanticError,
        match=r"from body 'ball' to body 'cart' \(there is none\); add the missing twist",
    ):
        twist(scene.remove_twist("cart"), "cart", relative_to="ball")
    with pytest.raises(UnknownNameError, match="did you mean 'camera'"):
        twist(scene, "camra", q=[0.0], qd=[1.0])
    with pytest.raises(ConfigurationError, match="configuration q is needed"):
        twist(scene, "cart", expression=Expression(at="camera"))
    with pytest.raises(
        SemanticError, match=r"from body 'moon' to body 'cart' \(nor do poses\); join the trees"
    ):
        twist(scene.add_root("moon"), "cart", relative_to="moon")


def test_a_grasp_joins_rigidly_until_it_lets_go() -> None:
    """What the hand holds moves with it, and has its mass; on the table it does not."""
    scene = tk.load_scene("panda_table").add_frame("cup", "table", pose=Pose([0, 0, 0.1]))
    scene = scene.set_inertia("cup", Inertia(0.4, [0, 0, 0.05], matrix=np.diag([1e-4, 2e-4, 3e-4])))
    q, qd = scene.zero_configuration(), np.full(len(scene.zero_configuration()), 0.3)
    held = scene.reparent("cup", "panda_hand", pose=Pose([0, 0, 0.1]))
    assert is_rigid(held, "cup", "panda_hand")
    assert not is_rigid(scene, "cup", "panda_hand")
    assert "panda_link7" in rigid_frames(held, "cup")
    np.testing.assert_allclose(
        twist(held, "cup", q=q, qd=qd).representation.vector,
        twist(
            held, "panda_hand", q=q, qd=qd, expression=Expression(at="cup")
        ).representation.vector,
        atol=1e-12,
    )
    alone, with_cup = rigid_inertia(scene, "panda_hand"), rigid_inertia(held, "panda_hand")
    assert alone is not None
    assert with_cup is not None
    assert with_cup.mass == pytest.approx(alone.mass + 0.4)
    np.testing.assert_allclose(
        with_cup.mass * with_cup.center,
        alone.mass * alone.center + 0.4 * np.array([0, 0, 0.15]),
        atol=1e-12,
    )
    assert rigid_inertia(SceneGraph("world"), "world") is None


def test_masses_together_are_those_of_their_points() -> None:
    """The inertia of two rigid bodies is that of all their point masses, from any frame."""
    rng = np.random.default_rng(3)
    scene, points = SceneGraph("world").add_frame("a", "world", joint=Free()), []
    for name, parent in (("b", "a"), ("c", "b")):
        scene = scene.add_frame(name, parent, pose=Pose.exp(rng.normal(size=6)))
    for name in ("a", "c"):
        own, masses = rng.normal(size=(5, 3)), rng.uniform(0.1, 1.0, 5)
        center = masses @ own / masses.sum()
        off = own - center
        about = sum(
            m * (d @ d * np.eye(3) - np.outer(d, d)) for m, d in zip(masses, off, strict=True)
        )
        scene = scene.set_inertia(name, Inertia(masses.sum(), center, matrix=about))
        at = scene.pose(name, relative_to="b")
        points += [(m, at.apply(p)) for m, p in zip(masses, own, strict=True)]
    found = rigid_inertia(scene, "b")
    assert found is not None
    mass = sum(m for m, _ in points)
    center = np.sum([m * p for m, p in points], axis=0) / mass
    about = np.sum(
        [
            m * ((p - center) @ (p - center) * np.eye(3) - np.outer(p - center, p - center))
            for m, p in points
        ],
        axis=0,
    )
    assert found.mass == pytest.approx(mass)
    np.testing.assert_allclose(found.center, center, atol=1e-12)
    np.testing.assert_allclose(found.matrix, about, atol=1e-12)


def test_a_wrench_goes_to_the_tool_on_another_link() -> None:
    """A wrench at another point has another moment and the same power."""
    scene = tk.load_scene("panda_table")
    wrench = SemanticWrench(
        WrenchCoord("panda_link8|panda_link8", "world", "[panda_link8]"), [1, 2, 3, 0.1, 0.2, 0.3]
    )
    at_tool = transport(scene, wrench, point="panda_grasptarget", axes="panda_grasptarget")
    assert at_tool.coord.body == scene.body("panda_grasptarget")
    way = scene.pose("panda_grasptarget", relative_to="panda_link8")
    force, torque = np.array([1.0, 2, 3]), np.array([0.1, 0.2, 0.3])
    turn = way.as_matrix()[:3, :3].T
    expected = [*(turn @ force), *(turn @ (torque - np.cross(way.translation, force)))]
    np.testing.assert_allclose(at_tool.representation.vector, expected, atol=1e-12)
    q, qd = scene.zero_configuration(), np.ones(len(scene.zero_configuration()))
    powers = [
        float(
            w.representation.vector
            @ twist(
                scene,
                "panda_hand",
                q=q,
                qd=qd,
                expression=Expression(at=w.coord.point, axes=w.coord.coord),
            ).representation.vector
        )
        for w in (wrench, at_tool)
    ]
    assert powers[0] == pytest.approx(powers[1], rel=1e-12)
    with pytest.raises(SemanticError, match="frame 'panda_link7' is not fixed to its parent"):
        transport(scene, wrench, point="panda_link5")
    coord = TwistCoord("panda_link8|panda_link8", "world", "[world]")
    np.testing.assert_allclose(
        relate(scene, coord, q=q, qd=qd).representation.vector,
        twist(scene, "panda_link8", q=q, qd=qd).representation.vector,
    )
