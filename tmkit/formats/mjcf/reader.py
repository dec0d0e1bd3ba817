"""Models of MuJoCo (MJCF), compiled by MuJoCo itself and taken over frame by frame.

A body becomes a frame of its name. A joint is on the frame of its body; where a body has several,
or one away from its origin, each has a frame ``BODY/JOINT`` of its own before it. A hinge without
limits is continuous, a ball is three hinges, a free joint a free edge. Sites are frames. Joints
that an equality couples linearly mimic each other. Pairs that MuJoCo never checks may touch: parent
and child, excluded ones, those whose collision masks do not meet.

MuJoCo reads nothing from the disk: included files, meshes and heights are found by the rules of all
scene files, and handed to it. What a scene does not have (actuators, sensors, tendons, cameras,
textures, ...) is omitted, with a note for each kind. The extra ``formats`` is needed.
"""

from __future__ import annotations

import itertools
import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tmkit._support.extras import importing
from tmkit._support.limits import is_file, read_bytes
from tmkit._support.source_location import Note, SourceLocation
from tmkit._support.xml import XmlElement, read_xml
from tmkit.errors import FileFormatError
from tmkit.formats.mesh.package_uris import VISUAL_AS_COLLISION, PackageResolver
from tmkit.formats.mesh.solids import ellipsoid
from tmkit.formats.spec.model import AllowedPairSpec, FrameSpec, SceneSpecification
from tmkit.formats.spec.parts import (
    GeometrySpec,
    InertiaSpec,
    JointSpec,
    MimicSpec,
    PoseSpec,
    PrimitiveSpec,
)
from tmkit.graph import HeightField, Mesh, Plane, Shape

if TYPE_CHECKING:
    from lxml.etree import _Element

_DROPPED = (
    "actuator",
    "sensor",
    "tendon",
    "keyframe",
    "custom",
    "visual",
    "statistic",
    "skin",
    "deformable",
    "flex",
    "extension",
    "camera",
    "light",
    "composite",
    "flexcomp",
    "plugin",
    "texture",
    "pair",
    "model",
)
_SILENT = ("visual", "statistic", "custom", "keyframe")  # no part of the world that they describe
_MOST_COPIES = 10_000  # bodies that replicate may make
_DEEPEST = 32  # includes
_MOST_PAIRS = 100_000  # of bodies, whose masks are compared
_HIDDEN = 3  # geoms of this group and above are not drawn, by MuJoCo's usual settings


def read_mjcf(path: Path, *, packages: PackageResolver, note: Note) -> SceneSpecification:
    """Read a model, with all that it includes; MuJoCo must be installed and take it."""
    with importing("mujoco", "formats", f"{path}: reading MJCF needs"):
        import mujoco

    source = _Source(read_xml(path, root="mujoco", note=note), packages, note)
    text, assets = source.prepared()
    try:
        with warnings.catch_warnings():  # about settings that no scene has
            warnings.simplefilter("ignore")
            specification = mujoco.MjSpec.from_string(text, assets=assets)
            model = specification.compile()
    except (ValueError, RuntimeError) as error:
        reason = re.sub(
            r"\s+", " ", re.sub(r",?\s*(\(?line \d+.*)$", "", str(error).split("\n")[0])
        )
        place = source.place_in(str(error))
        raise place.error(f"MuJoCo refuses the model: {reason}") from None
    _check_ranges(specification, source)
    return _Model(mujoco, model, source).specification()


def _check_ranges(specification: Any, source: _Source) -> None:
    """Reject ranges that MuJoCo ignores without a word: those whose first number is not below the second."""
    for joint in specification.joints:
        lower, upper = map(float, joint.range)
        is_written = (lower, upper) != (0.0, 0.0)
        if is_written and lower >= upper and joint.limited:
            place = source.places.get(("joint", joint.name), source.root.place)
            reason = (
                f"the range of joint '{joint.name}' goes from {lower:g} to {upper:g}; expected"
                " lower < upper"
            )
            raise place.error(f'{reason}, or limited="false"')


