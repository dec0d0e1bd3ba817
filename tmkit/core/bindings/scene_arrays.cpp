#include "tmkit/scene_arrays.hpp"

#include "edits.hpp"
#include "tmkit/no_fork.hpp"

namespace tmkit::bindings {
namespace {

// From so many frames on, forward kinematics takes longer than it takes to let other threads run meanwhile.
constexpr std::size_t frames_worth_forwarding_released = 512;

using PoseRows = nb::ndarray<double, nb::shape<-1, 7>, nb::c_contig, nb::device::cpu>;

// A configuration that an argument may give; without one, the present configuration is meant.
struct GivenConfiguration {
    GivenConfiguration(const std::optional<ArrayArgument>& q, const SceneArrays& arrays) {
        if (!q) return;
        held.emplace(*q, "q", [&] { return arrays.joint_count(); });
        configuration = held->numbers();
    }
    std::optional<HeldVector> held;
    SceneArrays::Configuration configuration;
};

void forward(SceneArrays& arrays, const ArrayArgument& q) {
    const HeldVector held(q, "q", [&] { return arrays.joint_count(); });
    if (arrays.size() < frames_worth_forwarding_released) return arrays.forward(held.numbers());
    const std::vector<double> own = held.copy();  // others may write to the array now
    const nb::gil_scoped_release release;
    const NoFork whole;
    arrays.forward(own);
}

ReadOnlyArray poses(const SceneArrays& arrays) {
    std::vector<double> rows(7 * arrays.size());
    const std::size_t count = arrays.write_poses(rows);
    return make_array(std::move(rows), {count, 7});
}

std::size_t write_poses(const SceneArrays& arrays, const nb::object& out) {
    PoseRows rows;
    if (!nb::try_cast<PoseRows>(out, rows, false))
        throw Error(ErrorKind::configuration, "out must be a writable, C-contiguous array (n, 7) of float64");
    const std::size_t count = arrays.write_poses({rows.data(), rows.size()});
    require_in_range(std::span<const double>(rows.data(), 7 * count), "a pose");
    return count;
}

ReadOnlyArray present_configuration(const SceneArrays& arrays) {
    std::vector<double> q(arrays.joint_count());
    const std::size_t count = arrays.write_q(q);
    return make_array(std::move(q), {count});
}

nb::typed<nb::dict, nb::str, int> capacities(const SceneArrays& arrays) {
    const Capacities& c = arrays.capacities();
    nb::typed<nb::dict, nb::str, int> made;
    made["frames"] = c.frames;
    made["bodies"] = c.bodies;
    made["shapes"] = c.shapes;
    made["allowed_pairs"] = c.allowed_pairs;
    made["name_bytes"] = c.name_bytes;
    made["twists"] = c.twists;
    made["stamps"] = c.stamps;
    made["groups"] = c.groups;
    made["group_members"] = c.group_members;
    return made;
}

void bind_edits(nb::class_<SceneArrays>& cls) {
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
    pose: parent_from_root at joint value 0.
    joint: how the root moves relative to its parent; between frames of one body it is fixed.

Raises:
    UnknownNameError, CycleError, SceneError: as ``SceneGraph.attach``.
    CapacityError: the joint's name is too long.)")
        .def("set_twist",
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
    UnknownNameError: no such frame.)")
        .def("add_stamped_pose",
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
    CapacityError: no room for so many.)")
        .def("set_group",
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
    }, nb::arg("name"), R"(Return what a group holds itself; the writer asks.

Raises:
    UnknownNameError: no such group.)")
        .def_prop_ro("group_names", [](const SceneArrays& self) { return tuple_of(self.group_names()); },
                     "Names of all groups, sorted; the writer asks.")
        .def("add_frame",
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
    joint: how the frame moves relative to the parent.
    body: an existing body that the frame is on; by default a new one of the frame's own name.
    classes: what the frame is, e.g. ``movable`` or ``surface``.
    shapes: the shapes on the frame; a bare shape is put at its origin.

Raises:
    UnknownNameError, DuplicateNameError, SceneError: as ``SceneGraph.add_frame``.
    CapacityError: no room for another frame, body or shape, or a name that is too long.)")
        .def("remove_frame", &SceneArrays::remove_frame, nb::arg("frame"), nb::kw_only(), nb::arg("subtree") = false,
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
    CapacityError: the new name is too long.)")
        .def("reparent",
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
    UnknownNameError, CycleError, ConfigurationError, SceneError: as ``SceneGraph.reparent``.)")
        .def("set_pose", &SceneArrays::set_pose, nb::arg("frame"), nb::arg("pose"),
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
    CapacityError: the joint's name is too long.)")
        .def("set_classes",
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
        .def("set_attribute",
             [](SceneArrays& self, std::string_view frame, const std::string& key, nb::handle value) {
        const std::string text = attribute_text(key, value);
        self.set_attributes(frame, with_attribute(self.specification(frame).attributes, key, text));
    }, nb::arg("frame"), nb::arg("key"), nb::arg("value").none(), R"(Set one attribute of a frame. O(attributes).

Args:
    frame: the frame.
    key: the name of the attribute, not empty.
    value: a JSON value; see ``set_attributes``.

Raises:
    UnknownNameError: no such frame.
    SceneError: an empty key, or a value that is not JSON.)")
        .def("specification", [](const SceneArrays& self, std::string_view frame) { return self.specification(frame); },
             nb::arg("frame"),
             R"(Return all that is said of one frame, as ``SceneGraph.specification``; the writer asks.

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
    CapacityError: no room for another.)")
        .def("set_inertia", &SceneArrays::set_inertia, nb::arg("frame"), nb::arg("inertia").none(),
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
    UnknownNameError: no such frame.)")
        .def("forward", &forward, nb::arg("q"),
             R"(Go to a configuration (n_joints,): computes the poses of all frames in place. O(n).

Raises:
    ConfigurationError: q has the wrong length or non-finite numbers.)")
        .def("freeze", &SceneArrays::freeze,
             R"(Return the scene as it is now, as a persistent ``SceneGraph``. O(n log n).

The identity when nothing was edited; otherwise what the same edits would have made of the first scene.)");
}

void bind_queries(nb::class_<SceneArrays>& cls) {
    cls.def_prop_ro("q", &present_configuration,
                    "(n_joints,) the present configuration, in joint_names order; a copy, read-only.")
        .def_prop_ro("poses", &poses,
                     R"((n, 7) x, y, z, qx, qy, qz, qw of each frame relative to its root, in frame_names order.

At the present configuration; a copy, read-only.)")
        .def("write_poses", &write_poses, nb::arg("out"),
             nb::sig("def write_poses(self, out: numpy.typing.NDArray[numpy.float64]) -> int"),
             R"(Write ``poses`` into the first rows of an array (m, 7) of float64, and return the number of frames.

Raises:
    ConfigurationError: fewer rows than frames, or an array that is read-only, of another type or not contiguous.)")
        .def("pose",
             [](const SceneArrays& self, std::string_view target, const std::optional<std::string_view>& reference,
                const std::optional<ArrayArgument>& q) {
        return in_range(self.pose(target, reference, GivenConfiguration(q, self).configuration));
    },
             nb::arg("target"), nb::arg("reference") = nb::none(), nb::kw_only(), nb::arg("q") = nb::none(),
             R"(Return reference_from_target. O(depth); O(1) without reference and q.

The same bits as ``SceneGraph.pose`` gives at this configuration.

Args:
    target: the frame of which the pose is returned.
    reference: the frame it is relative to; the root of its tree if omitted.
    q: configuration (n_joints,); the present one if omitted.

Raises:
    UnknownNameError: no such frame.
    DisconnectedError: the frames are in different trees.
    ConfigurationError: q has the wrong length or non-finite numbers.)")
        .def("pose",
             [](const SceneArrays& self, std::string_view target, const std::optional<std::string_view>& reference,
                double stamp, const std::optional<ArrayArgument>& q, std::string_view policy) {
        return in_range(
            self.pose(target, reference, GivenConfiguration(q, self).configuration, {stamp, stamp_policy(policy)}));
    },
             nb::arg("target"), nb::arg("reference") = nb::none(), nb::kw_only(), nb::arg("stamp"),
             nb::arg("q") = nb::none(), nb::arg("policy") = "interpolated",
             R"(Return reference_from_target at a time, by the stamped poses of the edges on the path.

O(depth + poses of the edges). The same bits as ``SceneGraph.pose`` for this configuration and stamp.

Args:
    target: the frame of which the pose is returned.
    reference: the frame it is relative to; the root of its tree if omitted.
    stamp: seconds.
    q: (n_joints,) configuration, radians or metres; the present one if omitted.
    policy: between two stamps: ``closest``, ``preceding``, ``interpolated`` or ``screw``.

Raises:
    UnknownNameError: no such frame, or policy.
    DisconnectedError: the frames are in different trees.
    StampError: the stamp lies outside the history of an edge on the path.
    ConfigurationError: q has the wrong length or non-finite numbers.)")
        .def("jacobian",
             [](const SceneArrays& self, std::string_view frame) {
        const std::size_t columns = self.joint_count();
        std::vector<double> rows(6 * columns);
        self.jacobian(frame, rows);
        return make_array(std::move(rows), {6, columns});
    }, nb::arg("frame"), R"(Return the Jacobian (6, n_joints) of a frame's origin. O(depth + n_joints).

At the present configuration, as ``Kinematics.jacobian``.

Raises:
    UnknownNameError: no such frame.)")
        .def("local_pose", &SceneArrays::local_pose, nb::arg("frame"),
             "Return parent_from_frame at joint value 0; the identity for a root. O(1).")
        .def("stamped_poses", &SceneArrays::stamped_poses, nb::arg("frame"),
             R"(Return the stamped poses of a frame's edge, or None when none are kept.

Raises:
    UnknownNameError: no such frame.)")
        .def("stamps",
             [](const SceneArrays& self, std::string_view frame) {
        return stamps_array(self.stamped_poses(frame).value_or(StampedPoses{}));
    }, nb::arg("frame"), R"(Return the stamps (k,) at which the pose of a frame's edge is known, ascending, in seconds.

Raises:
    UnknownNameError: no such frame.)")
        .def("twist_from_stamps",
             [](const SceneArrays& self, std::string_view target, std::string_view reference, double first,
                double second, const std::optional<ArrayArgument>& q, std::string_view policy) {
        return make_array(self.twist_from_stamps(target, reference, first, second,
                                                 GivenConfiguration(q, self).configuration, stamp_policy(policy)));
    },
             nb::arg("target"), nb::arg("reference"), nb::kw_only(), nb::arg("first"), nb::arg("second"),
             nb::arg("q") = nb::none(), nb::arg("policy") = "interpolated",
             R"(Return (6,) the constant twist between the poses at two stamps, as ``SceneGraph.twist_from_stamps``.

Args:
    target: the frame that moves.
    reference: the frame relative to which it moves.
    first: stamp of the first pose, seconds.
    second: a later stamp, seconds.
    q: (n_joints,) configuration, radians or metres; the present one if omitted.
    policy: for stamps between those of the histories; see ``pose``.

Raises:
    StampError, UnknownNameError, DisconnectedError, ConfigurationError: as ``SceneGraph.twist_from_stamps``.)")
        .def("body", &SceneArrays::body, nb::arg("frame"), R"(Return the name of the body that a frame is on. O(1).

Raises:
    UnknownNameError: no such frame.)")
        .def_prop_ro("body_names", [](const SceneArrays& self) { return tuple_of(self.body_names()); },
                     "Names of all bodies, in the order of their first frames; then those without, by name. O(n).")
        .def_prop_ro("bare_bodies", [](const SceneArrays& self) { return tuple_of(self.bare_bodies()); },
                     "Names of the bodies without a frame, in their order.")
        .def("twist_edge",
             [](const SceneArrays& self, std::string_view frame) { return twist_tuple(self.twist(frame)); },
             nb::arg("frame"), R"(Return the twist edge of a frame, or None. O(1).

Returns:
    Name of the reference body, and (6,) the twist at the frame's origin in its axes.

Raises:
    UnknownNameError: no such frame.)")
        .def_prop_ro("twist_frames", [](const SceneArrays& self) { return tuple_of(self.twist_frames()); },
                     "Names of the frames that have a twist edge, in insertion order.")
        .def("twist_path",
             [](const SceneArrays& self, std::string_view from, std::string_view to) {
        return tuple_of(self.twist_path(from, to));
    }, nb::arg("reference"), nb::arg("body"),
             R"(Return the frames whose twist edges lead from one body to another. O(t) for t twist edges.

Args:
    reference: the body to start from.
    body: the body to reach.

Returns:
    Names of the frames, nearest to the body first; none when there is no path.

Raises:
    UnknownNameError: no such body.)")
        .def("root", &SceneArrays::root, nb::arg("frame"),
             R"(Return the root of the tree that a frame stands in. O(depth).

Raises:
    UnknownNameError: no such frame.)")
        .def("ancestors",
             [](const SceneArrays& self, std::string_view frame) { return tuple_of(self.ancestors(frame)); },
             nb::arg("frame"), R"(Return the ancestors of a frame, nearest first. O(depth).

Raises:
    UnknownNameError: no such frame.)")
        .def("parent", &SceneArrays::parent, nb::arg("frame"),
             "Return the name of a frame's parent, None for a root. O(1).")
        .def("children", [](const SceneArrays& self, std::string_view frame) { return tuple_of(self.children(frame)); },
             nb::arg("frame"), "Return the names of a frame's children in insertion order. O(k log k) for k children.")
        .def_prop_ro("frame_names", [](const SceneArrays& self) { return tuple_of(self.frame_names()); },
                     "Names of all frames in insertion order. O(n).")
        .def_prop_ro("joint_names", [](const SceneArrays& self) { return tuple_of(self.joint_names()); },
                     "Names of the joints that have an entry in the configuration, in its order. O(n).")
        .def("is_allowed", &SceneArrays::is_allowed, nb::arg("a"), nb::arg("b"),
             R"(Return whether two frames may touch. O(1).

Args:
    a: a frame.
    b: another frame; the order does not matter.

Raises:
    UnknownNameError: no such frame.)")
        .def("zero_configuration",
             [](const SceneArrays& self) {
        return make_array(std::vector<double>(self.joint_count(), 0.0), {self.joint_count()});
    }, "Return the configuration (n_joints,) of zeros.")
        .def_prop_ro("capacities", &capacities, R"(The sizes of the arrays.

By name: ``frames``, ``bodies``, ``shapes``, ``allowed_pairs``, ``name_bytes``, ``twists``, ``stamps``, ``groups``
and ``group_members``.)")
        .def("__len__", &SceneArrays::size)
        .def("__contains__",
             [](const SceneArrays& self, nb::handle name) {
        std::string_view text;
        return nb::try_cast(name, text) && self.contains(text);
    })
        .def("__repr__",
             [](const SceneArrays& self) {
        return "SceneArrays(" + std::to_string(self.size()) + " of " + std::to_string(self.capacities().frames) +
               " frames, " + std::to_string(self.joint_count()) + " joints)";
    })
        .def("_defects", &SceneArrays::defects,
             "Describe a broken invariant of the columns, for tests; empty when all is well. O(n^2).");
}

}  // namespace

void bind_scene_arrays(nb::module_& m) {
    nb::class_<SceneArrays> arrays(
        m, "SceneArrays", nb::is_weak_referenceable(),
        R"(A scene at a configuration in preallocated arrays, edited in place: for control loops.

It begins as a copy of a scene at the zero configuration. Edits and ``forward`` work in place and allocate nothing;
after each, all poses are those of the scene as it is now. Edits keep the rules of ``SceneGraph`` and raise the same
errors; queries answer with the same bits. ``freeze`` makes a ``SceneGraph`` again.

One thread may write, while any number of threads read: poses, Jacobians, names and parents are those before or
after an edit, never in between, and the writer never waits for readers. Edits, ``forward``, groups and ``freeze``
belong to the writer.

Args:
    scene: what to begin with.
    capacity: room for so many frames; twice those of the scene and at least 64 if omitted.
    bodies: room for so many bodies; as many as frames if omitted.
    shapes: room for so many attached shapes; those of the scene and one for each frame if omitted.
    allowed_pairs: room for so many pairs that may touch; those of the scene and four for each frame if omitted.
    name_bytes: the longest name in UTF-8, also of a reason why a pair may touch; at least 64 if omitted.
    twists: room for so many twist edges; those of the scene and one for each frame if omitted.
    stamps: room for so many stamped poses of all edges; twice those of the scene and at least 256 if omitted.
    groups: room for so many groups; those of the scene and 16 if omitted.
    group_members: room for so many members of all groups; those of the scene and two for each frame if omitted.
    noise: room for so many dimensions of noise sources on each edge; all those of the scene if omitted, so that
        every edge may come to hold the errors of all.

Raises:
    CapacityError: the scene alone needs more, and of an edit: it does not fit; nothing was changed. ``kind`` names
        the capacity, ``capacity`` is its size.
    ConcurrentWriteError: of an edit, ``forward`` or ``freeze``: another thread is writing.

``os.fork`` waits until a ``forward`` of another thread has ended; the child has the arrays as they are then, to
read and to write, and what either process writes later the other does not see.)");
    arrays.def("__init__",
               [](SceneArrays* self, const SceneGraph& scene, const std::optional<std::size_t>& capacity,
                  const std::optional<std::size_t>& bodies, const std::optional<std::size_t>& shapes,
                  const std::optional<std::size_t>& allowed_pairs, const std::optional<std::size_t>& name_bytes,
                  const std::optional<std::size_t>& twists, const std::optional<std::size_t>& stamps,
                  const std::optional<std::size_t>& groups, const std::optional<std::size_t>& group_members,
                  const std::optional<std::size_t>& noise) {
        const auto given = [](const std::optional<std::size_t>& count) { return count.value_or(Capacities::as_suits); };
        new (self)
            SceneArrays(scene, {given(capacity), given(bodies), given(shapes), given(allowed_pairs), given(name_bytes),
                                given(twists), given(stamps), given(groups), given(group_members), given(noise)});
    },
               nb::arg("scene"), nb::arg("capacity") = nb::none(), nb::kw_only(), nb::arg("bodies") = nb::none(),
               nb::arg("shapes") = nb::none(), nb::arg("allowed_pairs") = nb::none(),
               nb::arg("name_bytes") = nb::none(), nb::arg("twists") = nb::none(), nb::arg("stamps") = nb::none(),
               nb::arg("groups") = nb::none(), nb::arg("group_members") = nb::none(), nb::arg("noise") = nb::none());
    bind_edits(arrays);
    bind_arrays_noise(arrays);
    bind_queries(arrays);
}

}  // namespace tmkit::bindings
