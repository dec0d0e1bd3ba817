"""Reader of MJCF models, which MuJoCo compiles.

A body becomes a frame of its name, and a joint the joint of this frame. If a body has several
joints, or a joint away from its origin, there are intermediate frames ``BODY/JOINT``. A hinge
without limits is continuous, a ball joint becomes three hinges, and a free joint a free edge. Sites
become frames. A joint that an equality couples linearly to another becomes a mimic joint.

Pairs that MuJoCo never checks may touch: parent and child, excluded pairs, and pairs whose
collision masks have no common bit.

MuJoCo reads no files. Included files, meshes and height fields are found like those of all scene
files, and passed to it. Elements without a counterpart in a scene, such as actuators, sensors,
tendons, cameras and textures, are omitted with a note for each tag. The reader needs the extra
``formats``.
"""

from __future__ import annotations

import itertools
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tmkit._support.extras import importing
from tmkit._support.limits import is_file, read_bytes
from tmkit._support.source_location import Note, SourceLocation
from tmkit._support.xml import XmlElement, read_xml
from tmkit.errors import FileFormatError
from tmkit.formats.mesh.package_uris import VISUAL_AS_COLLISION, PackageResolver
from tmkit.formats.mesh.solids import ellipsoid
from tmkit.formats.spec.model import AllowedPairSpec, FrameSpec, SceneSpecification
from tmkit.formats.spec.parts import (
    GeometrySpec,
    InertiaSpec,
    JointSpec,
    MimicSpec,
    PoseSpec,
    PrimitiveSpec,
)
from tmkit.formats.urdf.reader import UNIT_AXES
from tmkit.graph import HeightField, Mesh, Plane, Shape

if TYPE_CHECKING:
    from lxml.etree import _Element

_OMITTED_TAGS = (
    "actuator",
    "sensor",
    "tendon",
    "keyframe",
    "custom",
    "visual",
    "statistic",
    "skin",
    "deformable",
    "flex",
    "extension",
    "camera",
    "light",
    "composite",
    "flexcomp",
    "plugin",
    "texture",
    "pair",
    "model",
)
"""Tags of the elements without a counterpart in a scene."""

_SILENT_TAGS = ("visual", "statistic", "custom", "keyframe")
"""Omitted tags without a note, since they do not describe the world."""

_MAX_COPIES = 10_000
"""Largest number of bodies and shapes that ``<replicate>`` may make."""

_MAX_INCLUDE_DEPTH = 32
"""Largest depth of includes."""

_MAX_SQUARED_BODIES = 100_000
"""Largest squared number of collision bodies whose masks are compared pairwise."""

_MIN_HIDDEN_GROUP = 3
"""Smallest geom group that MuJoCo hides by default."""

_DEFAULT_GEOM_COLOR = [0.5, 0.5, 0.5, 1.0]
"""Default colour of a geom, in place of which the colour of its material applies."""


def read_mjcf(path: Path, *, packages: PackageResolver, note: Note) -> SceneSpecification:
    """Read a model and the files that it includes.

    Args:
        path: the file.
        packages: resolver of file URIs, with the limits of the load.
        note: receiver of import notes.

    Raises:
        FileFormatError: if the model is invalid or MuJoCo rejects it.
    """
    with importing("mujoco", "formats", f"{path}: reading MJCF needs"):
        import mujoco

    source = _Source(read_xml(path, root="mujoco", note=note), packages, note)
    text, assets = source.prepare()
    try:
        with warnings.catch_warnings():  # on settings without a counterpart in a scene
            warnings.simplefilter("ignore")
            specification = mujoco.MjSpec.from_string(text, assets=assets)
            model = specification.compile()
    except (ValueError, RuntimeError) as error:
        # Remove the line number, which is that of the prepared text.
        reason = re.sub(r",?\s*(\(?line \d+.*)$", "", str(error).split("\n")[0])
        reason = re.sub(r"\s+", " ", reason)
        place = source.place_of_message(str(error))
        raise place.error(f"MuJoCo rejects the model: {reason}") from None
    _check_ranges(specification, source)
    return _Model(mujoco, model, source).specification()


