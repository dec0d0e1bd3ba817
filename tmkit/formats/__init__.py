"""Scene files in and out.

:func:`load_scene` reads robray, URDF and JSON files and merges them into one scene. :func:`scene_to_json` and
:func:`write_json_scene` write a scene without loss; :func:`scene_dump` lists its frames for other programs.
"""

import logging

from tmkit.formats.json_scene import scene_from_json, scene_to_json, write_json_scene
from tmkit.formats.loading import SCENE_SUFFIXES, load_scene
from tmkit.formats.scene_dump import scene_dump

__all__ = [
    "SCENE_SUFFIXES",
    "load_scene",
    "scene_dump",
    "scene_from_json",
    "scene_to_json",
    "write_json_scene",
]

logging.getLogger(__name__).addHandler(logging.NullHandler())  # silent unless the user configures logging
