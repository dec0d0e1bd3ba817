"""Pictures by MuJoCo's Filament renderer, without a screen: soft shadows, ambient occlusion, smooth edges.

Filament draws through Vulkan, on a processor by Mesa's lavapipe. Shapes are given to it as
triangles with a pose, so nothing of MuJoCo's physics is used. A scene lies in a studio: a pale
floor below it, a soft light over the left shoulder of the camera (several small ones, each with its
own shadow), and even light from everywhere.

Invariants: the same calls give the same pixels on the same machine. Each studio has an engine of
its own, which is gone with it; what the engine prints goes to the log.
"""

from __future__ import annotations

import collections.abc
import ctypes
import importlib
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmkit._support.extras import importing, is_installed
from tmkit.graph import Shape
from tmkit.simulation.camera import Camera, Posed, surroundings, towards_light
from tmkit.simulation.engines.pybullet.quiet import quiet_output
from tmkit.simulation.engines.pybullet.shapes import DEFAULT_COLOR, drawn_triangles
from tmkit.spatial import Pose

_LIGHTS = 8  # that together make a soft shadow
_LIGHT_RADIUS = 0.07  # of the place of the lights, in their distance
# the soft light, in candela at 1 m; from everywhere; from above
_KEY, _AMBIENT, _FILL = 60_000.0, 8_500.0, 35_000.0
_FLOOR, _BACKDROP = (0.84, 0.85, 0.86), (0.75, 0.76, 0.77)
_FLOOR_SIZE = 60.0  # metres
_SMOOTH = math.cos(math.radians(40.0))  # sides of an edge that bends less are shaded as one surface
_STUDIO = """<mujoco><visual><headlight active="0"/></visual>
<custom><numeric name="filament.ao.enabled" data="1"/><numeric name="filament.shadows.map_size" data="2048"/></custom>
<asset><texture name="sky" type="cube" builtin="gradient" rgb1="1 1 1" rgb2=".72 .72 .74" width="32" height="192"/>
</asset><worldbody><light type="image" texture="sky" intensity="{ambient}"/>
<light type="directional" dir="0 0 -1" intensity="{fill}" castshadow="false"/>{lights}</worldbody></mujoco>"""


def is_available() -> bool:
    """Return whether MuJoCo and a Vulkan device are there; without a device its renderer would end the process."""
    if not all(map(is_installed, ("mujoco", "typing_extensions", "mujoco.studio"))):
        return False
    try:
        vulkan = ctypes.CDLL("libvulkan.so.1")
    except OSError:
        return False
    application = (ctypes.c_uint64 * 8)(1)  # VkInstanceCreateInfo: its type, and zeros
    instance, count = ctypes.c_void_p(), ctypes.c_uint32(0)
    with quiet_output():
        if vulkan.vkCreateInstance(application, None, ctypes.byref(instance)) != 0:
            return False
        found = vulkan.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), None)
        vulkan.vkDestroyInstance(instance, None)
    return found == 0 and count.value > 0