def _check_ranges(specification: Any, source: _Source) -> None:
    """Check that the lower limit of each joint is below the upper limit.

    MuJoCo ignores such a range without a message.

    Raises:
        FileFormatError: if a lower limit is not below the upper limit.
    """
    for joint in specification.joints:
        lower, upper = map(float, joint.range)
        is_written = (lower, upper) != (0.0, 0.0)
        if is_written and lower >= upper and joint.limited:
            place = source.places.get(("joint", joint.name), source.root.place)
            reason = f"the range of joint '{joint.name}' goes from {lower:g} to {upper:g}"
            raise place.error(f'{reason}; expected lower < upper, or limited="false"')


@dataclass(slots=True)
class _Source:
    """Text of a model and of the files that it includes, before the compilation.

    Attributes:
        root: root element of the model.
        packages: resolver of file URIs.
        note: receiver of import notes.
        places: location of each element by kind and name.
        included_files: files that have been included.
    """

    root: XmlElement
    packages: PackageResolver
    note: Note
    places: dict[tuple[str, str], SourceLocation] = field(default_factory=dict)
    included_files: set[Path] = field(default_factory=set)

    def prepare(self) -> tuple[str, dict[str, bytes]]:
        """Return the text for MuJoCo, without omitted elements, and its files by name.

        Raises:
            FileFormatError: if an include, a ``<replicate>`` or a mesh is invalid.
        """
        from lxml import etree

        top = self.root.element
        self.insert_includes(self.root, ())
        self.remove_omitted(top)
        self.check_copies(top)
        for element in top.iter("material"):
            for layer in list(element):
                element.remove(layer)
            element.attrib.pop("texture", "")
        for kind in ("body", "joint", "geom", "site"):
            for element in top.iter(kind):
                if name := element.get("name"):
                    self.places.setdefault((kind, name), self.place(element))
        assets = dict(self.assets(top))
        for element in top.iter():
            element.attrib.pop("_file", "")
        return etree.tostring(top, encoding="unicode"), assets

    def remove_omitted(self, top: _Element) -> None:
        """Remove the elements without a counterpart in a scene, with a note for each tag."""
        places: dict[str, SourceLocation] = {}
        counts: Counter[str] = Counter()
        for element in list(top.iter(*_OMITTED_TAGS)):
            tag, parent = str(element.tag), element.getparent()
            if parent is None or any(
                str(ancestor.tag) in _OMITTED_TAGS for ancestor in element.iterancestors()
            ):
                continue
            if parent.tag == "default" and tag in ("camera", "light", "pair"):
                continue
            places.setdefault(tag, self.place(element))
            counts[tag] += max(1, len(element)) if tag in ("actuator", "sensor", "tendon") else 1
            parent.remove(element)
        for element in list(top.findall(".//equality/*")):
            if element.tag != "joint":
                places.setdefault("equality", self.place(element))
                counts["equality"] += 1
                _remove(element)
        for tag, place in places.items():
            if tag not in _SILENT_TAGS:
                text = f"<{tag}> has no part in a scene, and is omitted ({counts[tag]} in all)"
                self.note(place, text)

    def insert_includes(self, file: XmlElement, ancestors: tuple[Path, ...]) -> None:
        """Replace each include by the content of its file.

        Args:
            file: root element of the file with the includes.
            ancestors: files that include the file, and the file itself if it is included.

        Raises:
            FileFormatError: if a file is missing, is included twice, or includes itself.
        """
        for element in list(file.element.iter("include")):
            include, name = XmlElement(element, file.file), element.get("file", "")
            path = self.find_file(include, name, (self.root.path.parent, file.path.parent))
            is_cycle = path in ancestors or path == self.root.path
            if is_cycle or len(ancestors) > _MAX_INCLUDE_DEPTH:
                raise include.place.error(
                    f"'{element.get('file')}' includes itself, or includes are too deep"
                )
            if path in self.included_files:
                raise include.place.error(
                    f"'{element.get('file')}' is already included, and MuJoCo takes a file once"
                )
            self.included_files.add(path)
            self.packages.count_include(include.place)
            content = read_xml(path, root=("mujoco", "mujocoinclude"), note=self.note)
            self.insert_includes(content, (*ancestors, path))
            for child in list(content.element):
                if isinstance(child.tag, str) and "_file" not in child.attrib:
                    child.set("_file", str(path))
                element.addprevious(child)
            _remove(element)

    def find_file(self, element: XmlElement, file: str, folders: tuple[Path, ...]) -> Path:
        """Return the path of a file in the first folder that has it."""
        for folder in folders[:-1]:
            if is_file(folder / file):
                return self.packages.resolve(file, folder=folder, place=element.place)
        return self.packages.resolve(file, folder=folders[-1], place=element.place)

    def check_copies(self, top: _Element) -> None:
        """Check that the copies of ``<replicate>`` fit into memory.

        Raises:
            FileFormatError: if there are more than :data:`_MAX_COPIES`.
        """
        total = 0
        for element in top.iter("replicate"):
            copies = 1
            for replicate in (element, *element.iterancestors("replicate")):
                count = replicate.get("count", "1").strip()
                copies *= int(count) if count.isdigit() and len(count) < 9 else _MAX_COPIES + 1
            total += copies * (1 + sum(1 for _ in element.iter("body", "geom")))
            if total > _MAX_COPIES:
                raise self.place(element).error(
                    f"<replicate> makes more than {_MAX_COPIES} bodies and shapes"
                )

    def assets(self, top: _Element) -> Iterator[tuple[str, bytes]]:
        """Yield the files of meshes and height fields under new names, and set these names.

        Raises:
            MeshError: if a file is missing.
            FileFormatError: if a file cannot be read.
        """
        settings = {"meshdir": "", "assetdir": "", "texturedir": "", "strippath": "false"}
        for compiler in top.iter("compiler"):
            settings |= {
                key: str(compiler.attrib.pop(key)) for key in settings if key in compiler.attrib
            }
        mesh_folder = settings["meshdir"] or settings["assetdir"]
        has_file_names_only = settings["strippath"] == "true"
        number = itertools.count(1)
        for element in list(top.iter("mesh", "hfield")):
            file = element.get("file")
            if file is None or next(element.iterancestors("default"), None) is not None:
                continue
            place = self.place(element)
            name = Path(file).name if has_file_names_only else file
            folder = self.root.path.parent
            path = self.packages.resolve_mesh(
                str(Path(mesh_folder, name)) if mesh_folder else name, folder=folder, place=place
            )
            limit = self.packages.limits.mesh_bytes
            data = read_bytes(path, limit=limit, error=partial(_asset_error, place, file))
            if "name" not in element.attrib:
                element.set("name", Path(name).stem)
            asset = f"asset{next(number)}{path.suffix}"
            element.set("file", asset)
            yield asset, data

    def place(self, element: _Element) -> SourceLocation:
        """Return the location of an element in its original file."""
        ancestors = itertools.chain([element], element.iterancestors())
        files = (item.attrib["_file"] for item in ancestors if "_file" in item.attrib)
        file = next(files, self.root.path)
        return SourceLocation(str(file), cast("int | None", element.sourceline))

    def place_of_message(self, message: str) -> SourceLocation:
        """Return the location of the element that a message of MuJoCo names, or of the model."""
        match = re.search(r"Element name '([^']+)'|'([^']+)'", message)
        name = (match[1] or match[2]) if match else ""
        places = (place for (_, key), place in self.places.items() if key == name)
        return next(places, self.root.place)


