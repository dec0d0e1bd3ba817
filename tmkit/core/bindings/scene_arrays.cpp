#include "tmkit/scene_arrays.hpp"

#include "edits.hpp"
#include "tmkit/no_fork.hpp"

namespace tmkit::bindings {
namespace {

// From so many frames on, forward kinematics takes longer than it takes to let other threads run meanwhile.
constexpr std::size_t frames_worth_a_release = 512;

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
    if (arrays.size() < frames_worth_a_release) return arrays.forward(held.numbers());
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

ReadOnlyArray present(const SceneArrays& arrays) {
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
    }, nb::arg("name"), nb::kw_only(), nb::arg("body") = nb::none(),
            "Add a frame without a parent, on an existing body; by default on a new one of its own name. "
            "O(1).\n\nRaises:\n    DuplicateNameError: the name is taken.\n    UnknownNameError: no such body.\n    "
            "CapacityError: no room.")
        .def("add_body", &SceneArrays::add_body, nb::arg("name"),
             "Add a body that has no frame yet; it is gone with its last frame. O(1).\n\nRaises:\n    "
             "DuplicateNameError: the name is taken.\n    SceneError: an empty name.\n    CapacityError: no room.")
        .def("remove_body", &SceneArrays::remove_body, nb::arg("name"),
             "Remove a body without frames. O(twists).\n\nRaises:\n    UnknownNameError: no such body.\n    "
             "SceneError: it has a frame, or a twist is relative to it.")
        .def(
            "attach", &SceneArrays::attach, nb::arg("root"), nb::arg("parent"), nb::kw_only(), nb::arg("pose") = Pose{},
            nb::arg("joint") = Joint{},
            R"(Hang a root, and with it its tree, under a frame of another tree: as ``SceneGraph.attach``. O(depth + frames that move), with a joint O(n).

Raises:
    UnknownNameError, CycleError, SceneError: as ``SceneGraph.attach``.
    CapacityError: the joint's name is too long.)")
        .def(
            "set_twist",
            [](SceneArrays& self, std::string_view frame, std::string_view reference, const ArrayArgument& vector,
               const std::optional<ArrayArgument>& covariance) {
        const HeldVector held(vector, "vector", 6, ErrorKind::scene);
        Vector6 numbers;
        std::copy(held.numbers().begin(), held.numbers().end(), numbers.begin());
        self.set_twist(frame, reference, numbers, own_twist_noise(covariance, frame, reference));
    },
            nb::arg("frame"), nb::arg("reference"), nb::arg("vector"), nb::kw_only(),
            nb::arg("covariance") = nb::none(),
            R"(Say how a frame moves relative to another body: as ``SceneGraph.set_twist``. O(1) for another value of an edge that is there.

A new edge takes O(t * (log t + depth)) for t edges. A covariance makes a source.

Raises:
    UnknownNameError, SceneError: as ``SceneGraph.set_twist``.
    CapacityError: no room for another.)")
        .def("remove_twist", &SceneArrays::remove_twist, nb::arg("frame"),
             "Take the twist edge of a frame away, if it has one. O(1).\n\nRaises:\n    UnknownNameError: no such "
             "frame.")
        .def(
            "add_stamped_pose",
            [](SceneArrays& self, std::string_view frame, const Pose& pose, double stamp,
               std::optional<std::size_t> capacity,
               std::optional<double> window) { self.add_stamped_pose(frame, {stamp, pose}, capacity, window); },
            nb::arg("frame"), nb::arg("pose"), nb::kw_only(), nb::arg("stamp"), nb::arg("capacity") = nb::none(),
            nb::arg("window") = nb::none(),
            R"(Remember where a frame was at a time: as ``SceneGraph.add_stamped_pose``. O(depth + poses of the edge + subtree).

Each edge drops its own oldest poses by its own capacity and window; those of other edges are never dropped for it.

Raises:
    UnknownNameError, StampError, SceneError: as ``SceneGraph.add_stamped_pose``.
    CapacityError: no room for another, and none of this edge's own is to go.)")
        .def("set_stamped_poses",
             [](SceneArrays& self, std::string_view frame, const std::optional<StampedPoses>& stamps) {
        self.set_stamped_poses(frame, stamps ? &*stamps : nullptr);
    }, nb::arg("frame"), nb::arg("stamps").none(),
             "Set the whole history of a frame's edge, or take it away with None; its present pose stays.\n\nRaises:\n "
             "   UnknownNameError: no such frame.\n    SceneError: a root, or an edge inside one body.\n    "
             "CapacityError: no room for so many.")
        .def("set_group",
             [](SceneArrays& self, std::string_view name, const std::vector<std::string>& frames,
                const std::vector<std::string>& groups) { self.set_group(name, frames, groups); },
             nb::arg("name"), nb::kw_only(), nb::arg("frames") = nb::tuple(), nb::arg("groups") = nb::tuple(),
             "Make a group, or replace what it holds: as ``SceneGraph.set_group``. O(members squared).\n\nRaises:\n    "
             "UnknownNameError: no such frame or group.\n    CycleError: the group would hold itself.\n    "
             "CapacityError: no room for another group, or for so many members.")
        .def("remove_group", &SceneArrays::remove_group, nb::arg("name"),
             "Remove a group, also from the groups that hold it; its frames stay.\n\nRaises:\n    UnknownNameError: no "
             "such group.")
        .def("group",
             [](const SceneArrays& self, std::string_view name) {
        GroupSpecification group = self.group(name);
        return Group{std::move(group.frames), std::move(group.groups)};
    }, nb::arg("name"),
             "Return what a group holds itself; the writer asks.\n\nRaises:\n    UnknownNameError: no such group.")
        .def_prop_ro("group_names", [](const SceneArrays& self) { return tuple_of(self.group_names()); },
                     "Names of all groups, sorted; the writer asks.")
        .def(
            "add_frame",
            [](SceneArrays& self, std::string_view name, std::string_view parent, const Pose& pose, const Joint& joint,
               const std::optional<std::string_view>& body, const std::vector<std::string>& classes,
               const std::vector<ShapeArgument>& shapes) {
        require_known_body(self, name, body);
        const std::vector<AttachedShape> attached = attached_shapes(shapes);
        self.add_frame({name, parent, pose, &joint, body.value_or(std::string_view()), attached, classes});
    },
            nb::arg("name"), nb::arg("parent"), nb::kw_only(), nb::arg("pose") = Pose{}, nb::arg("joint") = Joint{},
            nb::arg("body") = nb::none(), nb::arg("classes") = nb::tuple(), nb::arg("shapes") = nb::tuple(),
            R"(Add a frame under a parent: the arguments and errors of ``SceneGraph.add_frame``. O(depth), with a joint O(n).

Raises:
    CapacityError: no room for another frame, body or shape, or a name that is too long.)")
        .def(
            "remove_frame", &SceneArrays::remove_frame, nb::arg("frame"), nb::kw_only(), nb::arg("subtree") = false,
            R"(Remove a frame, with all its descendants when ``subtree`` is set. O(n + allowed pairs + members of groups + twists).

Raises:
    UnknownNameError: no such frame.
    SceneError: it has children and ``subtree`` is not set, a joint that stays mimics one that would go, or a twist that
        stays is relative to a body that would go.)")
        .def(
            "rename_frame", &SceneArrays::rename_frame, nb::arg("frame"), nb::arg("name"),
            "Give a frame another name; its joint and body keep theirs. O(1).\n\nRaises:\n    UnknownNameError: no "
            "such frame.\n    DuplicateNameError: the new name is taken.\n    CapacityError: the new name is too long.")
        .def("reparent",
             [](SceneArrays& self, std::string_view frame, std::string_view parent, const Pose* pose,
                const std::optional<ArrayArgument>& q) {
        if (pose && q) throw Error(ErrorKind::scene, "give either pose or q to reparent, not both");
        if (pose) return self.reparent(frame, parent, *pose);
        self.reparent_keeping_pose(frame, parent, GivenConfiguration(q, self).configuration);
    },
             nb::arg("frame"), nb::arg("parent"), nb::kw_only(), nb::arg("pose").none() = nb::none(),
             nb::arg("q") = nb::none(),
             R"(Hang a frame, and with it its subtree, under another parent. O(depth + subtree).

Args:
    frame: the frame that moves.
    parent: its new parent.
    pose: parent_from_frame in the new place, at joint value 0.
    q: without ``pose``, the frame keeps its place in the world at this configuration (n_joints,); at the present one
        when left out.

Raises:
    UnknownNameError, CycleError, ConfigurationError, SceneError: as ``SceneGraph.reparent``.)")
        .def("set_pose", &SceneArrays::set_pose, nb::arg("frame"), nb::arg("pose"),
             "Set parent_from_frame at joint value 0. O(depth + subtree).\n\nRaises:\n    UnknownNameError: no such "
             "frame.\n    SceneError: a root, or an edge inside one body, whose pose is constant.")
        .def("set_joint", &SceneArrays::set_joint, nb::arg("frame"), nb::arg("joint"),
             "Set how a frame moves relative to its parent; a joint that was there keeps its value, a new one begins "
             "at 0. O(n).\n\nRaises:\n    UnknownNameError: no such frame, or no such leader.\n    DuplicateNameError: "
             "the joint name is taken.\n    SceneError: a root, an edge inside one body, or others mimic the joint.\n  "
             "  CapacityError: the joint's name is too long.")
        .def("set_classes",
             [](SceneArrays& self, std::string_view frame, std::vector<std::string> classes) {
        self.set_classes(frame, std::move(classes));
    }, nb::arg("frame"), nb::arg("classes"), "Set what a frame is, e.g. ``('movable',)``.")
        .def("set_attributes",
             [](SceneArrays& self, std::string_view frame, const AttributeMapping& attributes) {
        self.set_attributes(frame, attributes_of(attributes));
    }, nb::arg("frame"), nb::arg("attributes"),
             "Set all free tags of a frame: text, numbers, true, false, None, lists and dicts of these.")
        .def("set_attribute",
             [](SceneArrays& self, std::string_view frame, const std::string& key, nb::handle value) {
        const std::string text = attribute_text(key, value);
        self.set_attributes(frame, with_attribute(self.specification(frame).attributes, key, text));
    }, nb::arg("frame"), nb::arg("key"), nb::arg("value").none(),
             "Set one free tag of a frame; see ``set_attributes``.")
        .def("specification", [](const SceneArrays& self, std::string_view frame) { return self.specification(frame); },
             nb::arg("frame"),
             "Return all that is said of one frame, as ``SceneGraph.specification``; the writer asks.\n\nRaises:\n    "
             "UnknownNameError: no such frame.")
        .def("set_shapes",
             [](SceneArrays& self, std::string_view frame, const std::vector<ShapeArgument>& shapes) {
        self.set_shapes(frame, attached_shapes(shapes));
    }, nb::arg("frame"), nb::arg("shapes"),
             "Set all shapes of a frame.\n\nRaises:\n    CapacityError: no room for so many.")
        .def("add_shape", &SceneArrays::add_shape, nb::arg("frame"), nb::arg("shape"),
             "Attach one more shape to a frame.\n\nRaises:\n    CapacityError: no room for another.")
        .def("set_inertia", &SceneArrays::set_inertia, nb::arg("frame"), nb::arg("inertia").none(),
             "Set the mass properties of the body that a frame sits on, in the axes of that frame, or take them away "
             "with None. O(1).\n\nRaises:\n    SceneError: a mass that is not positive, or a matrix that is not "
             "symmetric positive semi-definite.")
        .def("allow_collision", &SceneArrays::allow_collision, nb::arg("a"), nb::arg("b"), nb::kw_only(),
             nb::arg("reason") = "user",
             "Let the shapes of two frames touch. O(1).\n\nRaises:\n    CapacityError: no room for another pair, or a "
             "reason that is too long.")
        .def("forbid_collision", &SceneArrays::forbid_collision, nb::arg("a"), nb::arg("b"),
             "Check a pair of frames again. O(1).")
        .def("forward", &forward, nb::arg("q"),
             R"(Go to a configuration (n_joints,): computes the poses of all frames in place. O(n).

Raises:
    ConfigurationError: q has the wrong length or numbers that are not finite.)")
        .def("freeze", &SceneArrays::freeze,
             R"(Return the scene as it is now, as a persistent ``SceneGraph``. O(n log n).

The identity when nothing was edited; otherwise what the same edits would have made of the first scene.)");
}

void bind_queries(nb::class_<SceneArrays>& cls) {
    cls.def_prop_ro("q", &present, "(n_joints,) the present configuration, in joint_names order; a copy, read-only.")
        .def_prop_ro("poses", &poses,
                     "(n, 7) x, y, z, qx, qy, qz, qw of each frame relative to its root at the present configuration, "
                     "in frame_names order; a copy, read-only.")
        .def("write_poses", &write_poses, nb::arg("out"),
             nb::sig("def write_poses(self, out: numpy.typing.NDArray[numpy.float64]) -> int"),
             R"(Write ``poses`` into the first rows of an array (m, 7) of float64, and return how many frames there are.

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
    target: the frame whose pose is asked.
    reference: the frame it is relative to; the root of its tree when left out.
    q: configuration (n_joints,); the present one when left out.

Raises:
    UnknownNameError: no such frame.
    DisconnectedError: the frames stand in different trees.
    ConfigurationError: q has the wrong length or numbers that are not finite.)")
        .def(
            "pose",
            [](const SceneArrays& self, std::string_view target, const std::optional<std::string_view>& reference,
               double stamp, const std::optional<ArrayArgument>& q, std::string_view policy) {
        return in_range(
            self.pose(target, reference, GivenConfiguration(q, self).configuration, {stamp, stamp_policy(policy)}));
    },
            nb::arg("target"), nb::arg("reference") = nb::none(), nb::kw_only(), nb::arg("stamp"),
            nb::arg("q") = nb::none(), nb::arg("policy") = "interpolated",
            R"(Return reference_from_target at a time, by the stamped poses of the edges on the path. O(depth + poses of the edges).

The same bits as ``SceneGraph.pose`` gives for this configuration and stamp.

Args:
    target: the frame whose pose is asked.
    reference: the frame it is relative to; the root of its tree when left out.
    stamp: seconds.
    q: configuration (n_joints,); the present one when left out.
    policy: between two stamps: ``closest``, ``preceding``, ``interpolated`` or ``screw``.

Raises:
    UnknownNameError: no such frame, or policy.
    DisconnectedError: the frames stand in different trees.
    StampError: the stamp lies outside of the history of an edge on the path.
    ConfigurationError: q has the wrong length or numbers that are not finite.)")
        .def("jacobian",
             [](const SceneArrays& self, std::string_view frame) {
        const std::size_t columns = self.joint_count();
        std::vector<double> rows(6 * columns);
        self.jacobian(frame, rows);
        return make_array(std::move(rows), {6, columns});
    }, nb::arg("frame"),
             "Return the Jacobian (6, n_joints) of a frame's origin at the present configuration, as "
             "``Kinematics.jacobian``. O(depth + n_joints).\n\nRaises:\n    UnknownNameError: no such frame.")
        .def("local_pose", &SceneArrays::local_pose, nb::arg("frame"),
             "Return parent_from_frame at joint value 0; the identity for a root. O(1).")
        .def("stamped_poses", &SceneArrays::stamped_poses, nb::arg("frame"),
             "Return the stamped poses of a frame's edge, or None when none are kept.\n\nRaises:\n    "
             "UnknownNameError: no such frame.")
        .def("stamps",
             [](const SceneArrays& self, std::string_view frame) {
        return stamps_array(self.stamped_poses(frame).value_or(StampedPoses{}));
    }, nb::arg("frame"),
             "Return the stamps (k,) at which the pose of a frame's edge is known, ascending, in seconds.\n\nRaises:\n "
             "   UnknownNameError: no such frame.")
        .def("twist_from_stamps",
             [](const SceneArrays& self, std::string_view target, std::string_view reference, double first,
                double second, const std::optional<ArrayArgument>& q, std::string_view policy) {
        return make_array(self.twist_from_stamps(target, reference, first, second,
                                                 GivenConfiguration(q, self).configuration, stamp_policy(policy)));
    },
             nb::arg("target"), nb::arg("reference"), nb::kw_only(), nb::arg("first"), nb::arg("second"),
             nb::arg("q") = nb::none(), nb::arg("policy") = "interpolated",
             "Return (6,) the constant twist that leads from a pose at one stamp to that at a later one: as "
             "``SceneGraph.twist_from_stamps``.\n\nRaises:\n    StampError, UnknownNameError, DisconnectedError, "
             "ConfigurationError: as ``SceneGraph.twist_from_stamps``.")
        .def("body", &SceneArrays::body, nb::arg("frame"),
             "Return the name of the body that a frame sits on. O(1).\n\nRaises:\n    UnknownNameError: no such frame.")
        .def_prop_ro("body_names", [](const SceneArrays& self) { return tuple_of(self.body_names()); },
                     "Names of all bodies, in the order of their first frames; then those without, by name. O(n).")
        .def_prop_ro("bare_bodies", [](const SceneArrays& self) { return tuple_of(self.bare_bodies()); },
                     "Names of the bodies without a frame, in their order.")
        .def("twist_edge",
             [](const SceneArrays& self, std::string_view frame) { return twist_tuple(self.twist(frame)); },
             nb::arg("frame"),
             "Return the twist edge of a frame: name of the reference body and (6,) the twist at the frame's origin, "
             "in its axes; or None. O(1).\n\nRaises:\n    UnknownNameError: no such frame.")
        .def_prop_ro("twist_frames", [](const SceneArrays& self) { return tuple_of(self.twist_frames()); },
                     "Names of the frames that have a twist edge, in insertion order.")
        .def("twist_path",
             [](const SceneArrays& self, std::string_view from, std::string_view to) {
        return tuple_of(self.twist_path(from, to));
    }, nb::arg("reference"), nb::arg("body"),
             "Return the frames whose twist edges lead from a reference body to a body, nearest to the body first; "
             "none when there is no path.\n\nRaises:\n    UnknownNameError: no such body.")
        .def("root", &SceneArrays::root, nb::arg("frame"),
             "Return the root of the tree that a frame stands in. O(depth).\n\nRaises:\n    UnknownNameError: no such "
             "frame.")
        .def("ancestors",
             [](const SceneArrays& self, std::string_view frame) { return tuple_of(self.ancestors(frame)); },
             nb::arg("frame"),
             "Return the ancestors of a frame, nearest first. O(depth).\n\nRaises:\n    UnknownNameError: no such "
             "frame.")
        .def("parent", &SceneArrays::parent, nb::arg("frame"),
             "Return the name of a frame's parent, None for a root. O(1).")
        .def("children", [](const SceneArrays& self, std::string_view frame) { return tuple_of(self.children(frame)); },
             nb::arg("frame"), "Return the names of a frame's children in insertion order. O(k log k) for k children.")
        .def_prop_ro("frame_names", [](const SceneArrays& self) { return tuple_of(self.frame_names()); },
                     "Names of all frames in insertion order. O(n).")
        .def_prop_ro("joint_names", [](const SceneArrays& self) { return tuple_of(self.joint_names()); },
                     "Names of the joints that have an entry in the configuration, in its order. O(n).")
        .def("is_allowed", &SceneArrays::is_allowed, nb::arg("a"), nb::arg("b"),
             "Tell whether two frames may touch. O(1).")
        .def("zero_configuration",
             [](const SceneArrays& self) {
        return make_array(std::vector<double>(self.joint_count(), 0.0), {self.joint_count()});
    }, "Return the configuration (n_joints,) of zeros.")
        .def_prop_ro("capacities", &capacities,
                     "How much there is room for: ``frames``, ``bodies``, ``shapes``, ``allowed_pairs``, "
                     "``name_bytes``, ``twists``, ``stamps``, ``groups`` and ``group_members``.")
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

It begins as a copy of a scene at the zero configuration. Edits and ``forward`` work in place and allocate nothing; after
each, all poses are those of the scene as it is now. Edits keep the rules of ``SceneGraph`` and raise the same errors;
queries answer with the same bits. ``freeze`` makes a ``SceneGraph`` again.

One thread may write, while any number of threads read: poses, Jacobians, names and parents are those before or after an
edit, never in between, and the writer never waits for readers. Edits, ``forward``, groups and ``freeze`` belong to the writer.

Args:
    scene: what to begin with.
    capacity: room for so many frames; twice those of the scene and at least 64 when left out.
    bodies: room for so many bodies; as many as frames when left out.
    shapes: room for so many attached shapes; those of the scene and one for each frame when left out.
    allowed_pairs: room for so many pairs that may touch; those of the scene and four for each frame when left out.
    name_bytes: the longest name in UTF-8, also of a reason why a pair may touch; at least 64 when left out.
    twists: room for so many twist edges; those of the scene and one for each frame when left out.
    stamps: room for so many stamped poses of all edges; twice those of the scene and at least 256 when left out.
    groups: room for so many groups; those of the scene and 16 when left out.
    group_members: room for so many members of all groups; those of the scene and two for each frame when left out.
    noise: room for so many dimensions of noise sources on each edge; all those of the scene when left out, so that every
        edge may come to hold the errors of all.

Raises:
    CapacityError: the scene alone needs more, and of an edit: it does not fit; nothing was changed. ``kind`` names the
        capacity, ``capacity`` is its size.
    ConcurrentWriteError: of an edit, ``forward`` or ``freeze``: another thread is writing.

``os.fork`` waits until a ``forward`` of another thread has ended; the child has the arrays as they are then, to read and to
write, and what either process writes later the other does not see.)");
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
