"""Mesh files: obj, stl, dae and ply through trimesh, glb and gltf through :mod:`tmkit.formats.mesh.gltf`.

What users of robot descriptions expect of a mesh: the parts of a file are one shape, each moved by
the transforms of the file's own scene graph. The unit that a COLLADA file declares is applied and
its up-axis is *not* (as the robot viewers do). The scale of the description multiplies the
coordinates afterwards. A scale with an odd number of negative factors mirrors, and then the faces
are reversed to face outwards again. Vertices that are equal to the last bit are merged, in the
order of their first mention: the same file gives the same arrays everywhere.

Loading is lazy (trimesh is imported at the first mesh) and remembered: one :class:`MeshLoader`
lives as long as one load of a scene, and gives the same :class:`Shape` for the same file and scale.
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
from tmkit._support.signals import interrupts_kept
from tmkit._support.source_location import Note, SourceLocation, unheard
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
"""Kinds of mesh files that are always text; the parser of COLLADA knows its encodings itself."""
MESH_SUFFIXES = (".obj", ".stl", ".dae", ".ply", ".glb", ".gltf")
_FIRST_BYTES = 65536  # of a file that are looked at at a time
_LIMITS = ("mesh_bytes", "mesh_triangles", "text_bytes")
"""Limits that a mesh file may exceed."""

# The parts of a COLLADA file that say how it looks and moves.
# decimals of the poses of parts: their turns come from other libraries, with last bits of their own
_DIGITS = 12
_LOOKS = (
    "instance_camera",
    "instance_light",
    "library_animations",
    "library_cameras",
    "library_controllers",
    "library_images",
    "library_lights",
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MeshSpec:
    """A mesh file, the factors of its coordinates, and the part: all, one colour, or what has the name ``submesh``."""

    path: Path
    scale: Triple = (1.0, 1.0, 1.0)
    part: int | None = None
    submesh: str = ""
    is_centred: bool = False


@dataclass(frozen=True)
class MeshArrays:
    """Vertices (n, 3) in metres, faces (m, 3) of a mesh and their colours (m,), not yet a shape."""

    vertices: npt.NDArray[np.float64]
    faces: npt.NDArray[np.signedinteger]
    colors: Colors

    def palette(self) -> list[int]:
        """Return the different colours in the order of their first faces."""
        found, first = np.unique(self.colors, return_index=True)
        return [int(color) for color in found[np.argsort(first)]]

    def of_color(self, color: int) -> MeshArrays:
        """Return the faces of a colour with their vertices, in the same orders."""
        faces = self.faces[self.colors == color]
        used, inverse = np.unique(faces, return_inverse=True)
        return MeshArrays(
            self.vertices[used],
            inverse.reshape(-1, 3).astype(np.int32),
            self.colors[self.colors == color],
        )


@dataclass
class MeshLoader:
    """Loads mesh files and remembers them; ``packages`` gives the portable names of their files.

    ``note`` is called with what is mended in them and in what they are part of.
    """

    packages: PackageResolver = field(default_factory=PackageResolver)
    note: Note = unheard
    _read: dict[tuple[Path, str, bool], MeshArrays] = field(default_factory=dict)
    _shapes: dict[MeshSpec, Shape] = field(default_factory=dict)
    # SHA-256 of the files of each mesh that was read
    _files: dict[Path, dict[str, str]] = field(default_factory=dict)
    _checksums: dict[Path, str] = field(default_factory=dict)  # of files that were compared

    def load(self, mesh: MeshSpec, *, place: SourceLocation | None = None) -> Shape:
        """Return the mesh as a shape, the same object for the same file and scale; broken files are a ``MeshError``."""
        key = replace(mesh, path=real_path(mesh.path))
        if key not in self._shapes:
            try:
                self._shapes[key] = self._make(key)
            except MeshError as error:
                if place is None:
                    raise
                raise place.mesh_error(
                    f"{mesh.path}: {error.data['reason']}", mesh=str(mesh.path)
                ) from error
        return self._shapes[key]

    def colors(self, mesh: MeshSpec) -> list[int]:
        """Return the colours of a loaded mesh in the order of its parts; ``UNSPECIFIED`` where it leaves one open."""
        return self._read[real_path(mesh.path), mesh.submesh, mesh.is_centred].palette()

    def checksum(self, path: Path) -> str:
        """Return the SHA-256 of a file, which is read once; one that cannot be read is a ``MeshError``."""
        if path not in self._checksums:
            limit = self.packages.limits.mesh_bytes
            self._checksums[path] = sha256_of(
                read_bytes(path, limit=limit, error=lambda reason: MeshError.at(path, reason))
            )
        return self._checksums[path]

    @property
    def has_read(self) -> bool:
        """Whether any file was read."""
        return bool(self._read)

    def _make(self, mesh: MeshSpec) -> Shape:
        from tmkit.graph import Mesh

        path = mesh.path
        key = path, mesh.submesh, mesh.is_centred
        if key not in self._read:
            began = time.monotonic()
            limits = self.packages.limits
            token = checksums_read.set({})
            try:
                self._read[key] = read = read_mesh(
                    path, limits=limits, submesh=mesh.submesh, note=self.note
                )
                self._files[path] = checksums_read.get() or {}
            finally:
                checksums_read.reset(token)
            if mesh.is_centred:
                middle = 0.5 * (read.vertices.min(axis=0) + read.vertices.max(axis=0))
                self._read[key] = replace(read, vertices=read.vertices - middle)
            size, seconds = (len(read.vertices), len(read.faces)), time.monotonic() - began
            logger.debug("mesh %s: %d vertices, %d faces, read in %.3f s", path, *size, seconds)
        arrays = self._read[key]
        if mesh.part is not None:
            palette = arrays.palette()
            if mesh.part >= len(palette):
                raise MeshError.at(
                    path, f"the mesh has {len(palette)} colours, so there is no part {mesh.part}"
                )
            arrays = arrays.of_color(palette[mesh.part])
        arrays = scaled(arrays, mesh.scale)
        try:
            source = _source_of(mesh, packages=self.packages)
            return Mesh(
                arrays.vertices, arrays.faces, source=source, checksums=self._checksums_of(mesh)
            )
        except ShapeError as error:
            raise MeshError.at(path, str(error)) from error

    def _checksums_of(self, mesh: MeshSpec) -> str:
        """Return the checksums of a shape; none of one that its source does not determine, with the usual limits."""
        limits, usual = self.packages.limits, ReadingLimits()
        is_usual = all(getattr(limits, name) <= getattr(usual, name) for name in _LIMITS)
        if mesh.submesh or mesh.is_centred or not is_usual:
            return ""
        files = {
            Path(file).relative_to(mesh.path.parent).as_posix(): checksum
            for file, checksum in self._files[mesh.path].items()
            # colours only tell parts from each other
            if mesh.part is not None or not file.lower().endswith(".mtl")
        }
        return text_of_checksums(files)


def text_of_checksums(files: Mapping[str, str]) -> str:
    """Return the SHA-256 of files by name as ``sha256sum`` prints them; empty for a name that has no line."""
    lines = [f"{checksum}  {name}\n" for name, checksum in files.items()]
    return "" if any(line.count("\n") > 1 for line in lines) else "".join(lines)


def checksums_of_text(text: str) -> dict[str, str]:
    """Return the SHA-256 by name, the inverse of :func:`text_of_checksums`."""
    pairs = [line.partition("  ") for line in text.split("\n") if line]
    return {name: checksum for checksum, _, name in pairs}


def read_mesh(
    path: Path, *, limits: ReadingLimits | None = None, submesh: str = "", note: Note = unheard
) -> MeshArrays:
    """Read a mesh file as one mesh, or what it has under the name ``submesh``; broken files are a ``MeshError``."""
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
        return _read_text(path, data, limits, submesh, note)
    except MemoryError as error:
        raise MeshError.at(path, "the mesh needs more memory than there is") from error


def _read_text(
    path: Path, data: bytes, limits: ReadingLimits, submesh: str, note: Note
) -> MeshArrays:
    """Read a mesh from the bytes of its file, whose faults that have a line are reported with it."""
    suffix = path.suffix.lower()
    if suffix in _TEXT_SUFFIXES:
        data = as_utf8(data, partial(MeshError.at, path))
    if suffix == ".stl":
        data = trim_stl(path, data, note=note)
    elif suffix == ".obj":
        data = normalize_obj(path, data)
    try:
        return _read(path, data, limits, submesh)
    except MeshError:
        if suffix == ".obj":
            normalize_obj_faces(path, data)
        elif suffix == ".stl":
            check_stl_vertices(path, data)
        raise


def _read(path: Path, data: bytes, limits: ReadingLimits, submesh: str) -> MeshArrays:
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
    merged = _merged(MeshArrays(vertices, faces.astype(np.int32), colors))
    if not len(merged.faces):
        raise MeshError.at(
            path, "the mesh is empty: all its triangles have two corners in one place"
        )
    return merged


def scaled(arrays: MeshArrays, scale: Triple) -> MeshArrays:
    """Return a mesh scaled along x, y, z; the faces of a mirrored mesh are reversed, to point outwards."""
    faces = arrays.faces
    if np.prod(np.sign(scale)) < 0.0:
        faces = np.ascontiguousarray(faces[:, ::-1])
    return MeshArrays(arrays.vertices * np.asarray(scale), faces, arrays.colors)


def _source_of(mesh: MeshSpec, *, packages: PackageResolver) -> str:
    """Return the note by which a shape remembers its file: a portable URI, or the file's name; and scale and part."""
    name = packages.portable_uri(mesh.path) or mesh.path.name
    name += f"#submesh={mesh.submesh}" if mesh.submesh else ""  # of which JSON writes the arrays
    if mesh.scale != (1.0, 1.0, 1.0):
        name += f"#scale={','.join(repr(factor) for factor in mesh.scale)}"
    return name if mesh.part is None else f"{name}#part={mesh.part}"


