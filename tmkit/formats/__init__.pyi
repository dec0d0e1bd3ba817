"""The names that `tmkit.formats` exports."""

from tmkit.formats.conversion import convert_scene as convert_scene
from tmkit.formats.convex_pieces import in_pieces as in_pieces
from tmkit.formats.goal_scene import load_goal_scene as load_goal_scene
from tmkit.formats.json.scene import (
    scene_from_dict as scene_from_dict,
    scene_to_dict as scene_to_dict,
    write_json_scene as write_json_scene,
)
from tmkit.formats.loading import load_scene as load_scene
from tmkit.formats.python_module import compile_scene as compile_scene
from tmkit.formats.reading import read_function_blocks as read_function_blocks
from tmkit.formats.reading_options import ReadingOptions as ReadingOptions
from tmkit.formats.scene_check import check_scene as check_scene
from tmkit.formats.urdf.writer import write_urdf as write_urdf
