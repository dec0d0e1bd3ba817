"""Scene files in and out.

:func:`load_scene` reads robray, URDF and JSON files and merges them into one scene.
"""

from tmkit.formats.loading import SCENE_SUFFIXES, load_scene

__all__ = ["SCENE_SUFFIXES", "load_scene"]
