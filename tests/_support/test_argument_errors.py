"""Argument errors: the message has the argument, the expected type and a suggestion."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tmkit as tk
import tmkit._core as core
from tmkit._support.argument_errors import argument_error
from tmkit.errors import ArgumentError, RobotError, SceneError, TaskError, TmkitError

SCENE = tk.SceneGraph().add_frame("cup", "world")
HINGED = tk.SceneGraph().add_frame("cup", "world", joint=tk.Continuous([0, 0, 1]))
BOX = tk.Box([0.1, 0.1, 0.1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: SCENE.add_frame("a", "world", pose=[1, 0, 0]),
            (
                "'pose' must be a Pose or a GaussianPose, not a list ([1, 0, 0]); write tk.Pose([1,"
                " 0, 0])"
            ),
        ),
        (
            lambda: SCENE.add_frame("a", "world", pose=np.eye(4)),
            (
                "'pose' must be a Pose or a GaussianPose, not a ndarray; write"
                " tk.Pose.from_matrix(...)"
            ),
        ),
        (lambda: SCENE.add_frame("a", "world", shapes=BOX), "write it in brackets: [shape]"),
        (
            lambda: SCENE.add_frame("a", "world", shapes=[3]),
            "'shapes' must be a sequence of AttachedShape or Shape objects, not a list ([3])",
        ),
        (
            lambda: SCENE.set_classes("cup", "movable"),
            "'classes' must be a sequence of strings, not a str ('movable'); write ['movable']",
        ),
        (
            lambda: SCENE.pose("cup", relative_to=3),
            "pose(): 'relative_to' must be a string or None, not an int (3)",
        ),
        (
            lambda: SCENE.pose("cup", "world"),
            "pose(): too many positional arguments; write pose(frame, relative_to=...)",
        ),
        (lambda: SCENE.pose(target="cup", reference="world"), "write pose(frame, relative_to=...)"),
        (
            lambda: SCENE.gaussian_pose("cup", "world"),
            "write gaussian_pose(frame, relative_to=...)",
        ),
        (lambda: SCENE.at().twist("cup", "world"), "write twist(frame, relative_to=...)"),
        (lambda: tk.SceneArrays(SCENE).pose("cup", "world"), "write pose(frame, relative_to=...)"),
        (
            lambda: SCENE.set_twist("cup", "world", np.zeros(6)),
            "write set_twist(frame, vector, relative_to_body=...)",
        ),
        (
            lambda: SCENE.pose("cup", relative_to="world", qq=[]),
            "got an unexpected keyword argument 'qq'; did you mean 'q'?",
        ),
        (
            lambda: tk.motion.inverse_kinematics(SCENE, "cup", target=tk.Pose()),
            "keyword argument 'target'; did you mean 'target_pose'?",
        ),
        (
            lambda: SCENE.reparent("cup"),
            "missing a required argument: 'parent'; the signature is reparent(frame, parent, *, ",
        ),
        (
            lambda: tk.Box(1, 2, 3),
            "Box(): too many positional arguments; the signature is Box(size)",
        ),
        (
            lambda: tk.Revolute([0, 0, 1], lower="x"),
            "Revolute(): 'lower' must be a number, not a str ('x')",
        ),
        (
            lambda: tk.SceneArrays(SCENE, capacity="x"),
            (
                "SceneArrays(): 'capacity' must be an integer or a mapping of strings to integers"
                " or None, not a str ('x')"
            ),
        ),
        (lambda: tk.SceneArrays(SCENE).set_shapes("cup", [None]), "'shapes' must be a sequence"),
        (
            lambda: tk.simulate(None),
            "'plan' must be a Plan, not None; planning found none; see result.explanation",
        ),
        (
            lambda: tk.plan("panda_table", goal="(on a b)"),
            "load it first: tk.load_scene('panda_table')",
        ),
        (lambda: tk.load_scene(SCENE), "'files' must be a str or a PathLike, not a SceneGraph"),
        (
            lambda: tk.plans.ObjectAt("a", tk.Pose(), relative_to=tk.Pose()),
            "'relative_to' must be a str, not a Pose",
        ),
        (
            lambda: tk.simulate("plan.json"),
            "not a str ('plan.json'); load a plan file with tk.load_plan",
        ),
        (
            lambda: tk.save_plan(None, "plan.json"),
            "save_plan(): 'plan' must be a Plan, not None; planning found none",
        ),
        (lambda: tk.validate_plan(tk.PlanningOptions()), "load a plan file with tk.load_plan"),
        (
            lambda: tk.plans.ObjectAt("a", [0, 0, 0], relative_to="table"),
            "not a list ([0, 0, 0]); write tk.Pose(...)",
        ),
        (
            lambda: tk.plan(SCENE, goal=[["on", "a", "b"]]),
            "'goal' must be PDDL text, a formula, ObjectAt, ObjectIn, ArmAt, a scene",
        ),
        (
            lambda: HINGED.configuration([0.1]),
            (
                "'values' must be a mapping of strings to numbers, not a list ([0.1]); it is a"
                " configuration already: give it as q"
            ),
        ),
        (
            lambda: HINGED.configuration([0.1] * 2),
            "([0.1, 0.1]); write the joint's name for each number, as in {'cup': 0.1}",
        ),
        (
            lambda: HINGED.configuration("cup"),
            "'values' must be a mapping of strings to numbers, not a str ('cup')",
        ),
        (lambda: SCENE.configuration([1.0]), "write the joint's name for each number"),
        (
            lambda: SCENE.set_attributes("cup", ["a"]),
            "'attributes' must be a mapping of strings to values, not a list (['a'])",
        ),
        (
            lambda: SCENE.set_noise("cup", [1.0]),
            "'maps' must be a mapping of NoiseSource objects to arrays, not a list ([1.0])",
        ),
        (lambda: tk.load_manipulator(3), "'name' must be a str or a Path, not an int (3)"),
    ],
)
def test_a_wrong_argument_is_named(call: Callable[[], object], message: str) -> None:
    """The error has no C++ signature, is a TypeError and a TmkitError, and can be pickled."""
    with pytest.raises(ArgumentError, match=re.escape(message)) as caught:
        call()
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, TmkitError)
    assert "tmkit._core" not in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert again.data == caught.value.data


def _bound_functions() -> list[Any]:
    """Return every function and method of the core."""
    owners = [core, *(value for value in vars(core).values() if isinstance(value, type))]
    values = [value for owner in owners for value in vars(owner).values()]
    return [value for value in values if type(value).__name__ in ("nb_func", "nb_method")]


def test_every_signature_of_the_core_is_understood() -> None:
    """Each bound function explains a call with an extra argument and one with a wrong type."""
    functions = _bound_functions()
    assert len(functions) > 300
    for function in functions:
        error = argument_error(function, [object()] * 40, {})
        assert "incompatible function arguments" not in str(error)
        assert isinstance(
            argument_error(function, [], {"no_such_keyword": object()}), ArgumentError
        )


def test_wrong_calls_of_the_core_never_show_a_cpp_signature() -> None:
    """A call with any arguments raises the function's own error, or nothing."""
    for function in _bound_functions():
        if function.__name__.startswith("_"):
            continue
        for arguments in ((), (object(),), (SCENE, object(), object()), (None, None)):
            message = ""
            try:
                function(*arguments)
            except (TmkitError, TypeError, ValueError, AttributeError) as error:
                message = str(error)
            assert "incompatible function arguments" not in message


