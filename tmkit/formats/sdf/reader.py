"""Models and worlds in SDF, versions 1.3 to 1.12, with what they include.

Of a file with one model, a link becomes a frame of its name; of several, each name has the prefix
``MODEL::``, and so have always the names in a nested or included model. ``<frame>`` elements are
frames too, fixed to their links. A link without a joint above it is free in the world, or fixed in
a static model, whose joints do not move either. Shapes and masses of links are read as URDF's are
where both are the same.

A model is found as ``package://`` URIs are, with ``model://`` as another word for it;
``model.config`` names its file. Elements that are no part of a scene are omitted, with a note and a
count for each kind.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tmkit._support.limits import is_file
from tmkit._support.source_location import Note, did_you_mean
from tmkit._support.xml import XmlElement, read_xml
from tmkit.formats.mesh.package_uris import PackageResolver
from tmkit.formats.mesh.solids import ellipsoid
from tmkit.formats.sdf.frames import HOME, TYPES, Node, Scope, SdfJoint, frames_of, is_true, pose_of
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

_DENSITY = 1000.0  # kg/m^3, of SDF
_ACCEPTED = ("box", "cylinder", "capsule", "sphere", "mesh", "cone", "ellipsoid", "plane")
_OTHERS = ("empty", "heightmap", "image", "polyline")


def content_of(
    link: Node, packages: PackageResolver
) -> tuple[tuple[GeometrySpec, ...], InertiaSpec | None]:
    """Return the shapes of a link and its mass, ``None`` when it has none; that of ``auto`` is of its shapes."""
    shapes = merge_shapes(
        link.element, packages=packages, shape=partial(_shape, link, packages), color=_color
    )
    inertial = link.element.child("inertial")
    if inertial is None:
        return shapes, None
    if not is_true(inertial, "auto"):
        inertia = inertia_of(inertial)
        return shapes, None if inertia is None else replace(inertia, origin=_origin(inertial, link))
    density = inertial.not_negative("density", _DENSITY)
    masses = [
        (
            density * primitive(part.shape.kind, part.shape.dimensions).volume
            if part.collision and isinstance(part.shape, PrimitiveSpec)
            else 0.0
        )
        for part in shapes
    ]
    inertial.note(
        "the mass is that of the boxes, cylinders and other simple shapes, of one density"
    )
    weighed = tuple(
        replace(part, mass=mass or None) for part, mass in zip(shapes, masses, strict=True)
    )
    return weighed, InertiaSpec(sum(masses), inertial.place) if any(masses) else None


def _origin(part: XmlElement, link: Node) -> PoseSpec:
    """Return the pose of a part of a link relative to the link."""
    pose, relative_to = pose_of(part)
    if relative_to:
        pose = link.in_world().inverse() @ link.inner.find(relative_to, part).in_world() @ pose
    return spec_of_pose(pose)


def _shape(link: Node, packages: PackageResolver, part: XmlElement) -> GeometrySpec | None:
    """Return the shape of a ``<visual>`` or ``<collision>``, ``None`` for one that is omitted."""
    element = single_shape(part.needed("geometry"), _ACCEPTED, unlisted=_OTHERS)
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
    elif element.tag not in _OTHERS:
        if element.tag == "mesh":
            uri = element.needed("uri").text("value").replace("model://", "package://")
            if uri.startswith("/") and not is_file(Path(uri)):  # as Bullet reads it
                uri = uri.lstrip("/")
            element.element.set("filename", uri)
        spec = simple_shape(element, part.tag, origin, packages=packages)
        submesh = element.child("submesh")
        if submesh is not None and spec is not None and isinstance(spec.shape, MeshSpec):
            name, is_centred = submesh.text("name"), is_true(submesh, "center")
            spec = replace(spec, shape=replace(spec.shape, submesh=name, is_centred=is_centred))
    ode = part.element.find("surface/friction/ode")
    if spec is None or part.tag == "visual" or ode is None or ode.get("mu") is None:
        return spec
    return replace(spec, friction=part.around(ode).not_negative("mu", 0.0))


def _color(visual: XmlElement) -> Quadruple | None:
    """Return the colour of a visual: the diffuse one of its material, as transparent as the visual is."""
    material = visual.child("material")
    name = next(
        (name for name in ("diffuse", "ambient") if material is not None and material.get(name)),
        None,
    )
    if material is None or name is None:
        return None
    red, green, blue, alpha = (*material.numbers(name, (3, 4)), 1.0)[:4]
    alpha *= 1.0 - visual.number("transparency", 0.0)
    if not all(0.0 <= part <= 1.0 for part in (red, green, blue, alpha)):
        material.note(f"the colour of <{name}> is not of numbers from 0 to 1; it is left open")
        return None
    return red, green, blue, alpha


_OLDEST, _NEWEST = (1, 3), (1, 12)
_DEEPEST = 64  # models in models
_FILES = (".sdf", ".world", ".xml", ".urdf")
_PARTS = ("link", "joint", "frame", "model", "include")
_KNOWN = {
    "model": (*_PARTS, "allow_auto_disable", "enable_wind", "pose", "self_collide", "static"),
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
_DROPPED = (
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


def read_sdf(path: Path, *, packages: PackageResolver, note: Note) -> SceneSpecification:
    """Read a file with all that it includes."""
    return _Reader(packages, note).specification(path)


@dataclass(frozen=True, slots=True)
class _Context:
    """What holds for the content of a model: scope, default frame, version, files, depth, and whether it is static."""

    scope: Scope
    home: str
    version: tuple[int, ...]
    files: tuple[Path, ...]
    static: bool = False
    depth: int = 0

    def named(self, name: str) -> str:
        """Return a name of a frame, in which the model's own may be that of a model merged into another."""
        return self.home if name == HOME else name


