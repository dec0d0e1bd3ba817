// Edits of the content of frames, of groups and of whole scenes, for SceneGraph, SceneEdit and
// SceneArrays.
#include "edits.hpp"
#include "tmkit/scene_difference.hpp"

namespace tmkit::bindings {
namespace {

template <class Self> void bind_frame_content_edits(auto& cls) {
    cls.def("set_classes", EDIT(set_classes, std::string_view, const std::vector<std::string>&),
            "frame"_a, "classes"_a,
            text_for<Self>(R"(Set the classes of a frame. {O(log n)|O(classes)}.)" OF_FRAME R"(
    classes: the new classes, e.g. ``('movable',)``.)" NO_FRAME))
        .def("set_shapes",
             [](Self self, std::string_view frame, const std::vector<ShapeArgument>& shapes) {
        return apply_edit(self, [&](auto& s) { s.set_shapes(frame, attached_shapes(shapes)); });
    }, "frame"_a, "shapes"_a,
             text_for<Self>(R"(Set all shapes of a frame. {O(log n)|O(shapes)}.)" OF_FRAME R"(
    shapes: the new shapes; a ``Shape`` alone is placed at the frame's origin.)" NO_FRAME
                            R"({|
    CapacityError: if the capacity is exceeded.})"))
        .def("add_shape",
             [](Self self, std::string_view frame, const ShapeArgument& shape) {
        return apply_edit(self, [&](auto& s) { s.add_shape(frame, shape.attached()); });
    }, "frame"_a, "shape"_a,
             text_for<Self>(R"(Attach a shape to a frame. {O(log n)|O(shapes)}.)" OF_FRAME R"(
    shape: the shape; a ``Shape`` alone is placed at the frame's origin.)" NO_FRAME R"({|
    CapacityError: if the capacity is exceeded.})"));
    cls.def("set_inertia", EDIT(set_inertia, std::string_view, const std::optional<Inertia>&),
            "frame"_a, "inertia"_a.none(),
            text_for<Self>(
                R"(Set the mass properties of the body of a frame. {O(log n)|O(1)}.

Args:
    frame: the frame in whose axes they are.
    inertia: mass, centre and inertia matrix; None removes them.)" NO_FRAME R"(
    SceneError: if the mass is not positive, or the matrix is not symmetric positive
        semi-definite.)"))
        .def("allow_collision",
             EDIT(allow_collision, std::string_view, std::string_view, const std::string&), "a"_a,
             "b"_a, nb::kw_only(), "reason"_a = "user",
             text_for<Self>(
                 R"(Permit contact of two frames: the pair is not checked. {O(log n)|O(1)}.)" PAIR
                 R"(
    reason: reason for the permission, stored with the pair.)" NO_FRAME R"(
    SceneError: if both are the same frame.{|
    CapacityError: if there is no capacity for another pair, or the reason is too long.})"))
        .def("forbid_collision", EDIT(forbid_collision, std::string_view, std::string_view), "a"_a,
             "b"_a,
             text_for<Self>(
                 R"(Check a pair of frames for collision again. {O(log n)|O(1)}.)" PAIR NO_FRAME));
    cls.def("set_attributes",
            [](Self self, std::string_view frame, const AttributeMapping& attributes) {
        Attributes tags = attributes_of(attributes);
        return apply_edit(self, [&](auto& s) { s.set_attributes(frame, std::move(tags)); });
    }, "frame"_a, "attributes"_a,
            text_for<Self>("Set all attributes of a frame. {O(log n)|O(attributes)}." OF_FRAME R"(
    attributes: JSON values by key: text, numbers, True, False, None, lists and dicts of these; each
        may be a ``graph.Stamped``, with the time of its change. Replaces all attributes.)" NO_FRAME
                           R"(
    SceneError: if a key is not text or is empty, or a value is not JSON.)"))
        .def("set_attribute",
             [](Self self, std::string_view frame, const std::string& key, nb::handle value) {
        const std::string text = attribute_text(key, value);
        return apply_edit(self, [&](auto& s) {
            s.set_attributes(
                frame, with_attribute(scene_of(s).specification(frame).attributes, key, text));
        });
    }, "frame"_a, "key"_a, "value"_a.none(),
             text_for<Self>("Set one attribute of a frame. {O(log n)|O(attributes)}." OF_FRAME R"(
    key: the name of the attribute, not empty.
    value: a JSON value; see ``set_attributes``. None is a value and removes nothing.)" NO_FRAME R"(
    SceneError: if the key is empty, or the value is not JSON.)"));
}

template <class Self> void bind_group_edits(auto& cls) {
    cls.def("set_group",
            [](Self self, const std::string& name, const std::vector<std::string>& frames,
               const std::vector<std::string>& groups,
               const std::optional<std::vector<std::string>>& parents,
               const std::optional<AttributeMapping>& attributes) {
        const Attributes tags = attributes ? attributes_of(*attributes) : Attributes{};
        return apply_edit(self, [&](auto& s) {
            const std::vector<std::string> names = scene_of(s).group_names();
            GroupSpecification new_group{name, {}, {}};
            if (std::ranges::count(names, name)) new_group = scene_of(s).group(name);
            new_group.frames = frames;
            new_group.groups = groups;
            if (parents) new_group.parents = *parents;
            if (attributes) new_group.attributes = tags;
            s.set_group(new_group);
        });
    },
            "name"_a, nb::kw_only(), "frames"_a = nb::tuple(), "groups"_a = nb::tuple(),
            "parents"_a = nb::none(), "attributes"_a = nb::none(),
            text_for<Self>(
                R"(Create a group, or replace its content. {O(members log n)|O(members squared)}.

Groups organise frames by meaning: they nest, may share members, and have no poses. They keep their
frames through rename and reparenting.

Args:
    name: name of the group.
    frames: its frames.
    groups: its groups, which exist already.
    parents: the frames above it, in a walk through frames and groups; unchanged if omitted.
    attributes: JSON values by key, as for frames; unchanged if omitted.

Raises:
    UnknownNameError: if a frame or group is unknown.
    SceneError: if an attribute is not JSON.
    CycleError: if the group would contain itself.{|
    CapacityError: if there is no capacity for another group or its members.})"))
        .def("set_group_attribute",
             [](Self self, std::string_view group, const std::string& key, nb::handle value) {
        const std::string text = attribute_text(key, value);
        return apply_edit(self, [&](auto& s) {
            GroupSpecification new_group = scene_of(s).group(group);
            new_group.attributes = with_attribute(std::move(new_group.attributes), key, text);
            s.set_group(new_group);
        });
    }, "group"_a, "key"_a, "value"_a.none(), R"(Set one attribute of a group. O(its members).

Args:
    group: the group.
    key: the name of the attribute, not empty.
    value: a JSON value; see ``set_attributes``. None is a value and removes nothing.)" NO_GROUP R"(
    SceneError: if the key is empty, or the value is not JSON.)")
        .def("remove_group", EDIT(remove_group, std::string_view), "name"_a,
             "Remove a group, also from the groups that contain it; its frames remain." NO_GROUP);
}

template <class Self> void bind_whole_edits(auto& cls) {
    cls.def("mount",
            EDIT(mount, const SceneGraph&, std::string_view, const std::string&, const Pose&,
                 const Joint&),
            "other"_a, "under"_a, nb::kw_only(), "prefix"_a = "", "pose"_a = Pose{},
            "joint"_a = Joint{},
            R"(Add a copy of another scene under a frame. O(m log n) for m frames.

Shapes are shared, not copied. The same scene may be mounted several times, with different prefixes:
a template.

Args:
    other: the scene; every frame, joint, body, group and allowed pair of it is added.
    under: the new parent of its roots.
    prefix: prefix of every name of it, e.g. ``left/``; none if omitted.
    pose: under_from_root of each of its roots; the identity if omitted.
    joint: joint between ``under`` and its roots; fixed if omitted.)" NO_FRAME R"(
    DuplicateNameError: if a name with the prefix is taken.
    SceneError: if a body would get two paths of poses, or twists contradict each other, as for
        ``attach``.)")
        .def("merge", EDIT(merge, const SceneGraph&), "other"_a,
             R"(Add the frames of another scene. O(m log n) for its m frames.

A root of the other scene with the name of a frame here is identified with it: children of the
other's ``world`` become children of the ``world`` here. Other roots become further roots. Twists
are facts: a redundant one is removed, and one that cannot be compared yet becomes an observation
(``graph.add_fact``).

Raises:
    DuplicateNameError: if a frame, joint or body of the other scene has the name of one here.
    SceneError: if a common root has different shapes, classes or attributes in both, twists
        contradict each other, or ``attach`` raises it.)");
    cls.def("extract", EDIT(extract, std::string_view), "frame"_a,
            R"(Keep only a frame, which becomes the root, and its descendants.

O(m log n) for m remaining frames, O(members of all groups). Allowed pairs and groups remain with
their remaining frames. Inertia given on a removed frame is removed.)" NO_FRAME R"(
    SceneError: if a remaining joint mimics a removed one.)")
        .def("apply", EDIT(apply, const SceneDifference&), "difference"_a,
             R"(Apply the difference ``diff(a, b)``: applied to ``a`` it gives ``b``.

On another scene it changes the same fields of the frames of the same names. O(changes log n), or
O(n log n) for cyclic changes (two frames that swap names).

Raises:
    SceneError, UnknownNameError, DuplicateNameError, CycleError: if the changes do not fit this
        scene.)");
}

}  // namespace

template <class Scene> void bind_content_edits(nb::class_<Scene>& cls) {
    using Self = SelfOf<Scene>;
    bind_frame_content_edits<Self>(cls);
    bind_group_edits<Self>(cls);
    if constexpr (!std::is_same_v<Scene, SceneArrays>) bind_whole_edits<Self>(cls);
}
template void bind_content_edits(nb::class_<SceneGraph>&);
template void bind_content_edits(nb::class_<SceneEditHandle>&);
template void bind_content_edits(nb::class_<SceneArrays>&);

}  // namespace tmkit::bindings