def mesh_of_source(source: str, packages: PackageResolver) -> MeshSpec | None:
    """Return the mesh that a shape's source names, ``None`` when it leads nowhere here."""
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
    """Return the meshes of a file, in metres, each moved to where the file's scene puts it."""
    if path.suffix.lower() in (".glb", ".gltf"):
        found, unit = read_gltf(path, data, limits, submesh), 1.0
    else:
        # trimesh catches everything, interrupts included, while it imports and reads
        with interrupts_kept():
            found, unit = _parts_by_trimesh(path, data, limits, submesh)
    # counted before any mesh is copied to where it is used
    triangles = sum(len(faces) for _, faces, _, _ in found)
    if triangles > limits.mesh_triangles:
        raise MeshError.at(
            path, f"the mesh has {triangles} triangles, expected at most {limits.mesh_triangles}"
        )
    if path.suffix.lower() == ".stl":
        check_stl_text(path, data, triangles)
    return [
        _moved(vertices * unit, faces, matrix, unit, color)
        for vertices, faces, matrix, color in found
        if len(faces)
    ]


def _parts_by_trimesh(
    path: Path, data: bytes, limits: ReadingLimits, submesh: str
) -> tuple[list[Part], float]:
    """Return vertices, faces, transform and colour of each mesh of a file, and the metres in its unit."""
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
                _unprocessed(text, path.suffix.lower().removeprefix("."), materials)
            )
            found = [
                (
                    np.asarray(geometry.vertices, dtype=np.float64),
                    np.asarray(geometry.faces, dtype=np.int64),
                    matrix,
                    _color_of(geometry, materials),
                )
                for geometry, matrix in _placed(scene, submesh)
            ]
    except MemoryError:
        raise
    except Exception as error:
        # whatever the many readers behind trimesh raise means that the file is broken
        logger.debug("trimesh could not read %s", path, exc_info=True)
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise MeshError.at(path, f"the mesh cannot be read: {reason}") from error
    return found, unit