@dataclass(slots=True)
class _Reader:
    packages: PackageResolver
    note: Note
    files: dict[Path, XmlElement] = field(default_factory=dict)
    resolved: dict[tuple[Path, str], Path] = field(default_factory=dict)
    links: dict[Node, bool] = field(default_factory=dict)  # with whether they are of a static model
    joints: list[SdfJoint] = field(default_factory=list)
    frames: list[Node] = field(default_factory=list)
    count: int = 0

    def specification(self, path: Path) -> SceneSpecification:
        """Return the frames and allowed pairs of a file."""
        root, version = self.file(path)
        worlds = root.children("world")
        top = worlds[0] if worlds else root
        if len(worlds) > 1:
            worlds[1].note("the file has several worlds; only the first is read")
        models = [*top.children("model"), *top.children("include")]
        if not worlds and not models:
            raise root.place.error("the file has neither a world nor a model")
        scope = Scope("")
        world = scope.nodes["world"] = Node(
            "world", "world", root, scope, scope, placed=Pose.identity()
        )
        self.content(top, _Context(scope, "world", version, (path,)), bare=len(models) == 1)
        return self.built(world)

    def file(self, path: Path) -> tuple[XmlElement, tuple[int, ...]]:
        """Return the root of a file and its version."""
        if path not in self.files:
            root = read_xml(
                path, root=("sdf", "gazebo"), note=self.note, limits=self.packages.limits
            )
            self.files[path] = root
            # texts of leaves are read as attributes, of them and the ones above
            for element in root.element.iter():
                text, above = (element.text or "").strip(), element.getparent()
                if len(element) == 0 and text:
                    element.set("value", text)
                    if (
                        above is not None
                        and element.tag not in above.attrib
                        and ":" not in str(element.tag)
                    ):
                        above.set(element.tag, text)
            self.note_dropped(root)
        root = self.files[path]
        version = _numbers(root.text("version"))
        if not _OLDEST <= version < (*_NEWEST, 1):
            accepted = "expected {}.{} to {}.{}".format(*_OLDEST, *_NEWEST)
            raise root.place.error(f"unknown version of SDF '{root.get('version')}', {accepted}")
        return root, version

    @staticmethod
    def note_dropped(root: XmlElement) -> None:
        """Make a note for each kind of element that is omitted, or unknown."""
        for tag, count in Counter(
            str(element.tag) for element in root.element.iter(*_DROPPED)
        ).items():
            root.all(tag)[0].note(
                f"<{tag}> has no part in a scene, and is omitted ({count} in all)"
            )
        for element in root.element.iter(*_KNOWN):
            known = _KNOWN[str(element.tag)]
            is_dropped = any(above.tag in _DROPPED for above in element.iterancestors())
            for child in () if is_dropped else element.iterchildren("*"):
                if child.tag not in (*known, *_DROPPED):
                    word = str(child.tag).rpartition("}")[2]
                    root.around(child).note(
                        f"<{word}> of <{element.tag}> is not read{did_you_mean(word, known)}"
                    )

    def content(self, element: XmlElement, context: _Context, *, bare: bool = False) -> None:
        """Read what a model or world has; the names in the model of a ``bare`` file have no prefix."""
        for part in (element.around(child) for child in element.element.iterchildren(*_PARTS)):
            self.count += 1
            self.packages.limits.refuse_frames(self.count, part.place.error)
            if part.tag == "model":
                self.model(part, part, context, bare=bare)
            elif part.tag == "include":
                self.include(part, context, bare=bare)
            else:
                self.part(part, context)

    def part(self, part: XmlElement, context: _Context) -> None:
        is_old = context.version < (1, 7)
        if (
            is_old
            and part.tag == "link"
            and part.get("name") == "world"
            and not part.all("geometry")
        ):
            part.note("the name 'world' is reserved in SDF; this link is taken as the world")
            return
        name, scope = _name(part), context.scope
        pose, relative_to = pose_of(part)
        attached_to, kind, parent = "", "", ""
        if part.tag == "frame":
            attached_to = context.named(part.get("attached_to") or context.home)
        elif part.tag == "joint":
            kind = part.text("type")
            if kind not in TYPES:
                known = f"{did_you_mean(kind, TYPES)} (known: {', '.join(sorted(TYPES))})"
                raise part.place.error(f"the joint '{name}' has the unknown type '{kind}'{known}")
            parent, attached_to = (
                context.named(part.needed(tag).text("value")) for tag in ("parent", "child")
            )
            if parent == attached_to:
                raise part.place.error(
                    f"the joint '{name}' has '{parent}' as its parent and its child"
                )
        base = context.named(relative_to or attached_to or context.home)
        node = Node(f"{scope.prefix}{name}", part.tag, part, scope, scope, base, pose, attached_to)
        if part.tag == "link":
            self.links[node] = context.static
        elif part.tag == "frame":
            self.frames.append(node)
        else:
            kind = "fixed" if context.static else kind
            self.joints.append(SdfJoint(node, kind, parent, context.home, context.version < (1, 5)))
        scope.add(name, node, is_old=is_old)

    def model(
        self, element: XmlElement, placing: XmlElement, context: _Context, *, bare: bool
    ) -> None:
        """Read a model that it itself or an include places."""
        name, outer = placing.get("name") or _name(element), context.scope
        if context.depth > _DEEPEST:
            raise placing.place.error(f"models are nested more than {_DEEPEST} deep")
        merges = placing.tag == "include" and is_true(placing, "merge")
        home = f"_merged__{name}{HOME}" if merges else HOME
        inner = outer if merges else Scope("" if bare else f"{outer.prefix}{name}::")
        pose, relative_to = pose_of(placing if placing.child("pose") is not None else element)
        node = Node(
            f"{outer.prefix}{name}",
            "model",
            placing,
            outer,
            inner,
            context.named(relative_to or context.home),
        )
        outer.add(home if merges else name, node, is_old=context.version < (1, 7))
        if not merges:
            outer.models[name], inner.nodes[HOME] = inner, node
        static = context.static or is_true(placing if placing.get("static") else element, "static")
        first = len(inner.nodes)
        self.content(
            element,
            replace(context, scope=inner, home=home, static=static, depth=context.depth + 1),
        )
        kinds = {one.kind: key for key, one in reversed([*inner.nodes.items()][first:])}
        attached_to = element.get("canonical_link") or kinds.get("link") or kinds.get("model") or ""
        placement = (placing.tag == "include" and placing.get("placement_frame")) or element.get(
            "placement_frame"
        )
        if placement and placement != HOME:
            pose = pose @ inner.find(placement, placing).in_model(node).inverse()
        node.complete(pose, attached_to)

    def include(self, include: XmlElement, context: _Context, *, bare: bool) -> None:
        """Read the model that an include names."""
        self.packages.count_include(include.place)
        uri = include.needed("uri").text("value").replace("model://", "package://")
        if uri.startswith(("http://", "https://")):
            raise include.place.error(
                f"'{uri}': nothing is read from the network; download the model"
            )
        path = self.found(uri, include)
        if path.suffix.lower() == ".urdf":
            raise include.place.error(
                f"'{uri}' is a URDF; only SDF is included: load it beside this file"
            )
        if path in context.files:
            raise include.place.error(f"'{uri}' includes itself")
        root, version = self.file(path)
        models = root.children("model")
        if len(models) != 1:
            raise include.place.error(
                f"'{uri}' leads to {path}, which has {len(models)} models; expected one"
            )
        inner = replace(context, version=version, files=(*context.files, path))
        self.model(models[0], include, inner, bare=bare)

    def found(self, uri: str, include: XmlElement) -> Path:
        """Return the file of an included model; each URI of a folder is resolved once."""
        folder = include.path.parent
        if (folder, uri) not in self.resolved:
            self.resolved[folder, uri] = self.resolve(uri, include)
        return self.resolved[folder, uri]

    def resolve(self, uri: str, include: XmlElement) -> Path:
        """Return the file of an included model, which its folder's ``model.config`` names."""
        folder, place = include.path.parent, include.place
        if uri.lower().endswith(_FILES):
            return self.packages.resolve(uri, folder=folder, place=place)
        uri = uri.rstrip("/")
        path = self.packages.resolve(f"{uri}/model.config", folder=folder, place=place)
        config = read_xml(path, root="model", note=self.note)
        named = [
            (_numbers(one.get("version") or ""), one.element.text or "")
            for one in config.children("sdf")
        ]
        fitting = [
            (version, file.strip())
            for version, file in named
            if version < (*_NEWEST, 1) and file.strip()
        ]
        if not fitting:
            raise config.place.error(
                "<model> names no file of a version that is read; expected <sdf>FILE</sdf>"
            )
        return self.packages.resolve(f"{uri}/{max(fitting)[1]}", folder=folder, place=config.place)

    def built(self, world: Node) -> SceneSpecification:
        for joint in self.joints:
            joint.find_ends(world)
        static = {link for link, is_static in self.links.items() if is_static}
        roots = build_forest(world, [*self.links], static, self.joints)
        for joint in (joint for joint in self.joints if joint.above is None or joint.is_reversed):
            what = (
                "closes a loop, and is omitted"
                if joint.above is None
                else "is reversed: its child is above"
            )
            joint.node.element.note(f"the joint '{joint.node.name}' {what}")
        kept = {joint.node: joint for joint in self.joints if joint.above is not None}
        frames: list[FrameSpec] = []
        for link in (link for link in self.links if link in roots):
            moves = JointSpec("fixed" if link in static else "free", place=link.element.place)
            frames.append(
                replace(self.frame(link), pose=spec_of_pose(link.in_world()), joint=moves)
            )
        for joint in kept.values():
            frames += frames_of(
                self.frame(joint.top if joint.is_reversed else joint.bottom), joint, kept
            )
        for node in self.frames:
            link = node.link(world)
            pose = spec_of_pose(link.in_world().inverse() @ node.in_world())
            frames.append(FrameSpec(node.name, link.name, node.element.place, pose))
        solid = {frame.name for frame in frames if any(shape.collision for shape in frame.geometry)}
        loops = [
            AllowedPairSpec(joint.top.name, joint.bottom.name, "adjacent", joint.node.element.place)
            for joint in self.joints
            if joint.above is None
            and joint.top is not joint.bottom
            and {joint.top.name, joint.bottom.name} <= solid
        ]
        return SceneSpecification(tuple(frames), (*adjacent_pairs(frames), *loops))

    def frame(self, link: Node) -> FrameSpec:
        shapes, inertia = content_of(link, self.packages)
        return FrameSpec(link.name, "world", link.element.place, geometry=shapes, inertia=inertia)


def _name(element: XmlElement) -> str:
    """Return the name of an element, which must not be one that SDF reserves."""
    name = element.text("name")
    if name == "world" or (name.startswith("__") and name.endswith("__")):
        raise element.place.error(f"the name '{name}' is reserved in SDF")
    return name


def _numbers(version: str) -> tuple[int, ...]:
    """Return a version as numbers; what is none counts as 0."""
    return tuple(
        int(part) if part.isdigit() and len(part) < 9 else 0 for part in version.split(".")
    )
