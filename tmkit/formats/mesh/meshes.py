"""Reader of mesh files.

Files with the suffixes ``.obj``, ``.stl``, ``.dae`` and ``.ply`` are read by trimesh, ``.glb`` and
``.gltf`` by :mod:`tmkit.formats.mesh.gltf`.

The parts of a file form one shape, each transformed by the scene graph of the file. As in robot
viewers, the unit of a COLLADA file is applied and its up-axis is *not*. The scale of the
description then multiplies the coordinates. A scale with an odd number of negative factors mirrors
the mesh, so the faces are reversed to point outwards. Bitwise equal vertices are merged in the
order of their first use: a file yields the same arrays on every computer.

Loading is lazy, since it imports trimesh. A :class:`MeshLoader` exists for one load of a scene, and
returns the same :class:`Shape` for the same file and scale.
"""

from __future__ import annotations

import io
import logging
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from tmkit._support.elementary import product
from tmkit._support.extras import require
from tmkit._support.limits import (
    ReadingLimits,
    as_utf8,
    checksums_read,
    is_file,
    read_bytes,
    sha256_of,
)
from tmkit._support.signals import defer_interrupts
from tmkit._support.source_location import Note, SourceLocation, ignore_note
from tmkit.errors import MeshError, ShapeError
from tmkit.formats.mesh.gltf import Part, read_gltf
from tmkit.formats.mesh.materials import (
    UNSPECIFIED,
    Colors,
    MtlFile,
    keep_plain_effects,
    pack_color,
    reduce_colors,
)
from tmkit.formats.mesh.mesh_text import (
    check_stl_text,
    check_stl_vertices,
    normalize_obj,
    normalize_obj_faces,
    trim_stl,
)
from tmkit.formats.mesh.package_uris import PackageResolver, real_path

if TYPE_CHECKING:
    from tmkit.graph import Shape

Triple = tuple[float, float, float]

_TEXT_SUFFIXES = (".obj", ".gltf")
"""Suffixes of text formats; COLLADA is not listed, since its parser handles encodings."""

MESH_SUFFIXES = (".obj", ".stl", ".dae", ".ply", ".glb", ".gltf")
"""Suffixes of mesh files."""

_PARSED_CHUNK_SIZE = 65536
"""Size of the chunks in which the start of a COLLADA file is parsed [bytes]."""

_LIMITS = ("mesh_bytes", "mesh_triangles", "text_bytes")
"""Names of the limits that a mesh file may exceed."""

_TRANSFORM_DECIMALS = 12
"""Decimals of the transforms of parts, whose last bits depend on the version of other libraries."""