def test_operators_with_foreign_values_leave_the_answer_to_them() -> None:
    """A pose times another type is Python's TypeError, and comparison with any type is False."""
    with pytest.raises(TypeError, match="unsupported operand"):
        tk.Pose() @ 3  # type: ignore[operator]
    assert tk.Pose() != 3
    assert copy.copy(tk.Pose()) == tk.Pose()


def test_bare_shapes_sit_in_the_origin_of_their_frame() -> None:
    """A shape is equal to an attached shape at the identity, in every edit of scenes and arrays."""
    attached = tk.AttachedShape(BOX)
    for shape in (BOX, attached):
        version = SCENE.add_frame("a", "world", shapes=[shape])
        assert version.shapes("a") == (attached,)
        assert SCENE.set_shapes("cup", [shape]).shapes("cup") == (attached,)
        assert SCENE.add_shape("cup", shape).shapes("cup") == (attached,)
        assert core.FrameSpecification("a", "world", shapes=[shape, attached]).shapes == (
            attached,
            attached,
        )
        arrays = tk.SceneArrays(SCENE, capacity={"shapes": 4})
        arrays.set_shapes("cup", [shape])
        assert arrays.freeze().shapes("cup") == (attached,)


def test_a_matrix_given_as_translation_names_the_constructor_for_it() -> None:
    """``Pose(matrix)`` is not guessed at."""
    with pytest.raises(SceneError, match=r"is a \(4, 4\) matrix; write Pose.from_matrix\(matrix\)"):
        tk.Pose(np.eye(4))


