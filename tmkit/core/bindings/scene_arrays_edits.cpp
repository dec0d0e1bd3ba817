// The edits of SceneArrays, in place.
#include "edits.hpp"
#include "tmkit/scene_arrays.hpp"

namespace tmkit::bindings {
namespace {

void bind_arrays_root_edits(nb::class_<SceneArrays>& cls) {
    cls.def("add_root",
            [](SceneArrays& self, std::string_view name, const std::optional<std::string_view>& body) {
        require_known_body(self, name, body);
        self.add_root(name, body.value_or(std::string_view()));
    }, nb::arg("name"), nb::kw_only(), nb::arg("body") = nb::none(), R"(Add a frame without a parent. O(1).

Args:
    name: unique among frames.
    body: an existing body that the frame is on; by default a new one of the frame's own name.

Raises:
    DuplicateNameError: the name is taken.
    UnknownNameError: no such body.
    CapacityError: no room.)")
        .def("add_body", &SceneArrays::add_body, nb::arg("name"),
             R"(Add a body that has no frame yet; it is removed with its last frame. O(1).

Raises:
    DuplicateNameError: the name is taken.
    SceneError: an empty name.
    CapacityError: no room.)")
        .def("remove_body", &SceneArrays::remove_body, nb::arg("name"), R"(Remove a body without frames. O(twists).

Raises:
    UnknownNameError: no such body.
    SceneError: it has a frame, or a twist is relative to it.)")
        .def("attach", &SceneArrays::attach, nb::arg("root"), nb::arg("parent"), nb::kw_only(),
             nb::arg("pose") = Pose{}, nb::arg("joint") = Joint{},
             R"(Attach a root, with its tree, to a frame of another tree, as ``SceneGraph.attach``.

O(depth + moved frames), with a joint O(n).

Args:
    root: a frame without a parent.
    parent: a frame of another tree.
    pose: parent_from_root at joint value 0; the identity if omitted.
    joint: how the root moves relative to its parent; fixed if omitted, and between frames of one body.

Raises:
    UnknownNameError, CycleError, SceneError: as ``SceneGraph.attach``.
    CapacityError: the joint's name is too long.)");
}

void bind_arrays_twist_edits(nb::class_<SceneArrays>& cls) {
    cls.def("set_twist",
            [](SceneArrays& self, std::string_view frame, std::string_view reference, const ArrayArgument& vector,
               const std::optional<ArrayArgument>& covariance) {
        const HeldVector held(vector, "vector", 6, ErrorKind::scene);
        Vector6 numbers;
        std::copy(held.numbers().begin(), held.numbers().end(), numbers.begin());
        self.set_twist(frame, reference, numbers, own_twist_noise(covariance, frame, reference));
    },
            nb::arg("frame"), nb::arg("reference"), nb::arg("vector"), nb::kw_only(),
            nb::arg("covariance") = nb::none(),
            R"(Set how a frame moves relative to another body, as ``SceneGraph.set_twist``.

O(1) for another value of an existing edge, O(t * (log t + depth)) for a new one among t. A covariance makes a
source.

Args:
    frame: the frame whose body moves.
    reference: the body relative to which it moves.
    vector: (6,) twist of the frame's body relative to the reference body, at the frame's origin and in its axes:
        linear part in m/s, then angular part in rad/s.
    covariance: (6, 6) of the vector, symmetric positive semi-definite; None or zero: exact.

Raises:
    UnknownNameError, SceneError: as ``SceneGraph.set_twist``.
    CapacityError: no room for another.)")
        .def("remove_twist", &SceneArrays::remove_twist, nb::arg("frame"),
             R"(Remove the twist edge of a frame, if it has one. O(1).

Raises:
    UnknownNameError: no such frame.)");
}

void bind_arrays_stamped_pose_edits(nb::class_<SceneArrays>& cls) {
    cls.def("add_stamped_pose",
            [](SceneArrays& self, std::string_view frame, const Pose& pose, double stamp,
               std::optional<std::size_t> capacity,
               std::optional<double> window) { self.add_stamped_pose(frame, {stamp, pose}, capacity, window); },
            nb::arg("frame"), nb::arg("pose"), nb::kw_only(), nb::arg("stamp"), nb::arg("capacity") = nb::none(),
            nb::arg("window") = nb::none(),
            R"(Add a pose at a time to the history of a frame's edge, as ``SceneGraph.add_stamped_pose``.

O(depth + poses of the edge + subtree). Each edge drops its own oldest poses by its own capacity and window; those
of other edges are never dropped for it.

Args:
    frame: a frame whose parent is on another body.
    pose: parent_from_frame, at joint value 0.
    stamp: seconds, on any clock.
    capacity: most poses that are kept; if omitted as before, at first 32.
    window: most seconds between the oldest and the newest; if omitted as before, at first unlimited.

Raises:
    UnknownNameError, StampError, SceneError: as ``SceneGraph.add_stamped_pose``.
    CapacityError: no room for another, and none of this edge's own is to be dropped.)")
        .def("set_stamped_poses",
             [](SceneArrays& self, std::string_view frame, const std::optional<StampedPoses>& stamps) {
        self.set_stamped_poses(frame, stamps ? &*stamps : nullptr);
    }, nb::arg("frame"), nb::arg("stamps").none(),
             R"(Set the whole history of a frame's edge; its present pose stays. O(poses).

Args:
    frame: a frame whose parent is on another body.
    stamps: poses parent_from_frame at joint value 0, by stamp; None removes the history.

Raises:
    UnknownNameError: no such frame.
    SceneError: a root, or an edge inside one body, whose pose is constant.
    CapacityError: no room for so many.)");
}

void bind_arrays_groups(nb::class_<SceneArrays>& cls) {
    cls.def("set_group",
            [](SceneArrays& self, std::string_view name, const std::vector<std::string>& frames,
               const std::vector<std::string>& groups) { self.set_group(name, frames, groups); },
            nb::arg("name"), nb::kw_only(), nb::arg("frames") = nb::tuple(), nb::arg("groups") = nb::tuple(),
            R"(Make a group, or replace its content, as ``SceneGraph.set_group``. O(members squared).

Args:
    name: of the group.
    frames: its frames.
    groups: the groups in it, which exist.

Raises:
    UnknownNameError: no such frame or group.
    CycleError: the group would contain itself.
    CapacityError: no room for another group, or for so many members.)")
        .def("remove_group", &SceneArrays::remove_group, nb::arg("name"),
             R"(Remove a group, also from the groups that hold it; its frames stay.

Raises:
    UnknownNameError: no such group.)")
        .def("group",
             [](const SceneArrays& self, std::string_view name) {
        GroupSpecification group = self.group(name);
        return Group{std::move(group.frames), std::move(group.groups)};
    }, nb::arg("name"), R"(Return the direct content of a group. For the writer.

Raises:
    UnknownNameError: no such group.)")
        .def_prop_ro("group_names", [](const SceneArrays& self) { return tuple_of(self.group_names()); },
                     "Names of all groups, sorted. For the writer.");
}

void bind_arrays_add_frame(nb::class_<SceneArrays>& cls) {
    cls.def("add_frame",
            [](SceneArrays& self, std::string_view name, std::string_view parent, const Pose& pose, const Joint& joint,
               const std::optional<std::string_view>& body, const std::vector<std::string>& classes,
               const std::vector<ShapeArgument>& shapes) {
        require_known_body(self, name, body);
        const std::vector<AttachedShape> attached = attached_shapes(shapes);
        self.add_frame({name, parent, pose, &joint, body.value_or(std::string_view()), attached, classes});
    },
            nb::arg("name"), nb::arg("parent"), nb::kw_only(), nb::arg("pose") = Pose{}, nb::arg("joint") = Joint{},
            nb::arg("body") = nb::none(), nb::arg("classes") = nb::tuple(), nb::arg("shapes") = nb::tuple(),
            R"(Add a frame under a parent, as ``SceneGraph.add_frame``. O(depth), with a joint O(n).

Args:
    name: unique among frames.
    parent: name of the parent frame.
    pose: parent_from_frame, at joint value 0.
    joint: how the frame moves relative to the parent; fixed if omitted.
    body: an existing body that the frame is on; by default a new one of the frame's own name.
    classes: what the frame is, e.g. ``movable`` or ``surface``; none if omitted.
    shapes: the shapes on the frame; a bare shape is put at its origin. None if omitted.

Raises:
    UnknownNameError, DuplicateNameError, SceneError: as ``SceneGraph.add_frame``.
    CapacityError: no room for another frame, body or shape, or a name that is too long.)");
}

void bind_arrays_frame_edits(nb::class_<SceneArrays>& cls) {
    cls.def("remove_frame", &SceneArrays::remove_frame, nb::arg("frame"), nb::kw_only(), nb::arg("subtree") = false,
            R"(Remove a frame. O(n + allowed pairs + members of groups + twists).

Args:
    frame: the frame.
    subtree: remove all its descendants too.

Raises:
    UnknownNameError: no such frame.
    SceneError: it has children and ``subtree`` is False, a joint that stays mimics one that would be removed, or a
        twist that stays is relative to a body that would be removed.)")
        .def("rename_frame", &SceneArrays::rename_frame, nb::arg("frame"), nb::arg("name"),
             R"(Rename a frame; its joint and body keep their names. O(1).

Args:
    frame: the frame.
    name: its new name, unique among frames.

Raises:
    UnknownNameError: no such frame.
    DuplicateNameError: the new name is taken.
    CapacityError: the new name is too long.)");
}

void bind_arrays_reparent(nb::class_<SceneArrays>& cls) {
    cls.def("reparent",
            [](SceneArrays& self, std::string_view frame, std::string_view parent, const Pose* pose,
               const std::optional<ArrayArgument>& q) {
        if (pose && q) throw Error(ErrorKind::scene, "give either pose or q to reparent, not both");
        if (pose) return self.reparent(frame, parent, *pose);
        self.reparent_keeping_pose(frame, parent, GivenConfiguration(q, self).configuration);
    },
            nb::arg("frame"), nb::arg("parent"), nb::kw_only(), nb::arg("pose").none() = nb::none(),
            nb::arg("q") = nb::none(), R"(Move a frame with its subtree under another parent. O(depth + subtree).

Args:
    frame: the frame that moves.
    parent: its new parent.
    pose: parent_from_frame in the new place, at joint value 0.
    q: without ``pose``, the frame keeps its place in the world at this configuration (n_joints,); at the present
        one if omitted.

Raises:
    UnknownNameError, CycleError, ConfigurationError, SceneError: as ``SceneGraph.reparent``.)");
}

void bind_arrays_edge_edits(nb::class_<SceneArrays>& cls) {
    cls.def("set_pose", &SceneArrays::set_pose, nb::arg("frame"), nb::arg("pose"),
            R"(Set the pose of a frame relative to its parent. O(depth + subtree).

Args:
    frame: a frame whose parent is on another body.
    pose: parent_from_frame at joint value 0.

Raises:
    UnknownNameError: no such frame.
    SceneError: a root, or an edge inside one body, whose pose is constant.)")
        .def("set_joint", &SceneArrays::set_joint, nb::arg("frame"), nb::arg("joint"),
             R"(Set how a frame moves relative to its parent. O(n).

A joint that was there keeps its value, a new one starts at 0.

Args:
    frame: a frame whose parent is on another body.
    joint: the new joint, in place of the old one.

Raises:
    UnknownNameError: no such frame, or no such leader of a mimic joint.
    DuplicateNameError: the joint name is taken.
    SceneError: a root, an edge inside one body, or others mimic the joint.
    CapacityError: the joint's name is too long.)");
}

void bind_arrays_attribute_edits(nb::class_<SceneArrays>& cls) {
    cls.def("set_classes",
            [](SceneArrays& self, std::string_view frame, std::vector<std::string> classes) {
        self.set_classes(frame, std::move(classes));
    }, nb::arg("frame"), nb::arg("classes"), R"(Set the classes of a frame. O(classes).

Args:
    frame: the frame.
    classes: what the frame is, e.g. ``('movable',)``; replaces its classes.

Raises:
    UnknownNameError: no such frame.)")
        .def("set_attributes",
             [](SceneArrays& self, std::string_view frame, const AttributeMapping& attributes) {
        self.set_attributes(frame, attributes_of(attributes));
    }, nb::arg("frame"), nb::arg("attributes"), R"(Set all attributes of a frame. O(attributes).

Args:
    frame: the frame.
    attributes: JSON values by key: text, numbers, True, False, None, lists and dicts of these. Replaces those it
        has.

Raises:
    UnknownNameError: no such frame.
    SceneError: a key that is no text or empty, or a value that is not JSON.)")
        .def("set_attribute", [](SceneArrays& self, std::string_view frame, const std::string& key, nb::handle value) {
        const std::string text = attribute_text(key, value);
        self.set_attributes(frame, with_attribute(self.specification(frame).attributes, key, text));
    }, nb::arg("frame"), nb::arg("key"), nb::arg("value").none(), R"(Set one attribute of a frame. O(attributes).

Args:
    frame: the frame.
    key: the name of the attribute, not empty.
    value: a JSON value; see ``set_attributes``.

Raises:
    UnknownNameError: no such frame.
    SceneError: an empty key, or a value that is not JSON.)");
}

void bind_arrays_shape_edits(nb::class_<SceneArrays>& cls) {
    cls.def("specification", [](const SceneArrays& self, std::string_view frame) { return self.specification(frame); },
            nb::arg("frame"), R"(Return the specification of a frame, as ``SceneGraph.specification``. For the writer.

Raises:
    UnknownNameError: no such frame.)")
        .def("set_shapes",
             [](SceneArrays& self, std::string_view frame, const std::vector<ShapeArgument>& shapes) {
        self.set_shapes(frame, attached_shapes(shapes));
    }, nb::arg("frame"), nb::arg("shapes"), R"(Set all shapes of a frame. O(shapes).

Args:
    frame: the frame.
    shapes: the shapes on it, in place of those it has; a bare shape is put at the frame's origin.

Raises:
    UnknownNameError: no such frame.
    CapacityError: no room for so many.)")
        .def("add_shape", &SceneArrays::add_shape, nb::arg("frame"), nb::arg("shape"),
             R"(Attach one more shape to a frame. O(shapes).

Args:
    frame: the frame.
    shape: the shape.

Raises:
    UnknownNameError: no such frame.
    CapacityError: no room for another.)");
}

void bind_arrays_collision_edits(nb::class_<SceneArrays>& cls) {
    cls.def("set_inertia", &SceneArrays::set_inertia, nb::arg("frame"), nb::arg("inertia").none(),
            R"(Set the mass properties of the body that a frame is on. O(1).

Args:
    frame: the frame in whose axes they are given.
    inertia: mass, centre and inertia matrix; None removes them.

Raises:
    UnknownNameError: no such frame.
    SceneError: a mass that is not positive, or a matrix that is not symmetric positive semi-definite.)")
        .def("allow_collision", &SceneArrays::allow_collision, nb::arg("a"), nb::arg("b"), nb::kw_only(),
             nb::arg("reason") = "user", R"(Let the shapes of two frames touch: the pair is not checked. O(1).

Args:
    a: a frame.
    b: another frame; the order does not matter.
    reason: why they may touch, kept with the pair.

Raises:
    UnknownNameError: no such frame.
    SceneError: a frame with itself.
    CapacityError: no room for another pair, or a reason that is too long.)")
        .def("forbid_collision", &SceneArrays::forbid_collision, nb::arg("a"), nb::arg("b"),
             R"(Check a pair of frames for collision again. O(1).

Args:
    a: a frame.
    b: another frame; the order does not matter.

Raises:
    UnknownNameError: no such frame.)");
}

}  // namespace

void bind_arrays_edits(nb::class_<SceneArrays>& cls) {
    bind_arrays_root_edits(cls);
    bind_arrays_twist_edits(cls);
    bind_arrays_stamped_pose_edits(cls);
    bind_arrays_groups(cls);
    bind_arrays_add_frame(cls);
    bind_arrays_frame_edits(cls);
    bind_arrays_reparent(cls);
    bind_arrays_edge_edits(cls);
    bind_arrays_attribute_edits(cls);
    bind_arrays_shape_edits(cls);
    bind_arrays_collision_edits(cls);
}

}  // namespace tmkit::bindings
