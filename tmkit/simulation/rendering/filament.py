"""Pictures by MuJoCo's Filament renderer, with soft shadows and ambient occlusion.

Filament draws without a screen through Vulkan, or on a processor by Mesa's lavapipe. Its input are
triangles with poses, so that MuJoCo's physics is not used. The studio of a scene has a pale floor,
a soft key light above the left shoulder of the camera, and uniform ambient light. The key light
consists of several small lights with one shadow each.

Invariants: the same calls give the same pixels on the same machine. Each studio has its own engine,
which ends with it. The output of the engine goes to the log.
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
from tmkit.simulation.camera import NEAR_PLANE, Camera, Posed, surroundings, towards_light
from tmkit.simulation.engines.pybullet.quiet import quiet_output
from tmkit.simulation.engines.pybullet.shapes import DEFAULT_COLOR, drawn_triangles
from tmkit.spatial import Pose

_LIGHT_COUNT = 8
"""Number of lights that make one soft shadow."""

_RELATIVE_LIGHT_RADIUS = 0.07
"""Radius of the disc of lights, in units of their distance."""

_LIGHT_DISC_ANGLE = 2.39996
"""Golden angle between successive lights, for an even distribution on the disc [rad]."""

_KEY_LIGHT = 60_000.0
"""Intensity of the soft light at 1 m [cd]."""

_AMBIENT_LIGHT = 8_500.0
"""Intensity of the ambient light."""

_FILL_LIGHT = 35_000.0
"""Intensity of the light from above."""

_FLOOR_COLOR = (0.84, 0.85, 0.86)
"""Colour of the floor."""

_BACKDROP_COLOR = (0.75, 0.76, 0.77)
"""Colour of the background."""

_FLOOR_SIZE = 60.0
"""Side of the floor [m]."""

_FAR_PLANE = 100.0
"""Distance of the far clipping plane [m]."""

_MIN_SMOOTH_COSINE = math.cos(math.radians(40.0))
"""Cosine of the largest angle at an edge whose sides are shaded as a single surface."""

_STUDIO_MODEL = """<mujoco><visual><headlight active="0"/></visual>
<custom><numeric name="filament.ao.enabled" data="1"/>
<numeric name="filament.shadows.map_size" data="2048"/></custom>
<asset><texture name="sky" type="cube" builtin="gradient" rgb1="1 1 1" rgb2=".72 .72 .74"
 width="32" height="192"/></asset>