@dataclass(slots=True)
class _Source:
    """The text of a model and of what it includes, before it is compiled."""

    root: XmlElement
    packages: PackageResolver
    note: Note
    places: dict[tuple[str, str], SourceLocation] = field(default_factory=dict)  # by kind and name
    included: set[Path] = field(default_factory=set)

    def prepared(self) -> tuple[str, dict[str, bytes]]:
        """Return the text without what a scene does not have, and the files that it names."""
        from lxml import etree

        top = self.root.element
        self.include(self.root, ())
        dropped: dict[str, SourceLocation] = {}
        counts: Counter[str] = Counter()
        for element in list(top.iter(*_DROPPED)):
            kind = str(element.tag)
            parent = element.getparent()
            if parent is None or any(
                str(above.tag) in _DROPPED for above in element.iterancestors()
            ):
                continue
            if parent.tag == "default" and kind in ("camera", "light", "pair"):
                continue
            dropped.setdefault(kind, self.place(element))
            counts[kind] += max(1, len(element)) if kind in ("actuator", "sensor", "tendon") else 1
            parent.remove(element)
        for element in list(top.findall(".//equality/*")):
            if element.tag != "joint":
                dropped.setdefault("equality", self.place(element))
                counts["equality"] += 1
                _remove(element)
        for kind, place in dropped.items():
            if kind not in _SILENT:
                self.note(
                    place,
                    f"<{kind}> has no part in a scene, and is omitted ({counts[kind]} in all)",
                )
        self.check_copies(top)
        for element in top.iter("material"):
            for layer in list(element):
                element.remove(layer)
            element.attrib.pop("texture", "")
        for kind in ("body", "joint", "geom", "site"):
            for element in top.iter(kind):
                if name := element.get("name"):
                    self.places.setdefault((kind, name), self.place(element))
        assets = dict(self.assets(top))
        for element in top.iter():
            element.attrib.pop("_file", "")
        return etree.tostring(top, encoding="unicode"), assets

    def include(self, file: XmlElement, including: tuple[Path, ...]) -> None:
        """Put the content of included files in their places."""
        for element in list(file.element.iter("include")):
            named = XmlElement(element, file.file)
            path = self.found(
                named, element.get("file", ""), (self.root.path.parent, file.path.parent)
            )
            if path in including or path == self.root.path or len(including) > _DEEPEST:
                raise named.place.error(
                    f"'{element.get('file')}' includes itself, or includes are too deep"
                )
            if path in self.included:
                raise named.place.error(
                    f"'{element.get('file')}' is already included, and MuJoCo takes a file once"
                )
            self.included.add(path)
            self.packages.count_include(named.place)
            other = read_xml(path, root=("mujoco", "mujocoinclude"), note=self.note)
            self.include(other, (*including, path))
            for child in list(other.element):
                if isinstance(child.tag, str) and "_file" not in child.attrib:
                    child.set("_file", str(path))
                element.addprevious(child)
            _remove(element)

    def found(self, element: XmlElement, file: str, folders: tuple[Path, ...]) -> Path:
        """Return a file that is named relative to one of the folders."""
        for folder in folders[:-1]:
            if is_file(folder / file):
                return self.packages.resolve(file, folder=folder, place=element.place)
        return self.packages.resolve(file, folder=folders[-1], place=element.place)

    def check_copies(self, top: _Element) -> None:
        """Refuse a model whose replicas would fill the memory."""
        total = 0
        for element in top.iter("replicate"):
            copies = 1
            for one in (element, *element.iterancestors("replicate")):
                count = one.get("count", "1").strip()
                copies *= int(count) if count.isdigit() and len(count) < 9 else _MOST_COPIES + 1
            total += copies * (1 + sum(1 for _ in element.iter("body", "geom")))
            if total > _MOST_COPIES:
                raise self.place(element).error(
                    f"<replicate> makes more than {_MOST_COPIES} bodies and shapes"
                )

    def assets(self, top: _Element) -> Iterator[tuple[str, bytes]]:
        """Yield the files of meshes and heights under names of their own, which the elements then have."""
        settings = {"meshdir": "", "assetdir": "", "texturedir": "", "strippath": "false"}
        for compiler in top.iter("compiler"):
            settings |= {
                key: str(compiler.attrib.pop(key)) for key in settings if key in compiler.attrib
            }
        meshes, strip = settings["meshdir"] or settings["assetdir"], settings["strippath"] == "true"
        number = itertools.count(1)
        for element in list(top.iter("mesh", "hfield")):
            file = element.get("file")
            if file is None or next(element.iterancestors("default"), None) is not None:
                continue
            place = self.place(element)
            name = Path(file).name if strip else file
            folder = self.root.path.parent
            path = self.packages.resolve_mesh(
                str(Path(meshes, name)) if meshes else name, folder=folder, place=place
            )
            limit = self.packages.limits.mesh_bytes
            data = read_bytes(path, limit=limit, error=partial(_unreadable, place, file))
            if "name" not in element.attrib:
                element.set("name", Path(name).stem)
            asset = f"asset{next(number)}{path.suffix}"
            element.set("file", asset)
            yield asset, data

    def place(self, element: _Element) -> SourceLocation:
        """Return where an element stands, in the file from which it comes."""
        above = itertools.chain([element], element.iterancestors())
        file = next((one.attrib["_file"] for one in above if "_file" in one.attrib), self.root.path)
        return SourceLocation(str(file), cast("int | None", element.sourceline))

    def place_in(self, message: str) -> SourceLocation:
        """Return where something stands that a message of MuJoCo names."""
        named = re.search(r"Element name '([^']+)'|'([^']+)'", message)
        name = (named[1] or named[2]) if named else ""
        return next(
            (place for (_, one), place in self.places.items() if one == name), self.root.place
        )