_IGNORED_ELEMENTS = (
    "instance_camera",
    "instance_light",
    "library_animations",
    "library_cameras",
    "library_controllers",
    "library_images",
    "library_lights",
)
"""Elements of a COLLADA file for its appearance and motion."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MeshSpec:
    """A mesh file, with scale and part.

    Attributes:
        path: path of the file.
        scale: factors of the coordinates.
        part: index of a colour, whose faces are the mesh; None for all.
        submesh: name of the part; empty for all.
        is_centred: whether the centre of the bounding box becomes the origin.
    """

    path: Path
    scale: Triple = (1.0, 1.0, 1.0)
    part: int | None = None
    submesh: str = ""
    is_centred: bool = False


@dataclass(frozen=True)
class MeshArrays:
    """Arrays of a mesh.

    Attributes:
        vertices: (n, 3) vertices [m].
        faces: (m, 3) indices of vertices.
        colors: (m,) colours of the faces.
    """

    vertices: npt.NDArray[np.float64]
    faces: npt.NDArray[np.signedinteger]
    colors: Colors

    def palette(self) -> list[int]:
        """Return the distinct colours in the order of their first faces."""
        distinct_colors, first_faces = np.unique(self.colors, return_index=True)
        return [int(color) for color in distinct_colors[np.argsort(first_faces)]]

    def of_color(self, color: int) -> MeshArrays:
        """Return the faces of a colour with their vertices, in the same order."""
        faces = self.faces[self.colors == color]
        indices, inverse = np.unique(faces, return_inverse=True)
        return MeshArrays(
            self.vertices[indices],
            inverse.reshape(-1, 3).astype(np.int32),
            self.colors[self.colors == color],
        )


@dataclass
class MeshLoader:
    """Loader of mesh files, with a cache.

    Attributes:
        packages: resolver of URIs, with the limits of the load.
        note: receives notes about corrections of meshes and of the files that refer to them.
    """

    packages: PackageResolver = field(default_factory=PackageResolver)
    note: Note = ignore_note
    _arrays: dict[tuple[Path, str, bool], MeshArrays] = field(default_factory=dict)
    _shapes: dict[MeshSpec, Shape] = field(default_factory=dict)
    # SHA-256 of the files of each loaded mesh, by path.
    _files: dict[Path, dict[str, str]] = field(default_factory=dict)
    # SHA-256 of the files that were compared.
    _checksums: dict[Path, str] = field(default_factory=dict)

    def load(self, mesh: MeshSpec, *, place: SourceLocation | None = None) -> Shape:
        """Return a mesh as a shape, the same object for the same file and scale.

        Args:
            mesh: mesh file, with scale and part.
            place: location of the reference to the mesh, for errors.

        Raises:
            MeshError: if the file is missing or invalid.
        """
        key = replace(mesh, path=real_path(mesh.path))
        if key not in self._shapes:
            try:
                self._shapes[key] = self._make_shape(key)
            except MeshError as error:
                if place is None:
                    raise
                raise place.mesh_error(
                    f"{mesh.path}: {error.data['reason']}", mesh=str(mesh.path)
                ) from error
        return self._shapes[key]

    def colors(self, mesh: MeshSpec) -> list[int]:
        """Return the colours of a loaded mesh in the order of its parts, or ``UNSPECIFIED``."""
        return self._arrays[real_path(mesh.path), mesh.submesh, mesh.is_centred].palette()

    def checksum(self, path: Path) -> str:
        """Return the SHA-256 of a file, which is read once.

        Raises:
            MeshError: if the file cannot be read.
        """
        if path not in self._checksums:
            limit = self.packages.limits.mesh_bytes
            self._checksums[path] = sha256_of(
                read_bytes(path, limit=limit, error=lambda reason: MeshError.at(path, reason))
            )
        return self._checksums[path]

    @property
    def has_read(self) -> bool:
        """True if any file was read."""
        return bool(self._arrays)

    def _read_arrays(self, mesh: MeshSpec) -> MeshArrays:
        """Read the arrays of a mesh file, and store the checksums of its files."""
        path, start_time = mesh.path, time.monotonic()
        token = checksums_read.set({})
        try:
            arrays = read_mesh(
                path, limits=self.packages.limits, submesh=mesh.submesh, note=self.note
            )
            self._files[path] = checksums_read.get() or {}
        finally:
            checksums_read.reset(token)
        if mesh.is_centred:
            center = 0.5 * (arrays.vertices.min(axis=0) + arrays.vertices.max(axis=0))
            arrays = replace(arrays, vertices=arrays.vertices - center)
        size, duration = (len(arrays.vertices), len(arrays.faces)), time.monotonic() - start_time
        logger.debug("mesh %s: %d vertices, %d faces, read in %.3f s", path, *size, duration)
        return arrays

    def _make_shape(self, mesh: MeshSpec) -> Shape:
        """Return the shape of a mesh, whose file is read once."""
        from tmkit.graph import Mesh

        path = mesh.path
        key = path, mesh.submesh, mesh.is_centred
        if key not in self._arrays:
            self._arrays[key] = self._read_arrays(mesh)
        arrays = self._arrays[key]
        if mesh.part is not None:
            palette = arrays.palette()
            if mesh.part >= len(palette):
                raise MeshError.at(
                    path, f"the mesh has {len(palette)} colours, so there is no part {mesh.part}"
                )
            arrays = arrays.of_color(palette[mesh.part])
        arrays = _scale(arrays, mesh.scale)
        try:
            source = _source_of(mesh, packages=self.packages)
            return Mesh(
                arrays.vertices, arrays.faces, source=source, checksums=self._checksums_of(mesh)
            )
        except ShapeError as error:
            raise MeshError.at(path, str(error)) from error

    def _checksums_of(self, mesh: MeshSpec) -> str:
        """Return the checksums of a shape's files as a text.

        The text is empty if the source and the default limits do not determine the shape.
        """
        limits, defaults = self.packages.limits, ReadingLimits()
        is_within_defaults = all(
            getattr(limits, name) <= getattr(defaults, name) for name in _LIMITS
        )
        if mesh.submesh or mesh.is_centred or not is_within_defaults:
            return ""
        files = {
            Path(file).relative_to(mesh.path.parent).as_posix(): checksum
            for file, checksum in self._files[mesh.path].items()
            # A material file matters only for the selection of a part by its colour.
            if mesh.part is not None or not file.lower().endswith(".mtl")
        }
        return text_of_checksums(files)


def text_of_checksums(files: Mapping[str, str]) -> str:
    """Return SHA-256 by file name in the format of ``sha256sum``.

    The text is empty if a name contains a line break.
    """
    lines = [f"{checksum}  {name}\n" for name, checksum in files.items()]
    return "" if any(line.count("\n") > 1 for line in lines) else "".join(lines)


def checksums_of_text(text: str) -> dict[str, str]:
    """Return the SHA-256 by file name, the inverse of :func:`text_of_checksums`."""
    pairs = [line.partition("  ") for line in text.split("\n") if line]
    return {name: checksum for checksum, _, name in pairs}


def read_mesh(
    path: Path, *, limits: ReadingLimits | None = None, submesh: str = "", note: Note = ignore_note
) -> MeshArrays:
    """Read one mesh from a file.

    Args:
        path: path of the file.
        limits: size limits. Defaults to the usual ones.
        submesh: name of the part to read; empty for all.
        note: receives import notes.

    Raises:
        MeshError: if the file is missing, too large or invalid.
    """
    limits = limits or ReadingLimits()
    if path.suffix.lower() not in MESH_SUFFIXES:
        raise MeshError.at(
            path, f"a mesh of unknown kind '{path.suffix}'; expected {', '.join(MESH_SUFFIXES)}"
        )
    if not is_file(path):
        raise MeshError.at(path, "there is no such file")
    try:
        data = read_bytes(
            path, limit=limits.mesh_bytes, error=lambda reason: MeshError.at(path, reason)
        )
        return _parse_with_lines(path, data, limits, submesh, note)
    except MemoryError as error:
        raise MeshError.at(path, "the mesh needs more memory than is available") from error


def _parse_with_lines(
    path: Path, data: bytes, limits: ReadingLimits, submesh: str, note: Note
) -> MeshArrays:
    """Return the mesh of a file, and report faults of OBJ and STL files with their lines."""
    suffix = path.suffix.lower()
    if suffix in _TEXT_SUFFIXES:
        data = as_utf8(data, partial(MeshError.at, path))
    if suffix == ".stl":
        data = trim_stl(path, data, note=note)
    elif suffix == ".obj":
        data = normalize_obj(path, data)
    try:
        return _parse(path, data, limits, submesh)
    except MeshError:
        if suffix == ".obj":
            normalize_obj_faces(path, data)
        elif suffix == ".stl":
            check_stl_vertices(path, data)
        raise


def _parse(path: Path, data: bytes, limits: ReadingLimits, submesh: str) -> MeshArrays:
    """Return the mesh of a file, joined from its parts."""
    parts = _parts(path, data, limits, submesh)
    if submesh and not parts:
        raise MeshError.at(path, f"the mesh has no part '{submesh}'")
    if not parts:
        raise MeshError.at(path, "the mesh is empty: it has no triangles")
    if any(part.vertices.shape[1:] != (3,) or part.faces.shape[1:] != (3,) for part in parts):
        raise MeshError.at(
            path, "the mesh has vertices or triangles that do not have three numbers each"
        )
    if any(part.faces.min() < 0 or part.faces.max() >= len(part.vertices) for part in parts):
        raise MeshError.at(path, "the mesh has a triangle whose corner names no vertex")
    vertices = np.concatenate([part.vertices for part in parts])
    starts = np.cumsum([0, *(len(part.vertices) for part in parts[:-1])])
    faces = np.concatenate([part.faces + start for part, start in zip(parts, starts, strict=True)])
    if not np.isfinite(vertices).all():
        raise MeshError.at(path, "the mesh has coordinates that are not finite numbers")
    colors = reduce_colors(np.concatenate([part.colors for part in parts]))
    mesh = _merge_vertices(MeshArrays(vertices, faces.astype(np.int32), colors))
    if not len(mesh.faces):
        raise MeshError.at(path, "the mesh is empty: all its triangles have two equal corners")
    return mesh


def _scale(arrays: MeshArrays, scale: Triple) -> MeshArrays:
    """Return a scaled mesh; faces of a mirrored mesh are reversed to point outwards."""
    faces = arrays.faces
    if np.prod(np.sign(scale)) < 0.0:
        faces = np.ascontiguousarray(faces[:, ::-1])
    return MeshArrays(arrays.vertices * np.asarray(scale), faces, arrays.colors)


def _source_of(mesh: MeshSpec, *, packages: PackageResolver) -> str:
    """Return the source of a shape: a portable URI or the file's name, with scale and part."""
    name = packages.portable_uri(mesh.path) or mesh.path.name
    # No file is found for this suffix, so JSON stores the arrays.
    name += f"#submesh={mesh.submesh}" if mesh.submesh else ""
    if mesh.scale != (1.0, 1.0, 1.0):
        name += f"#scale={','.join(repr(factor) for factor in mesh.scale)}"
    return name if mesh.part is None else f"{name}#part={mesh.part}"