def _color_of(geometry: Any, materials: MtlFile | None) -> int:
    material = getattr(geometry.visual, "material", None)
    if materials is not None:
        return materials.colors.get(getattr(material, "name", None), UNSPECIFIED)
    return (
        UNSPECIFIED
        if material is None
        else pack_color([float(part) / 255.0 for part in material.main_color])
    )


def _unprocessed(data: bytes, kind: str, materials: MtlFile | None) -> dict[str, Any]:
    """Return what trimesh's reader of a format makes, marked to be left as it is.

    ``trimesh.load_scene(..., process=False)`` does not hand the wish on to files of several parts:
    their vertices would be merged, and those that are not finite omitted, before use.
    """
    from trimesh.exchange.load import mesh_loaders

    read = cast("dict[str, Any]", mesh_loaders)[kind]
    made: dict[str, Any] = read(
        file_obj=io.BytesIO(data),
        file_type=kind,
        resolver=materials,
        metadata=None,
        process=False,
        skip_materials=materials is None,
    )
    for part in made["geometry"].values() if "geometry" in made else (made,):
        part["process"] = False
    return made


def _placed(scene: Any, submesh: str) -> list[tuple[Any, npt.NDArray[np.float64]]]:
    """Return the meshes of a trimesh scene, or those of a name, with their transforms (4, 4), in the file's order."""
    placed = []
    for node in scene.graph.nodes_geometry:
        matrix, name = scene.graph[node]
        geometry = scene.geometry[name]
        if hasattr(geometry, "faces") and (not submesh or submesh in (node, name)):
            placed.append((geometry, np.asarray(matrix, dtype=np.float64)))
    return placed


