"""Scene files: read, write, convert and check.

:func:`load_scene` reads robray, URDF and JSON files and merges them into one scene. :func:`scene_to_dict` and
:func:`write_json_scene` write a scene without loss; :func:`scene_dump` lists its frames for other programs;
:func:`write_urdf` writes a part of it as a robot description. :func:`read_tmp` and :func:`write_tmp` read and write
plan files of the original TMKit, line by line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit._support.results import ValidationStatus
    from tmkit.formats.conversion import convert_scene
    from tmkit.formats.goal_scenes import GoalScene, load_goal_scene
    from tmkit.formats.json.scene import scene_from_dict, scene_to_dict, write_json_scene
    from tmkit.formats.loading import SCENE_SUFFIXES, load_scene
    from tmkit.formats.scene_check import SceneReport, check_scene
    from tmkit.formats.scene_dump import scene_dump
    from tmkit.formats.tmp_file import (
        TmpAction,
        TmpComment,
        TmpEntry,
        TmpFile,
        TmpMotion,
        TmpReparent,
        Waypoint,
        first_configuration,
        read_tmp,
        tmp_text,
        write_tmp,
    )
    from tmkit.formats.urdf.writer import UrdfText, urdf_from_scene, write_urdf
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "SCENE_SUFFIXES",
    "GoalScene",
    "SceneReport",
    "TmpAction",
    "TmpComment",
    "TmpEntry",
    "TmpFile",
    "TmpMotion",
    "TmpReparent",
    "UrdfText",
    "ValidationStatus",
    "Waypoint",
    "check_scene",
    "convert_scene",
    "first_configuration",
    "load_goal_scene",
    "load_scene",
    "read_tmp",
    "scene_dump",
    "scene_from_dict",
    "scene_to_dict",
    "tmp_text",
    "urdf_from_scene",
    "write_json_scene",
    "write_tmp",
    "write_urdf",
]