def mesh_of_source(source: str, packages: PackageResolver) -> MeshSpec | None:
    """Return the mesh file of a shape's source, or ``None`` if there is no such file."""
    uri, _, part = source.partition("#part=")
    uri, _, scale = uri.partition("#scale=")
    path = packages.find(uri)
    if path is None:
        return None
    try:
        x, y, z = (float(factor) for factor in scale.split(",")) if scale else (1.0, 1.0, 1.0)
        return MeshSpec(path, (x, y, z), int(part) if part else None)
    except ValueError:
        return None


def _parts(path: Path, data: bytes, limits: ReadingLimits, submesh: str) -> list[MeshArrays]:
    """Return the meshes of a file [m], each transformed by the scene of the file."""
    if path.suffix.lower() in (".glb", ".gltf"):
        parts, unit = read_gltf(path, data, limits, submesh), 1.0
    else:
        # trimesh catches all exceptions, including interrupts, while it is imported and reads.
        with defer_interrupts():
            parts, unit = _parts_by_trimesh(path, data, limits, submesh)
    # The limit is checked before the transforms copy the meshes.
    triangles = sum(len(faces) for _, faces, _, _ in parts)
    if triangles > limits.mesh_triangles:
        raise MeshError.at(
            path, f"the mesh has {triangles} triangles, expected at most {limits.mesh_triangles}"
        )
    if path.suffix.lower() == ".stl":
        check_stl_text(path, data, triangles)
    return [
        _transform_part((vertices * unit, faces, matrix, color), unit)
        for vertices, faces, matrix, color in parts
        if len(faces)
    ]


