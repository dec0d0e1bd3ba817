// The edits of what frames carry and of groups, for SceneGraph, SceneEdit and SceneArrays, and
// those of whole scenes.
#include "edits.hpp"
#include "tmkit/scene_difference.hpp"

namespace tmkit::bindings {
namespace {

template <class Self> void bind_frame_content_edits(auto& cls) {
    cls.def("set_classes", EDIT(set_classes, std::string_view, const std::vector<std::string>&),
            "frame"_a, "classes"_a,
            text_for<Self>(R"(Set the classes of a frame. {O(log n)|O(classes)}.)" OF_FRAME R"(
    classes: what the frame is, e.g. ``('movable',)``; replaces its classes.)" NO_FRAME))
        .def("set_shapes",
             [](Self self, std::string_view frame, const std::vector<ShapeArgument>& shapes) {
        return apply_edit(self, [&](auto& s) { s.set_shapes(frame, attached_shapes(shapes)); });
    }, "frame"_a, "shapes"_a,
             text_for<Self>(R"(Set all shapes of a frame. {O(log n)|O(shapes)}.)" OF_FRAME R"(
    shapes: the shapes on it, in place of those it has; a ``Shape`` alone is put at the frame's origin.)" NO_FRAME
                            R"({|
    CapacityError: no room for so many.})"))
        .def(
            "add_shape",
            [](Self self, std::string_view frame, const ShapeArgument& shape) {
        return apply_edit(self, [&](auto& s) { s.add_shape(frame, shape.attached()); });
    }, "frame"_a, "shape"_a,
            text_for<Self>(R"(Attach one more shape to a frame. {O(log n)|O(shapes)}.)" OF_FRAME R"(
    shape: the shape; a ``Shape`` alone is put at the frame's origin.)" NO_FRAME R"({|
    CapacityError: no room for another.})"));
    cls.def("set_inertia", EDIT(set_inertia, std::string_view, const std::optional<Inertia>&),
            "frame"_a, "inertia"_a.none(),
            text_for<Self>(
                R"(Set the mass properties of the body that a frame is on. {O(log n)|O(1)}.

Args:
    frame: the frame in whose axes they are given.
    inertia: mass, centre and inertia matrix; None removes them.)" NO_FRAME R"(
    SceneError: a mass that is not positive, or a matrix that is not symmetric positive semi-definite.)"))
        .def(
            "allow_collision",
            EDIT(allow_collision, std::string_view, std::string_view, const std::string&), "a"_a,
            "b"_a, nb::kw_only(), "reason"_a = "user",
            text_for<Self>(
                R"(Let the shapes of two frames touch: the pair is not checked. {O(log n)|O(1)}.)" PAIR
                R"(
    reason: why they may touch, kept with the pair.)" NO_FRAME R"(
    SceneError: a frame with itself.{|
    CapacityError: no room for another pair, or a reason that is too long.})"))
        .def("forbid_collision", EDIT(forbid_collision, std::string_view, std::string_view), "a"_a,
             "b"_a,
             text_for<Self>(
                 R"(Check a pair of frames for collision again. {O(log n)|O(1)}.)" PAIR NO_FRAME));
    cls.def(
           "set_attributes",
           [](Self self, std::string_view frame, const AttributeMapping& attributes) {
        Attributes tags = attributes_of(attributes);
        return apply_edit(self, [&](auto& s) { s.set_attributes(frame, std::move(tags)); });
    }, "frame"_a, "attributes"_a,
           text_for<Self>(R"(Set all attributes of a frame. {O(log n)|O(attributes)}.)" OF_FRAME R"(
    attributes: JSON values by key: text, numbers, True, False, None, lists and dicts of these; each may be a
        ``graph.Stamped``, with the time at which it was set. Replaces those it has.)" NO_FRAME R"(
    SceneError: a key that is no text or empty, or a value that is not JSON.)"))
        .def(
            "set_attribute",
            [](Self self, std::string_view frame, const std::string& key, nb::handle value) {
        const std::string text = attribute_text(key, value);
        return apply_edit(self, [&](auto& s) {
            s.set_attributes(
                frame, with_attribute(scene_of(s).specification(frame).attributes, key, text));
        });
    }, "frame"_a, "key"_a, "value"_a.none(),
            text_for<Self>(R"(Set one attribute of a frame. {O(log n)|O(attributes)}.)" OF_FRAME R"(
    key: the name of the attribute, not empty.
    value: a JSON value; see ``set_attributes``. None is one and removes nothing.)" NO_FRAME R"(
    SceneError: an empty key, or a value that is not JSON.)"));
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
            GroupSpecification made{name, {}, {}};
            if (std::ranges::count(names, name)) made = scene_of(s).group(name);
            made.frames = frames;
            made.groups = groups;
            if (parents) made.parents = *parents;
            if (attributes) made.attributes = tags;
            s.set_group(made);
        });
    },
            "name"_a, nb::kw_only(), "frames"_a = nb::tuple(), "groups"_a = nb::tuple(),
            "parents"_a = nb::none(), "attributes"_a = nb::none(),
            text_for<Self>(
                R"(Make a group, or replace what it holds. {O(members log n)|O(members squared)}.

Groups organise frames by meaning: they nest, may share members, and have no poses. They follow their frames
through rename and reparenting.

Args:
    name: of the group.
    frames: its frames.
    groups: the groups in it, which exist.
    parents: the frames that it is below, in a walk through frames and groups; those that it has if omitted.
    attributes: JSON values by key, as of frames; those that it has if omitted.

Raises:
    UnknownNameError: no such frame or group.
    SceneError: an attribute that is not JSON.
    CycleError: the group would hold itself.{|
    CapacityError: no room for another group, or for so many members.})"))
        .def("set_group_attribute",
             [](Self self, std::string_view group, const std::string& key, nb::handle value) {
        const std::string text = attribute_text(key, value);
        return apply_edit(self, [&](auto& s) {
            GroupSpecification made = scene_of(s).group(group);
            made.attributes = with_attribute(std::move(made.attributes), key, text);
            s.set_group(made);
        });
    }, "group"_a, "key"_a, "value"_a.none(), R"(Set one attribute of a group. O(its members).

Args:
    group: the group.
    key: the name of the attribute, not empty.
    value: a JSON value; see ``set_attributes``. None is one and removes nothing.)" NO_GROUP R"(
    SceneError: an empty key, or a value that is not JSON.)")
        .def("remove_group", EDIT(remove_group, std::string_view), "name"_a,
             R"(Remove a group, also from the groups that hold it; its frames stay.)" NO_GROUP);
}

template <class Self> void bind_whole_edits(auto& cls) {
    cls.def("mount",
            EDIT(mount, const SceneGraph&, std::string_view, const std::string&, const Pose&,
                 const Joint&),
            "other"_a, "under"_a, nb::kw_only(), "prefix"_a = "", "pose"_a = Pose{},
            "joint"_a = Joint{},
            R"(Add a copy of another scene under a frame. O(m log n) for m frames.

Shapes are shared, not copied. The same scene may be mounted many times, each with a prefix of its own: a template.

Args:
    other: the scene; every frame, joint, body, group and allowed pair of it is added.
    under: the frame that becomes the parent of its roots.
    prefix: put before every name of it, e.g. ``left/``; none if omitted.
    pose: under_from_root, of each of its roots; the identity if omitted.
    joint: between ``under`` and its roots; fixed if omitted.)" NO_FRAME R"(
    DuplicateNameError: a name with the prefix is taken.
    SceneError: a body would get two paths of poses, or twists contradict each other, as for ``attach``.)")
        .def("merge", EDIT(merge, const SceneGraph&), "other"_a,
             R"(Add the frames of another scene. O(m log n) for its m frames.

A root of the other scene that has the name of a frame here is that frame: children of the other's ``world`` become
children of the ``world`` here. Other roots become further roots. Twists are taken as facts: one that others say is
dropped, and one that only poses to come can compare waits as an observation (``graph.add_fact``).

Raises:
    DuplicateNameError: a frame, joint or body of the other scene has the name of one here.
    SceneError: the same root carries different shapes, classes or attributes in both; twists contradict each
        other; or as for ``attach``.)");
    cls.def("extract", EDIT(extract, std::string_view), "frame"_a,
            R"(Keep only a frame, which becomes the root, and its descendants.

O(m log n) for m frames that stay, O(members of all groups). Allowed pairs and groups are kept as far as their
frames are. Inertia given on a frame that is removed, is removed.)" NO_FRAME R"(
    SceneError: a joint that stays mimics one that does not.)")
        .def("apply", EDIT(apply, const SceneDifference&), "difference"_a,
             R"(Make the changes that ``diff(a, b)`` found: applied to ``a`` it gives ``b``.

On another scene it changes the same fields of the frames of the same names. O(changes log n), or O(n log n) when
the changes depend on each other in a circle (two frames that swap names).

Raises:
    SceneError, UnknownNameError, DuplicateNameError, CycleError: the changes do not fit this scene.)");
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