def test_a_robot_that_is_not_in_the_scene_lists_those_that_are() -> None:
    """No frame of another robot is suggested."""
    with pytest.raises(
        RobotError, match=r"has none of its joints .*; built-in robots in this scene: panda"
    ) as caught:
        tk.plan(tk.load_scene("panda_table", "blocks2"), goal="(on a b)", robot="ur5")
    assert "link8" not in str(caught.value)


@pytest.mark.parametrize("goal", ["(on a b)", ["(on a b)"]])
def test_a_frame_that_is_no_object_says_which_class_it_lacks(goal: str | list[str]) -> None:
    """A frame without a class is not merely unknown."""
    scene = tk.load_scene("panda_table", "blocks2").set_classes("a", [])
    with pytest.raises(
        TaskError,
        match="frame 'a' is not an object of domain 'blocks': it lacks the class 'movable'",
    ):
        tk.plan(scene, goal=goal)
    with pytest.raises(
        TaskError, match=r"unknown object 'zebra' \(known: b, table__0__0, .* and \d+ more\)"
    ):
        tk.plan(scene, goal="(on zebra b)")
    with pytest.raises(
        TaskError, match=r"'table' is not an object .* one of its locations, such as 'table__0__0'"
    ):
        tk.plan(scene, goal="(ontable b table)")


def test_a_configuration_is_an_array_and_a_robot_is_in_the_scene() -> None:
    """Joint values by name are rejected with the method that makes an array of them."""
    scene = tk.load_scene("panda_table", "blocks1")
    with pytest.raises(
        tk.errors.SceneError,
        match=r"q must be an array of numbers, not \{.*scene.configuration\(values\)",
    ):
        tk.plan(scene, {"panda_joint1": 0.5}, goal="(holding a)")  # type: ignore[call-overload]
    with pytest.raises(
        tk.errors.UnknownNameError, match="robot 'ur5' is not in the scene: unknown joint"
    ):
        tk.load_manipulator("ur5").ready_configuration(scene)


def test_a_goal_at_a_pose_alone_is_named_alone() -> None:
    """The empty conjunction of PDDL is not shown."""
    scene = tk.load_scene("panda_table", "blocks1")
    result = tk.plan(
        scene,
        goal=tk.plans.ObjectAt("a", scene.pose("a", relative_to="table"), relative_to="table"),
        seed=0,
    )
    assert result.explanation.startswith("The goal 'a' at (")
    assert "(and)" not in result.explanation


@pytest.mark.parametrize(
    ("name", "message"), [("x.xacro", "expand the file first"), ("x.stl", "this is a mesh")]
)
def test_files_of_other_tools_say_what_to_do(tmp_path: Any, name: str, message: str) -> None:
    """A known foreign format is not taken for a slip of the pen."""
    (tmp_path / name).write_text("")
    with pytest.raises(tk.errors.FileFormatError, match=message):
        tk.load_scene(tmp_path / name)