class _Model:
    """Conversion of a compiled model to a specification.

    Args:
        mujoco: the module.
        model: the ``mujoco.MjModel``.
        source: text of the model.
    """

    def __init__(self, mujoco: Any, model: Any, source: _Source) -> None:
        self.mujoco, self.model, self.source = mujoco, model, source
        self.names = {kind: self.object_names(kind) for kind in ("body", "joint", "site", "geom")}
        self.mesh = cache(self._mesh)
        self.field = cache(self._field)

    def object_names(self, kind: str) -> list[str]:
        """Return the names of all objects of a kind, with new names for those without one."""
        count_names = {"body": "nbody", "joint": "njnt", "site": "nsite", "geom": "ngeom"}
        object_type = getattr(self.mujoco.mjtObj, f"mjOBJ_{kind.upper()}")
        count = getattr(self.model, count_names[kind])
        model_names = [
            self.mujoco.mj_id2name(self.model, object_type, number) for number in range(count)
        ]
        known_names = {*model_names}
        names = []
        for number, model_name in enumerate(model_names):
            name = model_name or f"{kind}_{number}"
            while not model_name and name in known_names:
                name += "_"
            names.append(name)
        return names

    def place(self, kind: str, number: int) -> SourceLocation:
        """Return the location of an object."""
        return self.source.places.get((kind, self.names[kind][number]), self.source.root.place)

    def specification(self) -> SceneSpecification:
        """Return the specification of the model."""
        mimics = dict(self.mimics())
        frames: list[FrameSpec] = [self.world_frame()]
        for body in range(1, self.model.nbody):
            frames += self.body_frames(body, mimics)
        names = {frame.name for frame in frames}
        for site in range(self.model.nsite):
            name = self.names["site"][site]
            while name in names:
                name += "_site"
            names.add(name)
            pose = _pose(self.model.site_pos[site], self.model.site_quat[site])
            parent = self.names["body"][self.model.site_bodyid[site]]
            frames.append(FrameSpec(name, parent, self.place("site", site), pose))
        return SceneSpecification(tuple(frames), tuple(self.allowed_pairs()))

    def world_frame(self) -> FrameSpec:
        """Return the frame of the world."""
        return FrameSpec("world", None, self.source.root.place, geometry=tuple(self.geometry(0)))

    def body_frames(self, number: int, mimics: dict[int, MimicSpec]) -> Iterator[FrameSpec]:
        """Yield the intermediate frames of a body, and its frame.

        Args:
            number: number of the body.
            mimics: mimic rule by number of the joint.
        """
        model = self.model
        name, place = self.names["body"][number], self.place("body", number)
        parent = self.names["body"][model.body_parentid[number]]
        position, quat_wxyz = np.array(model.body_pos[number]), np.array(model.body_quat[number])
        first = model.body_jntadr[number]
        joints = [] if first < 0 else range(first, first + model.body_jntnum[number])
        content: dict[str, Any] = {
            "geometry": tuple(self.geometry(number)),
            "inertia": self.inertia(number, place),
        }
        steps = [step for joint in joints for step in self.steps(joint, mimics)]
        for index, (joint_name, joint, anchor) in enumerate(steps):
            is_last = index == len(steps) - 1 and not anchor.any()
            frame_name = name if is_last else f"{name}/{joint_name}"
            pose = _pose(position + _rotate(quat_wxyz, anchor), quat_wxyz)
            frame = FrameSpec(frame_name, parent, place, pose, replace(joint, name=joint_name))
            if is_last:
                yield replace(frame, **content)
                return
            yield frame
            parent, position, quat_wxyz = frame_name, -anchor, np.array([1.0, 0.0, 0.0, 0.0])
        yield FrameSpec(name, parent, place, _pose(position, quat_wxyz), **content)

    def steps(
        self, joint: int, mimics: dict[int, MimicSpec]
    ) -> Iterator[tuple[str, JointSpec, np.ndarray]]:
        """Yield the joints with at most one degree of freedom that represent a joint.

        Args:
            joint: number of the joint.
            mimics: mimic rule by number of the joint.

        Yields:
            Name, joint, and (3,) anchor relative to the frame before [m].
        """
        model, place, name = self.model, self.place("joint", joint), self.names["joint"][joint]
        kinds = self.mujoco.mjtJoint
        kind, anchor = model.jnt_type[joint], np.array(model.jnt_pos[joint])
        if kind == kinds.mjJNT_FREE:
            yield name, JointSpec("free", place=place), np.zeros(3)
            return
        is_limited = bool(model.jnt_limited[joint])
        lower, upper = model.jnt_range[joint].tolist() if is_limited else (-math.inf, math.inf)
        if kind == kinds.mjJNT_BALL:
            self.source.note(
                place, f"the ball joint '{name}' is read as three hinges, '{name}/x', '/y' and '/z'"
            )
            lower = -upper
            for letter, direction in UNIT_AXES.items():
                spec = JointSpec("revolute", axis=direction, lower=lower, upper=upper, place=place)
                yield f"{name}/{letter}", spec, anchor if letter == "x" else np.zeros(3)
            return
        hinge_type = "revolute" if is_limited else "continuous"
        dof = model.jnt_dofadr[joint]
        spec = JointSpec(
            "prismatic" if kind == kinds.mjJNT_SLIDE else hinge_type,
            axis=_triple(model.jnt_axis[joint]),
            lower=lower,
            upper=upper,
            effort=self.effort(joint),
            damping=float(np.ravel(model.dof_damping[dof])[0]),
            friction=float(model.dof_frictionloss[dof]),
            offset=-float(model.qpos0[model.jnt_qposadr[joint]]),
            mimic=mimics.get(joint),
            place=place,
        )
        yield name, spec, anchor

    def effort(self, joint: int) -> float:
        """Return the largest total effort of the actuators on a joint [N or N m]."""
        is_limited = bool(self.model.jnt_actfrclimited[joint])
        return max(map(abs, self.model.jnt_actfrcrange[joint].tolist())) if is_limited else math.inf

    def mimics(self) -> Iterator[tuple[int, MimicSpec]]:
        """Yield each joint that an equality couples linearly to another, with the mimic rule."""
        model = self.model
        for number in range(model.neq):
            follower, leader = int(model.eq_obj1id[number]), int(model.eq_obj2id[number])
            place = self.place("joint", follower)
            offset, multiplier, *higher = model.eq_data[number][:5].tolist()
            is_active = bool(model.eq_active0[number])
            if leader < 0 or any(higher) or not is_active:
                effect = "is fixed" if leader < 0 else "follows another by a polynomial"
                effect = effect if is_active else "follows another, which is not active,"
                name = self.names["joint"][follower]
                self.source.note(place, f"the equality by which '{name}' {effect} is omitted")
                continue
            follower_zero = float(model.qpos0[model.jnt_qposadr[follower]])
            leader_zero = float(model.qpos0[model.jnt_qposadr[leader]])
            offset = offset + follower_zero - multiplier * leader_zero
            yield follower, MimicSpec(self.names["joint"][leader], multiplier, offset, place)

    def inertia(self, body: int, place: SourceLocation) -> InertiaSpec | None:
        """Return the mass properties of a body, or None if its mass is 0."""
        model = self.model
        if not model.body_mass[body]:
            return None
        x, y, z = model.body_inertia[body].tolist()
        origin = _pose(model.body_ipos[body], model.body_iquat[body])
        return InertiaSpec(float(model.body_mass[body]), place, origin, (x, 0.0, 0.0, y, 0.0, z))

    def geometry(self, body: int) -> Iterator[GeometrySpec]:
        """Yield the shapes of a body that are drawn or collide."""
        model = self.model
        for geom in self.geoms(body):
            place = self.place("geom", geom)
            material = model.geom_matid[geom]
            color = model.geom_rgba[geom]
            if material >= 0 and np.allclose(color, _DEFAULT_GEOM_COLOR):
                color = model.mat_rgba[material]
            r, g, b, a = map(float, color)
            collision = self.mask(geom) != (0, 0)
            is_hidden = collision and model.geom_group[geom] >= _MIN_HIDDEN_GROUP
            visual = a > 0.0 and not is_hidden
            shape = self.shape(geom, place)
            if shape is None or not (visual or collision):
                continue
            pose = _pose(model.geom_pos[geom], model.geom_quat[geom])
            is_mesh = not isinstance(shape, PrimitiveSpec) and shape.kind == "mesh"
            yield GeometrySpec(
                shape,
                place,
                pose,
                color=(r, g, b, a),
                visual=visual,
                collision=collision,
                level="hull" if is_mesh and collision else None,
                friction=float(model.geom_friction[geom][0]) if collision else None,
            )

    def geoms(self, body: int) -> range:
        """Return the numbers of the geoms of a body."""
        first = self.model.body_geomadr[body]
        return range(first, first + self.model.body_geomnum[body]) if first >= 0 else range(0)

    def shape(self, geom: int, place: SourceLocation) -> PrimitiveSpec | Shape | None:
        """Return the shape of a geom, or None with a note if its kind is not supported."""
        model, kinds = self.model, self.mujoco.mjtGeom
        kind, name = int(model.geom_type[geom]), self.names["geom"][geom]
        x, y, z = model.geom_size[geom].tolist()
        if kind == int(kinds.mjGEOM_BOX):
            return PrimitiveSpec("box", (2 * x, 2 * y, 2 * z))
        if kind == int(kinds.mjGEOM_SPHERE):
            return PrimitiveSpec("sphere", (x,))
        if kind == int(kinds.mjGEOM_CYLINDER):
            return PrimitiveSpec("cylinder", (x, 2 * y))
        if kind == int(kinds.mjGEOM_CAPSULE):
            return PrimitiveSpec("capsule", (x, 2 * y))
        if kind == int(kinds.mjGEOM_PLANE):
            return Plane()
        if kind == int(kinds.mjGEOM_MESH):
            return self.mesh(int(model.geom_dataid[geom]))
        if kind == int(kinds.mjGEOM_HFIELD):
            return self.field(int(model.geom_dataid[geom]))
        if kind == int(kinds.mjGEOM_ELLIPSOID):
            self.source.note(place, f"the ellipsoid '{name}' is read as a mesh of 320 triangles")
            return ellipsoid((x, y, z))
        self.source.note(place, f"the shape of '{name}' is of a kind that is not read")
        return None

    def _mesh(self, number: int) -> Shape:
        """Return a mesh asset."""
        model = self.model
        vertices, faces = model.mesh_vertadr[number], model.mesh_faceadr[number]
        name = self.mujoco.mj_id2name(model, self.mujoco.mjtObj.mjOBJ_MESH, number) or ""
        return Mesh(
            model.mesh_vert[vertices : vertices + model.mesh_vertnum[number]].astype(np.float64),
            model.mesh_face[faces : faces + model.mesh_facenum[number]],
            source=name,
        )

    def _field(self, number: int) -> Shape:
        """Return a height field asset."""
        model = self.model
        rows, columns = model.hfield_nrow[number], model.hfield_ncol[number]
        first = model.hfield_adr[number]
        x, y, height, depth = model.hfield_size[number].tolist()
        fractions = model.hfield_data[first : first + rows * columns].reshape(rows, columns)
        heights = fractions.astype(np.float64) * height
        return HeightField(heights, size=[2 * x, 2 * y], floor=-depth)

    def allowed_pairs(self) -> Iterator[AllowedPairSpec]:
        """Yield the pairs of bodies that MuJoCo never checks."""
        model, place, names = self.model, self.source.root.place, self.names["body"]
        pairs: set[tuple[int, int]] = set()
        for signature in model.exclude_signature.tolist():
            first, second = signature >> 16, signature & 0xFFFF
            pairs.add((first, second))
            yield AllowedPairSpec(names[first], names[second], "excluded", place)
        masks = {body: self.masks(body) for body in range(model.nbody)}
        solid = [body for body, body_masks in masks.items() if body_masks]
        for body in solid:
            parent = int(model.body_parentid[model.body_weldid[body]])
            # MuJoCo checks a body against its parent only if the parent is fixed to the world.
            if parent and (parent, body) not in pairs:
                pairs.add((parent, body))
                yield AllowedPairSpec(names[parent], names[body], "adjacent", place)
        if len(set().union(*masks.values())) < 2 or len(solid) ** 2 > _MAX_SQUARED_BODIES:
            return
        for first, second in itertools.combinations(solid, 2):
            may_collide = any(a & d or c & b for a, b in masks[first] for c, d in masks[second])
            if not may_collide and (first, second) not in pairs:
                yield AllowedPairSpec(names[first], names[second], "masks", place)

    def masks(self, body: int) -> set[tuple[int, int]]:
        """Return the collision masks of the collision geoms of a body."""
        return {mask for mask in map(self.mask, self.geoms(body)) if any(mask)}

    def mask(self, geom: int) -> tuple[int, int]:
        """Return the contact type and the contact affinity of a geom.

        If visual shapes collide in this load, a geom has the default masks of MuJoCo where no geom
        of its body collides.
        """
        model = self.model
        mask = int(model.geom_contype[geom]), int(model.geom_conaffinity[geom])
        if any(mask) or self.source.packages.meshes != VISUAL_AS_COLLISION:
            return mask
        has_collision_geom = any(
            model.geom_contype[other] or model.geom_conaffinity[other]
            for other in self.geoms(model.geom_bodyid[geom])
        )
        return mask if has_collision_geom else (1, 1)


def _remove(element: _Element) -> None:
    """Remove an element from its parent."""
    parent = element.getparent()
    if parent is not None:
        parent.remove(element)


def _asset_error(place: SourceLocation, file: str, reason: str) -> FileFormatError:
    """Return the error of a file that cannot be read."""
    return place.error(f"'{file}': {reason}")


def _triple(values: Any) -> tuple[float, float, float]:
    x, y, z = map(float, values)
    return x, y, z


def _pose(position: Any, quat_wxyz: Any) -> PoseSpec:
    """Return the pose of a position [m] and a quaternion."""
    w, x, y, z = map(float, quat_wxyz)
    quat_xyzw = None if (x, y, z) == (0.0, 0.0, 0.0) else (x, y, z, w)
    return PoseSpec(_triple(position), quat_xyzw=quat_xyzw)


def _rotate(quat_wxyz: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Return a (3,) vector rotated by a quaternion."""
    w, axis = quat_wxyz[0], quat_wxyz[1:]
    normal = np.cross(axis, vector)
    rotated: np.ndarray = vector + 2.0 * (w * normal + np.cross(axis, normal))
    return rotated
