"""The names that `tmkit.tamp.streams` exports."""

from tmkit.tamp.streams.built_in import (
    grasps as grasps,
    paths as paths,
    pick_configurations as pick_configurations,
    placements as placements,
)
from tmkit.tamp.streams.declaration import stream as stream, stream_action as stream_action
from tmkit.tamp.streams.scene_view import SceneView as SceneView
from tmkit.tamp.streams.semantics import StreamSemantics as StreamSemantics
