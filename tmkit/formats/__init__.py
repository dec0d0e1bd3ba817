"""Scene files: read, write, convert and check.

:func:`load_scene` reads robray, RSG-DSL, URDF, SDF, MJCF, USD, glTF and JSON files and merges them into one scene.
:func:`scene_to_dict` and :func:`write_json_scene` write a scene without loss; :func:`scene_dump` lists its frames for
other programs; :func:`write_urdf` writes a part of it as a robot description. :func:`read_tmp` and :func:`write_tmp`
read and write plan files of the original TMKit, line by line.
"""

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit._support.results import ValidationStatus as ValidationStatus
    from tmkit.formats.conversion import convert_scene as convert_scene
    from tmkit.formats.goal_scene import GoalScene as GoalScene, load_goal_scene as load_goal_scene
    from tmkit.formats.json.scene import (
        scene_dump as scene_dump,
        scene_from_dict as scene_from_dict,
        scene_to_dict as scene_to_dict,
        write_json_scene as write_json_scene,
    )
    from tmkit.formats.loading import load_scene as load_scene
    from tmkit.formats.mesh.package_uris import SCENE_SUFFIXES as SCENE_SUFFIXES
    from tmkit.formats.python_module import compile_scene as compile_scene
    from tmkit.formats.convex_pieces import convex_pieces as convex_pieces, in_pieces as in_pieces
    from tmkit.formats.reading import read_function_blocks as read_function_blocks
    from tmkit.formats.scene_check import SceneReport as SceneReport, check_scene as check_scene
    from tmkit.formats.tmp_file import (
        TmpAction as TmpAction,
        TmpComment as TmpComment,
        TmpEntry as TmpEntry,
        TmpFile as TmpFile,
        TmpMotion as TmpMotion,
        TmpReparent as TmpReparent,
        Waypoint as Waypoint,
        first_configuration as first_configuration,
        read_tmp as read_tmp,
        tmp_text as tmp_text,
        write_tmp as write_tmp,
    )
    from tmkit.formats.urdf.writer import (
        UrdfText as UrdfText,
        urdf_from_scene as urdf_from_scene,
        write_urdf as write_urdf,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)