def _parts_by_trimesh(
    path: Path, data: bytes, limits: ReadingLimits, submesh: str
) -> tuple[list[Part], float]:
    """Return the meshes of a file, and the length of its unit [m]."""
    import trimesh

    is_collada = path.suffix.lower() == ".dae"
    if is_collada:
        require("collada", "formats", f"{path}: reading COLLADA needs")
    text, unit = _plain_collada(path, data) if is_collada else (data, 1.0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            materials = MtlFile(path, limits) if path.suffix.lower() == ".obj" else None
            scene = trimesh.load_scene(
                _scene_without_processing(text, path.suffix.lower().removeprefix("."), materials)
            )
            parts = [
                (
                    np.asarray(geometry.vertices, dtype=np.float64),
                    np.asarray(geometry.faces, dtype=np.int64),
                    matrix,
                    _color_of(geometry, materials),
                )
                for geometry, matrix in _geometry_instances(scene, submesh)
            ]
    except MemoryError:
        raise
    except Exception as error:
        # The readers of trimesh can raise any exception for an invalid file.
        logger.debug("trimesh could not read %s", path, exc_info=True)
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise MeshError.at(path, f"the mesh cannot be read: {reason}") from error
    return parts, unit


def _color_of(geometry: Any, materials: MtlFile | None) -> int:
    material = getattr(geometry.visual, "material", None)
    if materials is not None:
        return materials.colors.get(getattr(material, "name", None), UNSPECIFIED)
    return (
        UNSPECIFIED
        if material is None
        else pack_color([float(part) / 255.0 for part in material.main_color])
    )


def _scene_without_processing(data: bytes, kind: str, materials: MtlFile | None) -> dict[str, Any]:
    """Return the arguments of a trimesh scene, without processing of its meshes.

    ``trimesh.load_scene(..., process=False)`` processes the parts of a file with several parts: it
    merges vertices, and omits those that are not finite.
    """
    from trimesh.exchange.load import mesh_loaders

    read = cast("dict[str, Any]", mesh_loaders)[kind]
    arguments: dict[str, Any] = read(
        file_obj=io.BytesIO(data),
        file_type=kind,
        resolver=materials,
        metadata=None,
        process=False,
        skip_materials=materials is None,
    )
    for part in arguments["geometry"].values() if "geometry" in arguments else (arguments,):
        part["process"] = False
    return arguments


def _geometry_instances(scene: Any, submesh: str) -> list[tuple[Any, npt.NDArray[np.float64]]]:
    """Return the meshes of a trimesh scene with their (4, 4) transforms, in the file's order.

    Args:
        scene: trimesh scene.
        submesh: name of the meshes; empty for all.
    """
    instances = []
    for node in scene.graph.nodes_geometry:
        matrix, name = scene.graph[node]
        geometry = scene.geometry[name]
        if hasattr(geometry, "faces") and (not submesh or submesh in (node, name)):
            instances.append((geometry, np.asarray(matrix, dtype=np.float64)))
    return instances


def _transform_part(part: Part, unit: float) -> MeshArrays:
    """Return a part in the axes of the file.

    Args:
        part: part with vertices [m]. The transform may mirror.
        unit: unit of the transform's translation [m].
    """
    vertices, faces, matrix, color = part
    if not np.array_equal(matrix, np.eye(4)):
        # Vertices that are not finite are rejected later, with the path of the file.
        with np.errstate(over="ignore", invalid="ignore"):
            matrix = np.round(matrix, _TRANSFORM_DECIMALS)
            vertices = product(vertices, matrix[:3, :3].T) + unit * matrix[:3, 3]
            if np.linalg.det(matrix[:3, :3]) < 0.0:
                faces = faces[:, ::-1]
    return MeshArrays(vertices, faces, np.full(len(faces), color, dtype=np.uint32))


def _plain_collada(path: Path, data: bytes) -> tuple[bytes, float]:
    """Return a COLLADA file with only geometry and plain colours, and the length of its unit [m].

    Other properties of materials are omitted, since an invalid reference to a texture would
    otherwise prevent the geometry from loading.
    """
    from lxml import etree

    _reject_document_type(path, data)
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True
    )
    try:
        root = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, OSError) as error:
        raise MeshError.at(path, f"the mesh cannot be read: {error}") from error
    for element in list(root.iter(*(f"{{*}}{name}" for name in _IGNORED_ELEMENTS))):
        parent = element.getparent()
        if parent is not None:
            parent.remove(element)
    keep_plain_effects(root)
    for unit in root.findall("{*}asset/{*}unit"):
        try:
            length = float(unit.get("meter", "1"))
        except ValueError:
            length = 0.0
        if not (np.isfinite(length) and length > 0.0):
            raise MeshError.at(
                path,
                f"the unit '{unit.get('meter')}' is not a length in metres",
                line=cast("int | None", unit.sourceline),
            )
        return etree.tostring(root), length
    return etree.tostring(root), 1.0