<worldbody><light type="image" texture="sky" intensity="{ambient}"/>
<light type="directional" dir="0 0 -1" intensity="{fill}" castshadow="false"/>{lights}
</worldbody></mujoco>"""
"""MuJoCo model of the lights of a studio."""


def is_available() -> bool:
    """Return whether MuJoCo and a Vulkan device exist. Without a device, Filament aborts."""
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
        error = vulkan.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), None)
        vulkan.vkDestroyInstance(instance, None)
    return error == 0 and count.value > 0


class FilamentStudio:
    """A fixed view of a scene, for one picture or the frames of a film.

    Args:
        world: scene with poses. Its shapes are read once, its poses for each picture.
        camera: camera of the view.
        supersampling: ratio of the size of drawn pictures to that of the result.
    """

    renderer = "filament"

    def __init__(self, world: Posed, camera: Camera, *, supersampling: float) -> None:
        self._world, self._camera = world, camera
        self._size = (round(supersampling * camera.width), round(supersampling * camera.height))
        with quiet_output():
            # MuJoCo's module needs a name that Python has since version 3.12.
            if not hasattr(collections.abc, "Buffer"):
                name = "Buffer"
                setattr(collections.abc, name, importlib.import_module("typing_extensions").Buffer)
            importlib.import_module("mujoco.studio")  # registers the renderer's materials
            self._mujoco = importlib.import_module("mujoco")
            self._api = importlib.import_module("mujoco.mjrf")
            vulkan = self._api.GraphicsApi.GRAPHICS_API_VULKAN
            self._context = self._api.Context(self._api.ContextConfig(graphics_api=vulkan))
        self._context.set_clear_color(np.array(_BACKDROP_COLOR))
        self._scene = self._context.create_scene(self._api.SceneParams())
        middle, floor, radius = surroundings(world)
        ground = np.array([*middle, floor])
        self._add_lights(ground, radius)
        self._meshes: dict[str, tuple[Any, int]] = {}
        self._renderables: list[tuple[str, Pose, Any]] = []
        slab = 0.5 * _FLOOR_SIZE * np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
        floor_mesh = self._mesh(slab, np.array([[0, 1, 2], [0, 2, 3]]))
        self._floor = self._add_renderable(floor_mesh, (*_FLOOR_COLOR, 1.0), roughness=1.0)
        self._floor.set_pose(ground, np.eye(3).ravel())
        for frame in world.scene.frame_names:
            for part in world.scene.shapes(frame):
                if part.visual:
                    color = part.color if part.color is not None else DEFAULT_COLOR
                    renderable = self._add_renderable(self._shape_mesh(part.shape), color)
                    self._renderables.append((frame, part.pose, renderable))
        self._target = self._context.create_render_target(
            self._api.RenderTargetConfig(
                width=self._size[0],
                height=self._size[1],
                color_format=self._api.PixelFormat.PIXEL_FORMAT_RGB8,
            )
        )

    def picture(self) -> NDArray[np.uint8]:
        """Return the current state as (height, width, 3) red, green, blue."""
        with importing("PIL", "pictures", "pictures need"):
            from PIL import Image

        poses: dict[str, Pose] = {}
        for frame, frame_from_shape, renderable in self._renderables:
            pose = poses.setdefault(frame, self._world.pose(frame)) @ frame_from_shape
            renderable.set_pose(np.asarray(pose.translation), np.asarray(pose.rotation).ravel())
        width, height = self._size
        pixels = np.zeros((height, width, 3), dtype=np.uint8)
        read = self._api.ReadRequest(target=self._target)
        read.set_buffer(pixels)
        request = self._api.RenderRequest(
            scene=self._scene, target=self._target, camera=self._view()
        )
        # The constructor of a request has no argument for the viewport.
        viewport = request.viewport
        viewport.width, viewport.height = width, height
        self._context.wait_for_frame(self._context.render([request], [read]))
        size = (self._camera.width, self._camera.height)
        return np.asarray(
            Image.fromarray(pixels).resize(size, Image.Resampling.BOX), dtype=np.uint8
        )

    def _view(self) -> Any:
        """Return the camera of the renderer with the same view."""
        camera = self._camera
        top = NEAR_PLANE * math.tan(camera.field_of_view / 2.0)
        forward = np.subtract(camera.target, camera.position, dtype=float)
        return self._api.Camera(
            pos=np.array(camera.position),
            forward=forward / np.linalg.norm(forward),
            up=camera.axes()[:, 1],
            frustum_center=0.0,
            frustum_width=top * camera.width / camera.height,
            frustum_bottom=-top,
            frustum_top=top,
            frustum_near=NEAR_PLANE,
            frustum_far=_FAR_PLANE,
        )

    def _add_lights(self, middle: NDArray[np.float64], radius: float) -> None:
        """Add the lights: a disc of spot lights, a light from above and ambient light."""
        direction = np.array(towards_light(self._camera))
        direction /= np.linalg.norm(direction)
        distance = 3.2 * radius + 0.5
        right = np.cross([0.0, 0.0, 1.0], direction)
        right /= np.linalg.norm(right)
        up = np.cross(direction, right)
        disc_radius = _RELATIVE_LIGHT_RADIUS * distance
        lights = ""
        for number in range(_LIGHT_COUNT):
            angle = _LIGHT_DISC_ANGLE * number
            offset = disc_radius * math.sqrt((number + 0.5) / _LIGHT_COUNT)
            radial = offset * (math.cos(angle) * right + math.sin(angle) * up)
            position = middle + distance * direction + radial
            aim = middle - position
            intensity = _KEY_LIGHT * distance**2 / _LIGHT_COUNT
            lights += (
                f'<light type="spot" pos="{" ".join(map(str, position))}"'
                f' dir="{" ".join(map(str, aim))}" intensity="{intensity}"'
                f' range="{20.0 * distance}" cutoff="65" castshadow="true"/>'
            )
        model = self._mujoco.MjModel.from_xml_string(
            _STUDIO_MODEL.format(ambient=_AMBIENT_LIGHT, fill=_FILL_LIGHT, lights=lights)
        )
        data = self._mujoco.MjData(model)
        self._mujoco.mj_forward(model, data)
        self._scene.configure_from_model(model)
        self._scene.set_msaa(4)
        self._resources = self._api.ModelResources(self._context, model)
        self._lights = self._api.ModelLights(self._scene, self._resources)
        self._lights.update(data)

    def _add_renderable(
        self, mesh: tuple[Any, int], color: tuple[float, ...], *, roughness: float = 0.5
    ) -> Any:
        """Add a mesh with a colour to the scene, and return its renderable."""
        renderable = self._context.create_renderable(
            self._api.RenderableParams(cast_shadow=True, receive_shadow=True)
        )
        renderable.set_mesh(mesh[0], 0, mesh[1])
        renderable.set_size(np.ones(3))
        material = self._api.Material(color=np.array(color), roughness=roughness, metallic=0.0)
        renderable.set_material(material)
        self._scene.add_renderable(renderable)
        return renderable

    def _shape_mesh(self, shape: Shape) -> tuple[Any, int]:
        """Return the mesh of a shape, made once for equal shapes."""
        if shape.digest not in self._meshes:
            self._meshes[shape.digest] = self._mesh(*drawn_triangles(shape))
        return self._meshes[shape.digest]

    def _mesh(self, vertices: NDArray[np.float64], faces: NDArray[np.int64]) -> tuple[Any, int]:
        """Return a mesh of the renderer, and the number of its indices."""
        api, count = self._api, faces.size
        arrays = (vertices[faces.ravel()], smooth_normals(vertices, faces), np.zeros((count, 2)))
        usage, kind = api.VertexAttributeUsage, api.VertexAttributeType
        attributes = (
            (usage.VERTEX_ATTRIBUTE_USAGE_POSITION, kind.VERTEX_ATTRIBUTE_TYPE_FLOAT3),
            (usage.VERTEX_ATTRIBUTE_USAGE_NORMAL, kind.VERTEX_ATTRIBUTE_TYPE_FLOAT3),
            # The materials read texture coordinates, which do not matter here.
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
    """Return the vertex normals (3 m, 3) of faces (m, 3), averaged over smooth edges."""
    from scipy.sparse import csr_matrix

    corners = vertices[faces]
    areas = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    sizes = np.linalg.norm(areas, axis=1, keepdims=True)
    normals = areas / np.where(sizes > 0.0, sizes, 1.0)
    face = np.repeat(np.arange(len(faces)), 3)
    at_vertex = csr_matrix(
        (np.ones(len(face)), (faces.ravel(), face)), shape=(len(vertices), len(faces))
    )
    pairs = at_vertex[faces.ravel()].tocoo()
    cosines = np.einsum("ij,ij->i", normals[face[pairs.row]], normals[pairs.col])
    is_smooth = cosines > _MIN_SMOOTH_COSINE
    total = np.zeros((len(face), 3))
    np.add.at(total, pairs.row[is_smooth], areas[pairs.col[is_smooth]])
    lengths = np.linalg.norm(total, axis=1, keepdims=True)
    return np.where(lengths > 0.0, total / np.where(lengths > 0.0, lengths, 1.0), [0.0, 0.0, 1.0])
