"""Scene models as nodes of a viser scene, for offline pages and the live viewer alike.

Every frame with shapes is a node ``/bodies/NAME``, with what is seen below it, and ``/collision/NAME``, with what
collides. The frames' axes are one batched node ``/frames``. The page's script moves the nodes; see ``viewer.js``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tmkit.visualization.scene_model import SceneModel

if TYPE_CHECKING:
    import viser

_VIEW = np.array([0.80, -0.90, 0.62])  # from the work to the camera: the robot's right front, a little above
TO_THE_RIGHT = np.array([0.90, 0.80, 0.0]) / np.hypot(0.90, 0.80)  # in the picture, horizontal
_FIELD_OF_VIEW = np.radians(42.0)
_ASPECT = 1.25  # least width of a window in heights in which all is seen
_FAR = 4.0  # metres across above which a piece does not count for the view


def node_name(frame: str) -> str:
    """Return the name of a frame as a node of viser, which separates levels by slashes.

    Args:
        frame: name of the frame.
    """
    return frame.replace("/", "\N{DIVISION SLASH}")


def add_nodes(scene: viser.SceneApi, model: SceneModel, poses: NDArray[np.float64]) -> dict[int, Any]:
    """Add the nodes of a model, and return the handles of its visual pieces by their index.

    Args:
        scene: the scene of a server.
        model: the model.
        poses: (n, 7) x, y, z, qx, qy, qz, qw of its frames.
    """
    handles: dict[int, Any] = {}
    index = {name: i for i, name in enumerate(model.frames)}
    scene.add_frame("/bodies", show_axes=False)
    scene.add_frame("/collision", show_axes=False, visible=False)
    groups = {"visual": "/bodies", "collision": "/collision"}
    for frame, role in dict.fromkeys((piece.frame, piece.role) for piece in model.pieces):
        x = poses[index[frame]]
        scene.add_frame(f"{groups[role]}/{node_name(frame)}", show_axes=False, position=x[:3], wxyz=x[[6, 3, 4, 5]])
    for number, piece in enumerate(model.pieces):
        vertices, faces = model.meshes[piece.mesh]
        handle = scene.add_mesh_simple(
            f"{groups[piece.role]}/{node_name(piece.frame)}/{number}", vertices, faces,
            color=np.rint(255.0 * np.array(piece.color[:3])).astype(np.uint8),
            opacity=piece.color[3] if piece.color[3] < 1.0 else None, side="double",
            cast_shadow=piece.role == "visual", receive_shadow=piece.role == "visual",
            position=piece.pose.translation, wxyz=piece.pose.quat_xyzw[[3, 0, 1, 2]],
        )  # fmt: skip
        if piece.role == "visual":
            handles[number] = handle
    scene.add_batched_axes(
        "/frames", poses[:, [6, 3, 4, 5]], poses[:, :3], axes_length=0.06, axes_radius=0.0025, visible=False
    )
    return handles


def model_document(model: SceneModel) -> dict[str, Any]:
    """Return which frames are nodes, and the boxes around their pieces for hovering, as plain values for the page.

    Args:
        model: the model.
    """
    index = {name: i for i, name in enumerate(model.frames)}
    boxes = []
    for piece in model.pieces:
        vertices = model.meshes[piece.mesh][0]
        if piece.role == "visual" and len(vertices):
            pose = (*piece.pose.translation, *piece.pose.quat_xyzw)
            bounds = (*vertices.min(axis=0), *vertices.max(axis=0))
            boxes.append([index[piece.frame], *(round(float(value), 5) for value in (*pose, *bounds))])
    bodies = dict.fromkeys(piece.frame for piece in model.pieces)
    return {"bodies": [[index[name], node_name(name)] for name in bodies], "boxes": boxes}


def bounds(model: SceneModel, poses: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the lowest and highest corner (3,) of what is seen, metres; a cube of a metre if that is nothing.

    Args:
        model: the model.
        poses: (n, 7) poses of its frames.
    """
    index = {name: i for i, name in enumerate(model.frames)}
    points = []
    for piece in model.pieces:
        vertices = model.meshes[piece.mesh][0]
        if piece.role == "visual" and len(vertices):
            corners = np.array([vertices.min(axis=0), vertices.max(axis=0)], dtype=float)
            if np.max(corners[1] - corners[0]) < _FAR:
                mixed = corners[[[i & 1, i >> 1 & 1, i >> 2 & 1] for i in range(8)], [0, 1, 2]]
                placed = mixed @ piece.pose.as_matrix()[:3, :3].T + piece.pose.translation
                frame = poses[index[piece.frame]]
                points.append(_turned(frame[3:], placed) + frame[:3])
    every = np.concatenate(points) if points else np.array([[-0.5] * 3, [0.5] * 3])
    return every.min(axis=0), every.max(axis=0)


def _turned(quat_xyzw: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.float64]:
    across = 2.0 * np.cross(quat_xyzw[:3], points)
    turned: NDArray[np.float64] = points + quat_xyzw[3] * across + np.cross(quat_xyzw[:3], across)
    return turned


def set_view(
    server: viser.ViserServer, low: NDArray[np.float64], high: NDArray[np.float64], *, moves: bool = True
) -> None:
    """Put a floor below what is seen, and the cameras where all of it is in the picture.

    Args:
        server: the server.
        low: (3,) the lowest corner, metres.
        high: (3,) the highest corner.
        moves: whether the cameras of those who look already are moved.
    """
    center, radius = 0.5 * (low + high), 0.5 * float(np.linalg.norm(high - low))
    toward = _VIEW / np.linalg.norm(_VIEW)
    corners = np.array([[(low, high)[i >> k & 1][k] for k in range(3)] for i in range(8)]) - center
    axes = np.stack([TO_THE_RIGHT / _ASPECT, np.cross(toward, TO_THE_RIGHT)])
    across = np.abs(corners @ axes.T).max(axis=1)
    distance = 1.05 * float(np.max(across / np.tan(0.5 * _FIELD_OF_VIEW) + corners @ toward))
    server.initial_camera.fov = float(_FIELD_OF_VIEW)
    cameras: list[Any] = [server.initial_camera]
    for camera in cameras + [client.camera for client in server.get_clients().values() if moves]:
        camera.position = center + toward * distance  # first: a client keeps its direction where it is to look
        camera.look_at = center
    side = 2.0 * np.ceil(2.0 * radius)
    server.scene.add_grid(
        "/floor", width=side, height=side, cell_size=0.25, section_size=1.0, plane="xy", shadow_opacity=0.2,
        cell_color=(215, 221, 227), section_color=(190, 199, 208),
        position=(round(center[0]), round(center[1]), low[2] - 1e-3), infinite_grid=False,
    )  # fmt: skip