def _reject_document_type(path: Path, data: bytes) -> None:
    """Reject a COLLADA file with a document type, which could define entities.

    The parser of large files expands entities without a limit. A document type precedes the root,
    so a parser with limits reads the file up to the root.
    """
    from lxml import etree

    parser = etree.XMLPullParser(
        events=("start",), resolve_entities=False, no_network=True, load_dtd=False
    )
    try:
        for begin in range(0, len(data), _PARSED_CHUNK_SIZE):
            parser.feed(data[begin : begin + _PARSED_CHUNK_SIZE])
            event = next(iter(parser.read_events()), None)
            if event is None:
                continue
            root: Any = event[1]
            information = root.getroottree().docinfo
            if information.doctype or information.internalDTD is not None:
                raise MeshError.at(
                    path, "declares a document type (<!DOCTYPE ...>), which is not accepted"
                )
            return
    except etree.XMLSyntaxError as error:
        raise MeshError.at(path, f"the mesh cannot be read: {error}") from error


def _first_of_equal(
    rows: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the first index of each group of equal rows, (groups,), and the group of each row.

    The result is that of :func:`numpy.unique`, several times faster for millions of rows. The
    function sorts 64-bit hashes of the rows, and the rows only in case of a hash collision.
    """
    hashes = np.zeros(len(rows), dtype=np.uint64)
    for column in np.ascontiguousarray(rows).view(np.uint64).T:
        hashes = (hashes ^ column) * np.uint64(0x9E3779B97F4A7C15)
        hashes ^= hashes >> np.uint64(29)
    _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    if not np.array_equal(rows[first][inverse], rows):
        _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first, inverse.reshape(-1)


def _merge_vertices(arrays: MeshArrays) -> MeshArrays:
    """Return a mesh without repeated or unused vertices, and without faces with equal corners."""
    used_indices = np.flatnonzero(
        np.bincount(arrays.faces.reshape(-1), minlength=len(arrays.vertices))
    )
    vertices = arrays.vertices[used_indices]
    first, inverse = _first_of_equal(vertices + 0.0)
    rank = np.empty(len(first), dtype=np.int32)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first), dtype=np.int32)
    new_index = np.full(len(arrays.vertices), -1, dtype=np.int32)
    new_index[used_indices] = rank[inverse]
    faces = new_index[arrays.faces]
    is_triangle = (
        (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])
    )
    return MeshArrays(
        vertices[np.sort(first)],
        np.ascontiguousarray(faces[is_triangle]),
        arrays.colors[is_triangle],
    )