class _Model:
    """A compiled model."""

    def __init__(self, mujoco: Any, model: Any, source: _Source) -> None:
        self.mujoco, self.model, self.source = mujoco, model, source
        self.names = {kind: self.named(kind) for kind in ("body", "joint", "site", "geom")}
        self.mesh = cache(self._mesh)
        self.field = cache(self._field)

    def named(self, kind: str) -> list[str]:
        """Return the names of all of a kind; what has none is numbered."""
        objects = {"body": "nbody", "joint": "njnt", "site": "nsite", "geom": "ngeom"}
        object_type = getattr(self.mujoco.mjtObj, f"mjOBJ_{kind.upper()}")
        count = getattr(self.model, objects[kind])
        given = [self.mujoco.mj_id2name(self.model, object_type, number) for number in range(count)]
        taken = {*given}
        names = []
        for number, name in enumerate(given):
            made = name or f"{kind}_{number}"
            while not name and made in taken:
                made += "_"
            names.append(made)
        return names

    def place(self, kind: str, number: int) -> SourceLocation:
        return self.source.places.get((kind, self.names[kind][number]), self.source.root.place)

    def specification(self) -> SceneSpecification:
        mimics = dict(self.mimics())
        frames: list[FrameSpec] = [self.world()]
        for body in range(1, self.model.nbody):
            frames += self.body(body, mimics)
        taken = {frame.name for frame in frames}
        for site in range(self.model.nsite):
            name = self.names["site"][site]
            while name in taken:
                name += "_site"
            taken.add(name)
            pose = _pose(self.model.site_pos[site], self.model.site_quat[site])
            parent = self.names["body"][self.model.site_bodyid[site]]
            frames.append(FrameSpec(name, parent, self.place("site", site), pose))
        return SceneSpecification(tuple(frames), tuple(self.allowed()))

    def world(self) -> FrameSpec:
        return FrameSpec("world", None, self.source.root.place, geometry=tuple(self.geometry(0)))

    def body(self, number: int, mimics: dict[int, MimicSpec]) -> Iterator[FrameSpec]:
        """Yield the frame of a body, after those of joints that are not at its origin."""
        model = self.model
        name, place = self.names["body"][number], self.place("body", number)
        parent = self.names["body"][model.body_parentid[number]]
        position, turn = np.array(model.body_pos[number]), np.array(model.body_quat[number])
        first = model.body_jntadr[number]
        joints = [] if first < 0 else range(first, first + model.body_jntnum[number])
        content: dict[str, Any] = {
            "geometry": tuple(self.geometry(number)),
            "inertia": self.inertia(number, place),
        }
        steps = [step for joint in joints for step in self.steps(joint, mimics)]
        for index, (joint_name, joint, anchor) in enumerate(steps):
            is_last = index == len(steps) - 1 and not anchor.any()
            frame = name if is_last else f"{name}/{joint_name}"
            pose = _pose(position + _turned(turn, anchor), turn)
            made = FrameSpec(frame, parent, place, pose, replace(joint, name=joint_name))
            if is_last:
                yield replace(made, **content)
                return
            yield made
            parent, position, turn = frame, -anchor, np.array([1.0, 0.0, 0.0, 0.0])
        yield FrameSpec(name, parent, place, _pose(position, turn), **content)

    def steps(
        self, joint: int, mimics: dict[int, MimicSpec]
    ) -> Iterator[tuple[str, JointSpec, np.ndarray]]:
        """Yield the joints of one degree of freedom that a joint is made of, with its anchor."""
        model, place, name = self.model, self.place("joint", joint), self.names["joint"][joint]
        kinds = self.mujoco.mjtJoint
        kind, anchor = model.jnt_type[joint], np.array(model.jnt_pos[joint])
        if kind == kinds.mjJNT_FREE:
            yield name, JointSpec("free", place=place), np.zeros(3)
            return
        limited = bool(model.jnt_limited[joint])
        low, high = model.jnt_range[joint].tolist() if limited else (-math.inf, math.inf)
        dof = model.jnt_dofadr[joint]
        friction, damping = (
            float(model.dof_frictionloss[dof]),
            float(np.ravel(model.dof_damping[dof])[0]),
        )
        if kind == kinds.mjJNT_BALL:
            self.source.note(
                place, f"the ball joint '{name}' is read as three hinges, '{name}/x', '/y' and '/z'"
            )
            bounds = (-high, high) if limited else (-math.inf, math.inf)
            for letter, axis in zip("xyz", np.eye(3), strict=True):
                spec = JointSpec(
                    "revolute", axis=_triple(axis), lower=bounds[0], upper=bounds[1], place=place
                )
                yield f"{name}/{letter}", spec, anchor if letter == "x" else np.zeros(3)
            return
        word = "prismatic" if kind == kinds.mjJNT_SLIDE else "revolute" if limited else "continuous"
        spec = JointSpec(
            word,
            axis=_triple(model.jnt_axis[joint]),
            lower=low,
            upper=high,
            effort=self.effort(joint),
            damping=damping,
            friction=friction,
            offset=-float(model.qpos0[model.jnt_qposadr[joint]]),
            mimic=mimics.get(joint),
            place=place,
        )
        yield name, spec, anchor

    def effort(self, joint: int) -> float:
        """Return the largest force of all actuators together on a joint, newtons or newton metres."""
        limited = bool(self.model.jnt_actfrclimited[joint])
        return max(map(abs, self.model.jnt_actfrcrange[joint].tolist())) if limited else math.inf

    def mimics(self) -> Iterator[tuple[int, MimicSpec]]:
        """Yield the joints that an equality couples linearly to another."""
        model = self.model
        for number in range(model.neq):
            follower, leader = int(model.eq_obj1id[number]), int(model.eq_obj2id[number])
            place = self.place("joint", follower)
            c0, c1, *rest = model.eq_data[number][:5].tolist()
            is_active = bool(model.eq_active0[number])
            if leader < 0 or any(rest) or not is_active:
                text = "is fixed" if leader < 0 else "follows another by a polynomial"
                text = text if is_active else "follows another, which is not active,"
                self.source.note(
                    place,
                    f"the equality by which '{self.names['joint'][follower]}' {text} is omitted",
                )
                continue
            zero, zero_of_leader = (
                model.qpos0[model.jnt_qposadr[joint]] for joint in (follower, leader)
            )
            offset = c0 + float(zero) - c1 * float(zero_of_leader)
            yield follower, MimicSpec(self.names["joint"][leader], c1, offset, place)

    def inertia(self, body: int, place: SourceLocation) -> InertiaSpec | None:
        model = self.model
        if not model.body_mass[body]:
            return None
        x, y, z = model.body_inertia[body].tolist()
        origin = _pose(model.body_ipos[body], model.body_iquat[body])
        return InertiaSpec(float(model.body_mass[body]), place, origin, (x, 0.0, 0.0, y, 0.0, z))

    def geometry(self, body: int) -> Iterator[GeometrySpec]:
        model = self.model
        first = model.body_geomadr[body]
        for geom in range(first, first + model.body_geomnum[body]) if first >= 0 else ():
            place = self.place("geom", geom)
            material = model.geom_matid[geom]
            color = model.geom_rgba[geom]
            if material >= 0 and np.allclose(color, [0.5, 0.5, 0.5, 1.0]):
                color = model.mat_rgba[material]
            r, g, b, a = map(float, color)
            collision = self.mask(geom) != (0, 0)
            visual = a > 0.0 and not (collision and model.geom_group[geom] >= _HIDDEN)
            shape = self.shape(geom, place)
            if shape is None or not (visual or collision):
                continue
            pose = _pose(model.geom_pos[geom], model.geom_quat[geom])
            is_mesh = not isinstance(shape, PrimitiveSpec) and shape.kind == "mesh"
            yield GeometrySpec(
                shape,
                place,
                pose,
                color=(r, g, b, a),
                visual=visual,
                collision=collision,
                level="hull" if is_mesh and collision else None,
                friction=float(model.geom_friction[geom][0]) if collision else None,
            )

    def shape(self, geom: int, place: SourceLocation) -> PrimitiveSpec | Shape | None:
        model, kinds = self.model, self.mujoco.mjtGeom
        kind, (x, y, z) = int(model.geom_type[geom]), model.geom_size[geom].tolist()
        simple: dict[int, Callable[[], PrimitiveSpec | Shape]] = {
            int(kinds.mjGEOM_BOX): lambda: PrimitiveSpec("box", (2 * x, 2 * y, 2 * z)),
            int(kinds.mjGEOM_SPHERE): lambda: PrimitiveSpec("sphere", (x,)),
            int(kinds.mjGEOM_CYLINDER): lambda: PrimitiveSpec("cylinder", (x, 2 * y)),
            int(kinds.mjGEOM_CAPSULE): lambda: PrimitiveSpec("capsule", (x, 2 * y)),
            int(kinds.mjGEOM_PLANE): Plane,
            int(kinds.mjGEOM_MESH): lambda: self.mesh(int(model.geom_dataid[geom])),
            int(kinds.mjGEOM_HFIELD): lambda: self.field(int(model.geom_dataid[geom])),
        }
        if kind == int(kinds.mjGEOM_ELLIPSOID):
            self.source.note(
                place,
                f"the ellipsoid '{self.names['geom'][geom]}' is read as a mesh of 320 triangles",
            )
            return ellipsoid((x, y, z))
        if kind not in simple:
            self.source.note(
                place, f"the shape of '{self.names['geom'][geom]}' is of a kind that is not read"
            )
            return None
        return simple[kind]()

    def _mesh(self, number: int) -> Shape:
        model = self.model
        vertices, faces = model.mesh_vertadr[number], model.mesh_faceadr[number]
        name = self.mujoco.mj_id2name(model, self.mujoco.mjtObj.mjOBJ_MESH, number) or ""
        return Mesh(
            model.mesh_vert[vertices : vertices + model.mesh_vertnum[number]].astype(np.float64),
            model.mesh_face[faces : faces + model.mesh_facenum[number]],
            source=name,
        )

    def _field(self, number: int) -> Shape:
        model = self.model
        rows, columns, at = (
            model.hfield_nrow[number],
            model.hfield_ncol[number],
            model.hfield_adr[number],
        )
        x, y, height, depth = model.hfield_size[number].tolist()
        heights = (
            model.hfield_data[at : at + rows * columns].reshape(rows, columns).astype(np.float64)
            * height
        )
        return HeightField(heights, size=[2 * x, 2 * y], floor=-depth)

    def allowed(self) -> Iterator[AllowedPairSpec]:
        """Yield the pairs of bodies that MuJoCo never checks."""
        model, place, names = self.model, self.source.root.place, self.names["body"]
        seen: set[tuple[int, int]] = set()
        for signature in model.exclude_signature.tolist():
            seen.add((signature >> 16, signature & 0xFFFF))
            yield AllowedPairSpec(
                names[signature >> 16], names[signature & 0xFFFF], "excluded", place
            )
        masks = {body: self.masks(body) for body in range(model.nbody)}
        solid = [body for body, found in masks.items() if found]
        for body in solid:
            above = int(model.body_parentid[model.body_weldid[body]])
            # MuJoCo checks them only where the one above is fixed to the world
            if above and (above, body) not in seen:
                seen.add((above, body))
                yield AllowedPairSpec(names[above], names[body], "adjacent", place)
        if len(set().union(*masks.values())) < 2 or len(solid) ** 2 > _MOST_PAIRS:
            return
        for one, other in itertools.combinations(solid, 2):
            meets = any(a & d or c & b for a, b in masks[one] for c, d in masks[other])
            if not meets and (one, other) not in seen:
                yield AllowedPairSpec(names[one], names[other], "masks", place)

    def masks(self, body: int) -> set[tuple[int, int]]:
        model = self.model
        first = model.body_geomadr[body]
        geoms = range(first, first + model.body_geomnum[body]) if first >= 0 else ()
        return {mask for mask in map(self.mask, geoms) if any(mask)}

    def mask(self, geom: int) -> tuple[int, int]:
        """Return the collision masks of a geom; where visual shapes collide, those by default for a body without."""
        model, body = self.model, self.model.geom_bodyid[geom]
        own = int(model.geom_contype[geom]), int(model.geom_conaffinity[geom])
        if any(own) or self.source.packages.meshes != VISUAL_AS_COLLISION:
            return own
        first = model.body_geomadr[body]
        of_body = range(first, first + model.body_geomnum[body])
        collides = any(
            model.geom_contype[other] or model.geom_conaffinity[other] for other in of_body
        )
        return own if collides else (1, 1)


def _remove(element: _Element) -> None:
    parent = element.getparent()
    if parent is not None:
        parent.remove(element)


def _unreadable(place: SourceLocation, file: str, reason: str) -> FileFormatError:
    return place.error(f"'{file}': {reason}")


def _triple(values: Any) -> tuple[float, float, float]:
    x, y, z = map(float, values)
    return x, y, z


def _pose(position: Any, quat_wxyz: Any) -> PoseSpec:
    w, x, y, z = map(float, quat_wxyz)
    return PoseSpec(
        _triple(position), quat_xyzw=None if (x, y, z) == (0.0, 0.0, 0.0) else (x, y, z, w)
    )


def _turned(quat_wxyz: np.ndarray, vector: np.ndarray) -> np.ndarray:
    w, axis = quat_wxyz[0], quat_wxyz[1:]
    across = np.cross(axis, vector)
    turned: np.ndarray = vector + 2.0 * (w * across + np.cross(axis, across))
    return turned
