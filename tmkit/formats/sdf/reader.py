"""Reader of SDF models and worlds, versions 1.3 to 1.12, including the files that they include.

A link becomes a frame of its name. Names have the prefix ``MODEL::`` if the file has several
models, and always in a nested or included model. A ``<frame>`` element becomes a frame that is
fixed to its link. A link without a joint above it is free in the world. In a static model it is
fixed, and all joints are fixed too. Shapes and masses of links are read as in URDF where both
formats agree.

``model://`` URIs are resolved like ``package://`` URIs. The file of a model is named by
``model.config``. Elements without a counterpart in a scene are omitted, with a note and a count for
each tag.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tmkit._support.limits import is_file
from tmkit._support.source_location import Note, did_you_mean
from tmkit._support.xml import XmlElement, read_xml
from tmkit.formats.mesh.package_uris import PackageResolver
from tmkit.formats.mesh.solids import ellipsoid
from tmkit.formats.sdf.frames import (
    MODEL_FRAME,
    TYPES,
    Node,
    Scope,
    SdfJoint,
    frames_of,
    is_true,
    pose_of,
)
from tmkit.formats.spec.model import AllowedPairSpec, FrameSpec, SceneSpecification
from tmkit.formats.spec.parts import (
    GeometrySpec,
    InertiaSpec,
    JointSpec,
    MeshSpec,
    PoseSpec,
    PrimitiveSpec,
    Quadruple,
)
from tmkit.formats.spec.values import build_forest, primitive, spec_of_pose
from tmkit.formats.urdf.reader import adjacent_pairs, inertia_of
from tmkit.formats.urdf.shapes import half_space, merge_shapes, simple_shape, single_shape
from tmkit.graph import Plane
from tmkit.spatial import Pose

_DEFAULT_DENSITY = 1000.0
"""Density of links with an ``auto`` inertia, by default [kg/m^3]."""

_SHAPE_TAGS = ("box", "cylinder", "capsule", "sphere", "mesh", "cone", "ellipsoid", "plane")
"""Tags of the shapes that are read."""

_IGNORED_SHAPE_TAGS = ("empty", "heightmap", "image", "polyline")
"""Tags of the shapes that are omitted."""


def content_of(
    link: Node, packages: PackageResolver
) -> tuple[tuple[GeometrySpec, ...], InertiaSpec | None]:
    """Return the shapes of a link, and its mass properties or None.

    The mass of an ``auto`` inertia is computed from the primitive collision shapes.
    """
    shapes = merge_shapes(
        link.element, packages=packages, shape=partial(_shape, link, packages), color=_color
    )
    inertial = link.element.child("inertial")
    if inertial is None:
        return shapes, None
    if not is_true(inertial, "auto"):
        inertia = inertia_of(inertial)
        return shapes, None if inertia is None else replace(inertia, origin=_origin(inertial, link))
    density = inertial.not_negative("density", _DEFAULT_DENSITY)
    masses = [density * _primitive_volume(part) for part in shapes]
    inertial.note(
        "the mass is that of the boxes, cylinders and other simple shapes, of one density"
    )
    shapes = tuple(
        replace(part, mass=mass or None) for part, mass in zip(shapes, masses, strict=True)
    )
    return shapes, InertiaSpec(sum(masses), inertial.place) if any(masses) else None


def _primitive_volume(part: GeometrySpec) -> float:
    """Return the volume of a primitive collision shape, or 0 for other shapes [m^3]."""
    if not part.collision or not isinstance(part.shape, PrimitiveSpec):
        return 0.0
    return primitive(part.shape.kind, part.shape.dimensions).volume


def _origin(part: XmlElement, link: Node) -> PoseSpec:
    """Return the pose of a part of a link relative to the link."""
    pose, relative_to = pose_of(part)
    if relative_to:
        reference = link.content_scope.find(relative_to, part)
        pose = link.world_pose().inverse() @ reference.world_pose() @ pose
    return spec_of_pose(pose)


def _shape(link: Node, packages: PackageResolver, part: XmlElement) -> GeometrySpec | None:
    """Return the shape of a ``<visual>`` or ``<collision>``, or None to omit it."""
    element = single_shape(
        part.required_child("geometry"), _SHAPE_TAGS, unlisted=_IGNORED_SHAPE_TAGS
    )
    origin, spec = _origin(part, link), None
    if element.tag == "plane":
        spec = GeometrySpec(Plane(), element.place, half_space(element, origin))
    elif element.tag == "cone":
        sizes = element.positive("radius"), element.positive("length")
        spec = GeometrySpec(PrimitiveSpec("cone", sizes), element.place, origin)
    elif element.tag == "ellipsoid":
        radii = element.triple("radii")
        if min(radii) <= 0.0:
            raise element.place.error(
                f"'radii' of <ellipsoid>: expected numbers above 0, received '{radii}'"
            )
        element.note("the ellipsoid is read as a mesh of 320 triangles")
        spec = GeometrySpec(ellipsoid(radii), element.place, origin)
    elif element.tag == "mesh":
        spec = _mesh(element, part.tag, origin, packages)
    elif element.tag not in _IGNORED_SHAPE_TAGS:
        spec = simple_shape(element, part.tag, origin, packages=packages)
    ode = part.element.find("surface/friction/ode")
    if spec is None or part.tag == "visual" or ode is None or ode.get("mu") is None:
        return spec
    return replace(spec, friction=part.around(ode).not_negative("mu", 0.0))


def _mesh(
    element: XmlElement, purpose: str, origin: PoseSpec, packages: PackageResolver
) -> GeometrySpec | None:
    """Return a mesh or submesh, or None if the load skips meshes.

    Args:
        element: the ``<mesh>`` element.
        purpose: "visual" or "collision".
        origin: pose of the mesh relative to the link.
        packages: resolver of mesh URIs.
    """
    uri = element.required_child("uri").text("value").replace("model://", "package://")
    if uri.startswith("/") and not is_file(Path(uri)):  # Bullet reads such URIs as relative
        uri = uri.lstrip("/")
    element.element.set("filename", uri)
    spec = simple_shape(element, purpose, origin, packages=packages)
    submesh = element.child("submesh")
    if submesh is None or spec is None or not isinstance(spec.shape, MeshSpec):
        return spec
    name, is_centred = submesh.text("name"), is_true(submesh, "center")
    return replace(spec, shape=replace(spec.shape, submesh=name, is_centred=is_centred))


def _color(visual: XmlElement) -> Quadruple | None:
    """Return the colour of a visual, or None if it has no valid colour.

    This is the diffuse colour of its material, or else the ambient colour, with the transparency of
    the visual.
    """
    material = visual.child("material")
    if material is None:
        return None
    name = next((name for name in ("diffuse", "ambient") if material.get(name)), None)
    if name is None:
        return None
    values = (*material.numbers(name, (3, 4)), 1.0)
    red, green, blue, alpha = values[:4]
    alpha *= 1.0 - visual.number("transparency", 0.0)
    if not all(0.0 <= value <= 1.0 for value in (red, green, blue, alpha)):
        material.note(f"the colour of <{name}> is not of numbers from 0 to 1; it is ignored")
        return None
    return red, green, blue, alpha


_MIN_VERSION = (1, 3)
"""Oldest version of SDF that is read."""

_MAX_VERSION = (1, 12)
"""Newest version of SDF that is read."""

_MAX_DEPTH = 64
"""Largest depth of nested models."""

_FILE_SUFFIXES = (".sdf", ".world", ".xml", ".urdf")
"""Suffixes of the URIs that name a file rather than the folder of a model."""

_CONTENT_TAGS = ("link", "joint", "frame", "model", "include")
"""Tags of the content of a model or world."""

_KNOWN_TAGS = {
    "model": (
        *_CONTENT_TAGS,
        "allow_auto_disable",
        "enable_wind",
        "pose",
        "self_collide",
        "static",
    ),
    "link": (
        "collision",
        "enable_wind",
        "gravity",
        "inertial",
        "kinematic",
        "must_be_base_link",
        "pose",
        "self_collide",
        "velocity_decay",
        "visual",
    ),
    "joint": (
        "axis",
        "axis2",
        "child",
        "gearbox_ratio",
        "gearbox_reference_body",
        "parent",
        "physics",
        "pose",
        "screw_thread_pitch",
        "thread_pitch",
    ),
}
"""Tags of the children without a note, by the tag of their parent."""

_OMITTED_TAGS = (
    "actor",
    "audio_source",
    "battery",
    "gripper",
    "heightmap",
    "image",
    "light",
    "particle_emitter",
    "plugin",
    "polyline",
    "population",
    "projector",
    "road",
    "sensor",
    "state",
)
"""Tags of the elements without a counterpart in a scene."""


def read_sdf(path: Path, *, packages: PackageResolver, note: Note) -> SceneSpecification:
    """Read a file and the files that it includes.

    Args:
        path: the file.
        packages: resolver of model and mesh URIs, with the limits of the load.
        note: receiver of import notes.

    Raises:
        FileFormatError: if a file is invalid.
    """
    return _Reader(packages, note).read(path)


@dataclass(frozen=True, slots=True)
class _Context:
    """Properties of a model or world that apply to its content.

    Attributes:
        scope: scope of the frames.
        model_frame: name of the frame of the model.
        version: version of the file.
        files: files that include the content, ending with its own.
        is_static: whether nothing in the model moves.
        depth: depth of nested models.
    """

    scope: Scope
    model_frame: str
    version: tuple[int, ...]
    files: tuple[Path, ...]
    is_static: bool = False
    depth: int = 0

    def frame_name(self, name: str) -> str:
        """Return the name of a frame, which differs for the frame of a merged model."""
        return self.model_frame if name == MODEL_FRAME else name


@dataclass(slots=True)
class _Reader:
    """Reader of one file and the files that it includes.

    Attributes:
        packages: resolver of model and mesh URIs.
        note: receiver of import notes.
        files: root elements of the files.
        model_files: file of an included model by the including folder and the URI.
        links: whether the model is static, by link.
        joints: joints in the order of the file.
        frames: ``<frame>`` elements in the order of the file.
        count: number of elements that were read.
    """

    packages: PackageResolver
    note: Note
    files: dict[Path, XmlElement] = field(default_factory=dict)
    model_files: dict[tuple[Path, str], Path] = field(default_factory=dict)
    links: dict[Node, bool] = field(default_factory=dict)
    joints: list[SdfJoint] = field(default_factory=list)
    frames: list[Node] = field(default_factory=list)
    count: int = 0

    def read(self, path: Path) -> SceneSpecification:
        """Return the frames and allowed pairs of a file."""
        root, version = self.open_file(path)
        worlds = root.children("world")
        top = worlds[0] if worlds else root
        if len(worlds) > 1:
            worlds[1].note("the file has several worlds; only the first is read")
        models = [*top.children("model"), *top.children("include")]
        if not worlds and not models:
            raise root.place.error("the file has neither a world nor a model")
        scope = Scope("")
        world = Node("world", "world", root, scope, scope, cached_pose=Pose.identity())
        scope.nodes["world"] = world
        context = _Context(scope, "world", version, (path,))
        self.read_content(top, context, is_only_model=len(models) == 1)
        return self.build(world)

    def open_file(self, path: Path) -> tuple[XmlElement, tuple[int, ...]]:
        """Return the root of a file and its version. A file is parsed once.

        Raises:
            FileFormatError: if the file is not an SDF file of a supported version.
        """
        if path not in self.files:
            root = read_xml(
                path, root=("sdf", "gazebo"), note=self.note, limits=self.packages.limits
            )
            self.files[path] = root
            _set_text_attributes(root)
            self.note_omitted(root)
        root = self.files[path]
        version = _version(root.text("version"))
        if not _MIN_VERSION <= version < (*_MAX_VERSION, 1):
            expected = "expected {}.{} to {}.{}".format(*_MIN_VERSION, *_MAX_VERSION)
            raise root.place.error(f"unknown version of SDF '{root.get('version')}', {expected}")
        return root, version

    @staticmethod
    def note_omitted(root: XmlElement) -> None:
        """Note each tag of omitted elements once, and each unknown element."""
        counts = Counter(str(element.tag) for element in root.element.iter(*_OMITTED_TAGS))
        for tag, count in counts.items():
            root.all(tag)[0].note(
                f"<{tag}> has no part in a scene, and is omitted ({count} in all)"
            )
        for element in root.element.iter(*_KNOWN_TAGS):
            if any(ancestor.tag in _OMITTED_TAGS for ancestor in element.iterancestors()):
                continue
            known_tags = _KNOWN_TAGS[str(element.tag)]
            for child in element.iterchildren("*"):
                if child.tag not in (*known_tags, *_OMITTED_TAGS):
                    tag = str(child.tag).rpartition("}")[2]
                    hint = did_you_mean(tag, known_tags)
                    root.around(child).note(f"<{tag}> of <{element.tag}> is not read{hint}")

    def read_content(
        self, element: XmlElement, context: _Context, *, is_only_model: bool = False
    ) -> None:
        """Read the content of a model or world.

        Args:
            element: the model or world.
            context: properties that apply to the content.
            is_only_model: whether the content is the only model of the file. Names in the model
                then have no prefix.
        """
        children = element.element.iterchildren(*_CONTENT_TAGS)
        for part in (element.around(child) for child in children):
            self.count += 1
            self.packages.limits.check_frame_count(self.count, part.place.error)
            if part.tag == "model":
                self.read_model(part, part, context, has_prefix=not is_only_model)
            elif part.tag == "include":
                self.read_include(part, context, has_prefix=not is_only_model)
            else:
                self.read_part(part, context)

    def read_part(self, part: XmlElement, context: _Context) -> None:
        """Read a link, joint or frame.

        Raises:
            FileFormatError: if the part is invalid or its name is not unique.
        """
        is_old = context.version < (1, 7)
        is_world = part.tag == "link" and part.get("name") == "world"
        if is_old and is_world and not part.all("geometry"):
            part.note("the name 'world' is reserved in SDF; this link is taken as the world")
            return
        name, scope = _name(part), context.scope
        pose, relative_to = pose_of(part)
        attached_to, kind, parent = "", "", ""
        if part.tag == "frame":
            attached_to = context.frame_name(part.get("attached_to") or context.model_frame)
        elif part.tag == "joint":
            kind = part.text("type")
            if kind not in TYPES:
                hint = f"{did_you_mean(kind, TYPES)} (known: {', '.join(sorted(TYPES))})"
                raise part.place.error(f"the joint '{name}' has the unknown type '{kind}'{hint}")
            parent = context.frame_name(part.required_child("parent").text("value"))
            attached_to = context.frame_name(part.required_child("child").text("value"))
            if parent == attached_to:
                raise part.place.error(
                    f"the joint '{name}' has '{parent}' as its parent and its child"
                )
        base = context.frame_name(relative_to or attached_to or context.model_frame)
        node = Node(f"{scope.prefix}{name}", part.tag, part, scope, scope, base, pose, attached_to)
        if part.tag == "link":
            self.links[node] = context.is_static
        elif part.tag == "frame":
            self.frames.append(node)
        else:
            kind = "fixed" if context.is_static else kind
            has_model_axes = context.version < (1, 5)
            joint = SdfJoint(node, kind, parent, context.model_frame, has_model_axes)
            self.joints.append(joint)
        scope.add(name, node, is_old=is_old)

    def read_model(
        self, element: XmlElement, placement: XmlElement, context: _Context, *, has_prefix: bool
    ) -> None:
        """Read a model.

        Args:
            element: the model.
            placement: element with the pose of the model, which is the model or an include.
            context: properties of the enclosing model or world.
            has_prefix: whether names in the model have its name as prefix.

        Raises:
            FileFormatError: if the model is invalid.
        """
        name, outer = placement.get("name") or _name(element), context.scope
        if context.depth > _MAX_DEPTH:
            raise placement.place.error(f"models are nested more than {_MAX_DEPTH} deep")

        # Add the frame of the model.
        is_merged = placement.tag == "include" and is_true(placement, "merge")
        model_frame = f"_merged__{name}{MODEL_FRAME}" if is_merged else MODEL_FRAME
        inner = outer if is_merged else Scope(f"{outer.prefix}{name}::" if has_prefix else "")
        pose, relative_to = pose_of(placement if placement.child("pose") is not None else element)
        base = context.frame_name(relative_to or context.model_frame)
        node = Node(f"{outer.prefix}{name}", "model", placement, outer, inner, base)
        outer.add(model_frame if is_merged else name, node, is_old=context.version < (1, 7))
        if not is_merged:
            outer.models[name] = inner
            inner.nodes[MODEL_FRAME] = node

        # Read the content.
        static_element = placement if placement.get("static") else element
        content = replace(
            context,
            scope=inner,
            model_frame=model_frame,
            is_static=context.is_static or is_true(static_element, "static"),
            depth=context.depth + 1,
        )
        n_outer = len(inner.nodes)  # not 0 for a merged model
        self.read_content(element, content)

        # Place the model by its content.
        names = [*inner.nodes][n_outer:]
        first_names = {inner.nodes[item].kind: item for item in reversed(names)}
        attached_to = (
            element.get("canonical_link")
            or first_names.get("link")
            or first_names.get("model")
            or ""
        )
        placement_frame = element.get("placement_frame")
        if placement.tag == "include":
            placement_frame = placement.get("placement_frame") or placement_frame
        if placement_frame and placement_frame != MODEL_FRAME:
            frame = inner.find(placement_frame, placement)
            pose = pose @ frame.pose_in_model(node).inverse()
        node.set_placement(pose, attached_to)

    def read_include(self, include: XmlElement, context: _Context, *, has_prefix: bool) -> None:
        """Read the model of an include.

        Raises:
            FileFormatError: if the URI is not that of one SDF model, or includes itself.
        """
        self.packages.count_include(include.place)
        uri = include.required_child("uri").text("value").replace("model://", "package://")
        if uri.startswith(("http://", "https://")):
            raise include.place.error(
                f"'{uri}': nothing is read from the network; download the model"
            )
        path = self.model_file(uri, include)
        if path.suffix.lower() == ".urdf":
            raise include.place.error(
                f"'{uri}' is a URDF; only SDF is included: load it beside this file"
            )
        if path in context.files:
            raise include.place.error(f"'{uri}' includes itself")
        root, version = self.open_file(path)
        models = root.children("model")
        if len(models) != 1:
            raise include.place.error(
                f"'{uri}' leads to {path}, which has {len(models)} models; expected one"
            )
        inner = replace(context, version=version, files=(*context.files, path))
        self.read_model(models[0], include, inner, has_prefix=has_prefix)

    def model_file(self, uri: str, include: XmlElement) -> Path:
        """Return the file of an included model. Each URI in a folder is resolved once."""
        key = (include.path.parent, uri)
        if key not in self.model_files:
            self.model_files[key] = self.resolve_model_file(uri, include)
        return self.model_files[key]

    def resolve_model_file(self, uri: str, include: XmlElement) -> Path:
        """Return the file of an included model, as named by its URI or its ``model.config``.

        Raises:
            FileFormatError: if ``model.config`` names no file of a supported version.
        """
        folder, place = include.path.parent, include.place
        if uri.lower().endswith(_FILE_SUFFIXES):
            return self.packages.resolve(uri, folder=folder, place=place)
        uri = uri.rstrip("/")
        path = self.packages.resolve(f"{uri}/model.config", folder=folder, place=place)
        config = read_xml(path, root="model", note=self.note)
        candidates = []
        for element in config.children("sdf"):
            version = _version(element.get("version") or "")
            file = (element.element.text or "").strip()
            if version < (*_MAX_VERSION, 1) and file:
                candidates.append((version, file))
        if not candidates:
            raise config.place.error(
                "<model> names no file of a version that is read; expected <sdf>FILE</sdf>"
            )
        _, file = max(candidates)
        return self.packages.resolve(f"{uri}/{file}", folder=folder, place=config.place)

    def build(self, world: Node) -> SceneSpecification:
        """Return the specification of everything that was read.

        Raises:
            FileFormatError: if a name is unknown, or frames form a cycle.
        """
        # Build the forest of joints.
        for joint in self.joints:
            joint.find_ends(world)
        static = {link for link, is_static in self.links.items() if is_static}
        roots = build_forest(world, [*self.links], static, self.joints)
        for joint in self.joints:
            name = f"the joint '{joint.node.name}'"
            if joint.above is None:
                joint.node.element.note(f"{name} closes a loop, and is omitted")
            elif joint.is_reversed:
                joint.node.element.note(f"{name} is reversed: its child is above")

        # Collect the frames of roots, of links on joints, and of <frame> elements.
        joints = {joint.node: joint for joint in self.joints if joint.above is not None}
        frames: list[FrameSpec] = []
        for link in (link for link in self.links if link in roots):
            root_joint = JointSpec("fixed" if link in static else "free", place=link.element.place)
            spec, pose = self.frame_spec(link), spec_of_pose(link.world_pose())
            frames.append(replace(spec, pose=pose, joint=root_joint))
        for joint in joints.values():
            link = joint.top if joint.is_reversed else joint.bottom
            frames += frames_of(self.frame_spec(link), joint, joints)
        for node in self.frames:
            link = node.link(world)
            pose = spec_of_pose(link.world_pose().inverse() @ node.world_pose())
            frames.append(FrameSpec(node.name, link.name, node.element.place, pose))
        return SceneSpecification(
            tuple(frames), (*adjacent_pairs(frames), *self.loop_pairs(frames))
        )

    def loop_pairs(self, frames: Sequence[FrameSpec]) -> Iterator[AllowedPairSpec]:
        """Yield the pairs of collision links that omitted joints connect."""
        solid = {frame.name for frame in frames if any(shape.collision for shape in frame.geometry)}
        for joint in self.joints:
            top, bottom = joint.top.name, joint.bottom.name
            is_loop = joint.above is None and joint.top is not joint.bottom
            if is_loop and {top, bottom} <= solid:
                yield AllowedPairSpec(top, bottom, "adjacent", joint.node.element.place)

    def frame_spec(self, link: Node) -> FrameSpec:
        """Return the frame of a link, as a child of ``world``."""
        shapes, inertia = content_of(link, self.packages)
        return FrameSpec(link.name, "world", link.element.place, geometry=shapes, inertia=inertia)


def _set_text_attributes(root: XmlElement) -> None:
    """Set the text of each leaf as its attribute ``value``, and as an attribute of its parent."""
    for element in root.element.iter():
        text, parent = (element.text or "").strip(), element.getparent()
        if len(element) or not text:
            continue
        element.set("value", text)
        if parent is not None and element.tag not in parent.attrib and ":" not in str(element.tag):
            parent.set(element.tag, text)


def _name(element: XmlElement) -> str:
    """Return the name of an element.

    Raises:
        FileFormatError: if SDF reserves the name.
    """
    name = element.text("name")
    if name == "world" or (name.startswith("__") and name.endswith("__")):
        raise element.place.error(f"the name '{name}' is reserved in SDF")
    return name


def _version(text: str) -> tuple[int, ...]:
    """Return a version as numbers, with 0 for parts that are not numbers."""
    return tuple(int(part) if part.isdigit() and len(part) < 9 else 0 for part in text.split("."))