def _moved(
    vertices: npt.NDArray[np.float64],
    faces: npt.NDArray[np.int64],
    matrix: npt.NDArray[np.float64],
    unit: float,
    color: int,
) -> MeshArrays:
    """Return a mesh moved by a 4 x 4 matrix, which may mirror, and whose translation is in units of ``unit`` metres."""
    if not np.array_equal(matrix, np.eye(4)):
        # what is no number then is refused with its file
        with np.errstate(over="ignore", invalid="ignore"):
            matrix = np.round(matrix, _DIGITS)
            vertices = product(vertices, matrix[:3, :3].T) + unit * matrix[:3, 3]
            if np.linalg.det(matrix[:3, :3]) < 0.0:
                faces = faces[:, ::-1]
    return MeshArrays(vertices, faces, np.full(len(faces), color, dtype=np.uint32))


def _plain_collada(path: Path, data: bytes) -> tuple[bytes, float]:
    """Return a COLLADA file without everything but its geometry and plain colours, and the metres in one of its units.

    Other looks are omitted because a broken reference to a texture would otherwise take the
    geometry with it.
    """
    from lxml import etree

    _refuse_document_type(path, data)
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True
    )
    try:
        root = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, OSError) as error:
        raise MeshError.at(path, f"the mesh cannot be read: {error}") from error
    for element in list(root.iter(*(f"{{*}}{name}" for name in _LOOKS))):
        parent = element.getparent()
        if parent is not None:
            parent.remove(element)
    keep_plain_effects(root)
    for unit in root.findall("{*}asset/{*}unit"):
        try:
            metres = float(unit.get("meter", "1"))
        except ValueError:
            metres = 0.0
        if not (np.isfinite(metres) and metres > 0.0):
            raise MeshError.at(
                path,
                f"the unit '{unit.get('meter')}' is no length in metres",
                line=cast("int | None", unit.sourceline),
            )
        return etree.tostring(root), metres
    return etree.tostring(root), 1.0


def _refuse_document_type(path: Path, data: bytes) -> None:
    """Refuse a COLLADA file that could define entities, since a parser of large files lets these grow without bound.

    A document type comes before the root, so no more is read than that takes; by a parser that has
    bounds.
    """
    from lxml import etree

    parser = etree.XMLPullParser(
        events=("start",), resolve_entities=False, no_network=True, load_dtd=False
    )
    try:
        for begin in range(0, len(data), _FIRST_BYTES):
            parser.feed(data[begin : begin + _FIRST_BYTES])
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
    """Return the index of the first of each group of equal rows, (groups,), and the group of each row, (rows,).

    As :func:`numpy.unique` does, several times faster for millions of rows: 64-bit mixtures of
    their bits are sorted, and the rows themselves only should two of them mix to one number.
    """
    mixed = np.zeros(len(rows), dtype=np.uint64)
    for column in np.ascontiguousarray(rows).view(np.uint64).T:
        mixed = (mixed ^ column) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    _, first, inverse = np.unique(mixed, return_index=True, return_inverse=True)
    if not np.array_equal(rows[first][inverse], rows):
        _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first, inverse.reshape(-1)


def _merged(arrays: MeshArrays) -> MeshArrays:
    """Return the mesh without repeated vertices, without unused ones, and without faces that lost a corner."""
    used = np.flatnonzero(np.bincount(arrays.faces.reshape(-1), minlength=len(arrays.vertices)))
    vertices = arrays.vertices[used]
    first, inverse = _first_of_equal(vertices + 0.0)
    rank = np.empty(len(first), dtype=np.int32)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first), dtype=np.int32)
    new_index = np.full(len(arrays.vertices), -1, dtype=np.int32)
    new_index[used] = rank[inverse]
    faces = new_index[arrays.faces]
    whole = (
        (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])
    )
    return MeshArrays(
        vertices[np.sort(first)], np.ascontiguousarray(faces[whole]), arrays.colors[whole]
    )
