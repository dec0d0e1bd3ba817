"""Scene files: read, write, convert and check.

:func:`load_scene` reads robray, RSG-DSL, URDF, SDF, MJCF, USD, glTF and JSON files and merges them
into one scene. :func:`scene_to_dict` and :func:`write_json_scene` write a scene without loss;
:func:`scene_dump` lists its frames for other programs; :func:`write_urdf` writes a part of it as a
robot description. :func:`read_tmp` and :func:`write_tmp` read and write plan files of the original
TMKit, line by line.
"""

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