class FilamentStudio:
    """A fixed view of a scene, for one picture or the frames of a film.

    Args:
        world: the scene and its poses; its shapes are those of now, its poses those of each
            picture.
        supersampling: how many times larger pictures are drawn before they are reduced.
    """

    renderer = "filament"

    def __init__(self, world: Posed, camera: Camera, *, supersampling: float) -> None:
        self._world, self._camera = world, camera
        self._size = (round(supersampling * camera.width), round(supersampling * camera.height))
        with quiet_output():
            # of Python 3.12; MuJoCo's module needs the name
            if not hasattr(collections.abc, "Buffer"):
                name = "Buffer"
                setattr(collections.abc, name, importlib.import_module("typing_extensions").Buffer)
            importlib.import_module("mujoco.studio")  # registers the renderer's materials
            self._mujoco, self._api = (
                importlib.import_module("mujoco"),
                importlib.import_module("mujoco.mjrf"),
            )
            vulkan = self._api.GraphicsApi.GRAPHICS_API_VULKAN
            self._context = self._api.Context(self._api.ContextConfig(graphics_api=vulkan))
        self._context.set_clear_color(np.array(_BACKDROP))
        self._scene = self._context.create_scene(self._api.SceneParams())
        middle, floor, radius = surroundings(world)
        ground = np.array([*middle, floor])
        self._light(ground, radius)
        self._meshes: dict[str, tuple[Any, int]] = {}
        self._drawn: list[tuple[str, Pose, Any]] = []
        slab = 0.5 * _FLOOR_SIZE * np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
        self._floor = self._renderable(
            self._mesh(slab, np.array([[0, 1, 2], [0, 2, 3]])), (*_FLOOR, 1.0), rough=1.0
        )
        self._floor.set_pose(ground, np.eye(3).ravel())
        for frame in world.scene.frame_names:
            for part in world.scene.shapes(frame):
                if part.visual:
                    mesh = self._mesh_of(part.shape)
                    shown = self._renderable(
                        mesh, part.color if part.color is not None else DEFAULT_COLOR
                    )
                    self._drawn.append((frame, part.pose, shown))
        self._target = self._context.create_render_target(
            self._api.RenderTargetConfig(
                width=self._size[0],
                height=self._size[1],
                color_format=self._api.PixelFormat.PIXEL_FORMAT_RGB8,
            )
        )

    def picture(self) -> NDArray[np.uint8]:
        """Return the scene as it is now as (height, width, 3) red, green, blue."""
        with importing("PIL", "pictures", "pictures need"):
            from PIL import Image

        poses: dict[str, Pose] = {}
        for frame, frame_from_shape, shown in self._drawn:
            pose = poses.setdefault(frame, self._world.pose(frame)) @ frame_from_shape
            shown.set_pose(np.asarray(pose.translation), np.asarray(pose.rotation).ravel())
        width, height = self._size
        pixels = np.zeros((height, width, 3), dtype=np.uint8)
        read = self._api.ReadRequest(target=self._target)
        read.set_buffer(pixels)
        request = self._api.RenderRequest(
            scene=self._scene, target=self._target, camera=self._view()
        )
        # a request takes it in no other way
        request.viewport.width, request.viewport.height = width, height
        self._context.wait_for_frame(self._context.render([request], [read]))
        size = (self._camera.width, self._camera.height)
        return np.asarray(
            Image.fromarray(pixels).resize(size, Image.Resampling.BOX), dtype=np.uint8
        )

    def _view(self) -> Any:
        camera, near = self._camera, 0.02
        top = near * math.tan(camera.field_of_view / 2.0)
        forward = np.subtract(camera.target, camera.position, dtype=float)
        return self._api.Camera(
            pos=np.array(camera.position),
            forward=forward / np.linalg.norm(forward),
            up=camera.axes()[:, 1],
            frustum_center=0.0,
            frustum_width=top * camera.width / camera.height,
            frustum_bottom=-top,
            frustum_top=top,
            frustum_near=near,
            frustum_far=100.0,
        )

    def _light(self, middle: NDArray[np.float64], radius: float) -> None:
        """Put the lights up."""
        towards = np.array(towards_light(self._camera))
        towards /= np.linalg.norm(towards)
        distance = 3.2 * radius + 0.5
        right = np.cross([0.0, 0.0, 1.0], towards)
        right /= np.linalg.norm(right)
        up = np.cross(towards, right)
        lights = ""
        for number in range(_LIGHTS):
            turn, away = (
                2.39996 * number,
                _LIGHT_RADIUS * distance * math.sqrt((number + 0.5) / _LIGHTS),
            )
            place = (
                middle + distance * towards + away * (math.cos(turn) * right + math.sin(turn) * up)
            )
            aim = middle - place
            lights += (
                f'<light type="spot" pos="{" ".join(map(str, place))}"'
                f' dir="{" ".join(map(str, aim))}" intensity="{_KEY * distance**2 / _LIGHTS}"'
                f' range="{20.0 * distance}" cutoff="65" castshadow="true"/>'
            )
        model = self._mujoco.MjModel.from_xml_string(
            _STUDIO.format(ambient=_AMBIENT, fill=_FILL, lights=lights)
        )
        data = self._mujoco.MjData(model)
        self._mujoco.mj_forward(model, data)
        self._scene.configure_from_model(model)
        self._scene.set_msaa(4)
        self._resources = self._api.ModelResources(self._context, model)
        self._lights = self._api.ModelLights(self._scene, self._resources)
        self._lights.update(data)

    def _renderable(
        self, mesh: tuple[Any, int], color: tuple[float, ...], *, rough: float = 0.5
    ) -> Any:
        """Add a mesh in a colour to the scene."""
        made = self._context.create_renderable(
            self._api.RenderableParams(cast_shadow=True, receive_shadow=True)
        )
        made.set_mesh(mesh[0], 0, mesh[1])
        made.set_size(np.ones(3))
        made.set_material(self._api.Material(color=np.array(color), roughness=rough, metallic=0.0))
        self._scene.add_renderable(made)
        return made

    def _mesh_of(self, shape: Shape) -> tuple[Any, int]:
        if shape.digest not in self._meshes:
            self._meshes[shape.digest] = self._mesh(*drawn_triangles(shape))
        return self._meshes[shape.digest]

    def _mesh(self, vertices: NDArray[np.float64], faces: NDArray[np.int64]) -> tuple[Any, int]:
        """Return a mesh of the renderer, and the number of its corners."""
        api, count = self._api, faces.size
        arrays = (vertices[faces.ravel()], smooth_normals(vertices, faces), np.zeros((count, 2)))
        usage, kind = api.VertexAttributeUsage, api.VertexAttributeType
        attributes = (
            (usage.VERTEX_ATTRIBUTE_USAGE_POSITION, kind.VERTEX_ATTRIBUTE_TYPE_FLOAT3),
            (usage.VERTEX_ATTRIBUTE_USAGE_NORMAL, kind.VERTEX_ATTRIBUTE_TYPE_FLOAT3),
            # the materials need some
            (usage.VERTEX_ATTRIBUTE_USAGE_UV, kind.VERTEX_ATTRIBUTE_TYPE_FLOAT2),
        )
        config = api.MeshConfig(
            max_vertices=count,
            max_indices=count,
            interleaved=False,
            index_type=api.IndexType.INDEX_TYPE_U32,
            primitive_type=api.MeshPrimitiveType.MESH_PRIMITIVE_TYPE_TRIANGLES,
            attributes=[api.VertexAttribute(usage=use, type=type_) for use, type_ in attributes],
        )
        data = api.MeshData(compute_bounds=True)
        data.set_vertices(config, b"".join(array.astype("<f4").tobytes() for array in arrays))
        data.set_indices(config, np.arange(count, dtype="<u4").tobytes())
        mesh = self._context.create_mesh(config)
        mesh.upload(data)
        return mesh, count


def smooth_normals(vertices: NDArray[np.float64], faces: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the normals (3 m, 3) of the corners of faces (m, 3): of a corner's own face and those it bends into."""
    from scipy.sparse import csr_matrix

    corners = vertices[faces]
    areas = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    sizes = np.linalg.norm(areas, axis=1, keepdims=True)
    normals = areas / np.where(sizes > 0.0, sizes, 1.0)
    own = np.repeat(np.arange(len(faces)), 3)
    at_vertex = csr_matrix(
        (np.ones(len(own)), (faces.ravel(), own)), shape=(len(vertices), len(faces))
    )
    pairs = at_vertex[faces.ravel()].tocoo()
    near = np.einsum("ij,ij->i", normals[own[pairs.row]], normals[pairs.col]) > _SMOOTH
    total = np.zeros((len(own), 3))
    np.add.at(total, pairs.row[near], areas[pairs.col[near]])
    lengths = np.linalg.norm(total, axis=1, keepdims=True)
    return np.where(lengths > 0.0, total / np.where(lengths > 0.0, lengths, 1.0), [0.0, 0.0, 1.0])
