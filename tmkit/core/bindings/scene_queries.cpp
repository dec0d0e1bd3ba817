#include <cmath>

#include "bindings.hpp"
#include "registered.hpp"
#include "tmkit/kinematics.hpp"
#include "tmkit/scene_edit.hpp"

namespace tmkit::bindings {
namespace {

std::vector<std::string> names_of(const SceneGraph& scene, const std::vector<FrameId>& frames) {
    std::vector<std::string> names;
    names.reserve(frames.size());
    for (const FrameId id : frames) names.push_back(scene.record(id).name->text);
    return names;
}

// Giving the interpreter to other threads costs about as much as the poses of so many frames.
constexpr std::size_t frames_worth_a_release = 500;

Kinematics kinematics_at(const SceneGraph& scene, const std::optional<ArrayArgument>& q,
                         const std::optional<ArrayArgument>& qd) {
    const ConfigurationArgument configuration(q, scene);
    if (!configuration.held && scene.joint_count() > 0)
        throw Error(ErrorKind::configuration, "this scene has " + std::to_string(scene.joint_count()) +
                                                  " joints, so at() needs a configuration q");
    std::vector<double> own = configuration.held ? configuration.held->copy() : std::vector<double>();
    std::vector<double> velocities = qd ? read_vector(*qd, "qd", scene.joint_count()) : std::vector<double>();
    if (scene.size() < frames_worth_a_release) return Kinematics(scene, std::move(own), std::move(velocities));
    nb::gil_scoped_release release;
    return Kinematics(scene, std::move(own), std::move(velocities));
}

ReadOnlyArray joint_property(const SceneGraph& scene, double Joint::* property) {
    std::vector<double> values;
    for (const std::string& name : scene.joint_names())
        values.push_back(*scene.record(scene.joint_frame(name)).joint.*property);
    const std::size_t count = values.size();
    return make_owned(std::move(values), {count});
}

ReadOnlyArray joint_limits(const SceneGraph& scene) {
    std::vector<double> values;
    for (const std::string& name : scene.joint_names()) {
        const Joint& joint = *scene.record(scene.joint_frame(name)).joint;
        values.push_back(joint.lower);
        values.push_back(joint.upper);
    }
    const std::size_t count = values.size() / 2;
    return make_owned(std::move(values), {count, 2});
}

ReadOnlyArray configuration(const SceneGraph& scene, const nb::typed<nb::mapping, nb::str, double>& values,
                            const std::optional<ArrayArgument>& base) {
    std::vector<double> q =
        base ? read_vector(*base, "base", scene.joint_count()) : std::vector<double>(scene.joint_count(), 0.0);
    const std::vector<std::string> names = scene.joint_names();
    for (nb::handle item : values.items()) {
        const nb::handle key = item[0], value = item[1];
        std::string_view text;
        if (!nb::try_cast(key, text))
            throw Error(ErrorKind::configuration, "joint names are text, not " + nb::cast<std::string>(nb::repr(key)));
        const std::string name(text);
        const auto at = std::find(names.begin(), names.end(), name);
        if (at == names.end()) {
            const FrameRecord& record = scene.record(scene.joint_frame(name));  // an unknown name is refused here
            throw Error(ErrorKind::configuration,
                        "joint '" + name + "' mimics '" + record.joint->mimic +
                            "', so it has no value of its own; set '" + record.joint->mimic + "'",
                        {{"joint", name}});
        }
        double number = 0.0;
        if (!nb::try_cast(value, number) || !std::isfinite(number))
            throw Error(ErrorKind::configuration,
                        "joint '" + name + "' needs a finite number, not " + nb::cast<std::string>(nb::repr(value)),
                        {{"joint", name}});
        q[static_cast<std::size_t>(at - names.begin())] = number;
    }
    const std::size_t count = q.size();
    return make_array(std::move(q), {count});
}

ReadOnlyArray transformed(const ArrayArgument& rows, const Pose& pose, bool points) {
    std::vector<double> values = read_matrix(rows, points ? "points" : "vectors", 3, ErrorKind::scene);
    for (std::size_t i = 0; i < values.size(); i += 3) {
        const Vector3 row{values[i], values[i + 1], values[i + 2]},
            turned = points ? pose.apply(row) : pose.rotate(row);
        std::copy(turned.begin(), turned.end(), values.begin() + static_cast<std::ptrdiff_t>(i));
    }
    const std::size_t count = values.size() / 3;
    return make_array(std::move(values), {count, 3});
}

void write_pose(double* row, const Pose& pose) {
    std::copy(pose.translation.begin(), pose.translation.end(), row);
    std::copy(pose.quat_xyzw.begin(), pose.quat_xyzw.end(), row + 3);
}

ReadOnlyArray pose_batch(const SceneGraph& scene, std::string_view target, std::string_view reference,
                         const ArrayArgument& q) {
    const std::vector<double> rows = read_matrix(q, "q", scene.joint_count());
    const std::size_t columns = scene.joint_count(), count = columns ? rows.size() / columns : nb::len(q.value);
    std::vector<double> poses(7 * count);
    const std::string to(target), from(reference);
    {
        nb::gil_scoped_release release;
        for (std::size_t i = 0; i < count; ++i)
            write_pose(&poses[7 * i], scene.pose(to, from, rows.data() + i * columns));
    }
    return make_array(std::move(poses), {count, 7});
}

ReadOnlyArray poses_batch(const SceneGraph& scene, const ArrayArgument& q) {
    const std::vector<double> rows = read_matrix(q, "q", scene.joint_count());
    const std::size_t columns = scene.joint_count(), count = columns ? rows.size() / columns : nb::len(q.value),
                      frames = scene.size();
    std::vector<double> poses(7 * count * frames);
    {
        nb::gil_scoped_release release;
        const Layout& layout = scene.layout();
        std::vector<Pose> row(frames);
        for (std::size_t i = 0; i < count; ++i) {
            layout.forward(rows.data() + i * columns, row.data());
            for (std::size_t frame = 0; frame < frames; ++frame)
                write_pose(&poses[7 * (i * frames + frame)], row[frame]);
        }
    }
    return make_array(std::move(poses), {count, frames, 7});
}

}  // namespace

void bind_scene_queries(nb::class_<SceneGraph>& cls) {
    bind_gaussian_queries(cls);
    cls.def_prop_ro("frame_names", [](const SceneGraph& s) { return tuple_of(s.frame_names()); },
                    "Names of all frames in insertion order; reparenting does not change it. O(n).")
        .def_prop_ro("joint_names", [](const SceneGraph& s) { return tuple_of(s.joint_names()); },
                     "Names of the joints that have an entry in the configuration, in its order. O(joints).")
        .def_prop_ro("joint_frames", [](const SceneGraph& s) { return tuple_of(names_of(s, s.joint_frames())); },
                     "The frame that each entry of the configuration moves. O(joints log n).")
        .def_prop_ro("body_names", [](const SceneGraph& s) { return tuple_of(s.body_names()); },
                     "Names of all bodies, in the order of their first frames. O(n).")
        .def_prop_ro("root_names", [](const SceneGraph& s) { return tuple_of(names_of(s, s.roots())); },
                     "Names of the frames without a parent, in insertion order. Costs as ``children``.")
        .def_prop_ro("allowed_pairs",
                     [](const SceneGraph& s) {
        nb::list pairs;
        for (const AllowedPair& pair : s.allowed_pairs()) pairs.append(nb::make_tuple(pair.a, pair.b, pair.reason));
        return nb::typed<nb::tuple, nb::typed<nb::tuple, nb::str, nb::str, nb::str>, nb::ellipsis>(nb::tuple(pairs));
    }, "Pairs of frames that may touch, with the reason: (a, b, reason).")
        .def("__len__", &SceneGraph::size)
        .def("__contains__",
             [](const SceneGraph& s, nb::handle name) {
        std::string_view text;
        return nb::try_cast(name, text) && s.find(text);
    })
        .def("parent",
             [](const SceneGraph& s, const std::string& frame) {
        const FrameId parent = s.record(frame).parent;
        return parent == no_frame ? std::optional<std::string>() : s.record(parent).name->text;
    }, nb::arg("frame"), "Return the name of a frame's parent, None for a root. O(log n).")
        .def("children",
             [](const SceneGraph& s, const std::string& frame) {
        return tuple_of(names_of(s, s.children(s.record(frame).id)));
    }, nb::arg("frame"), R"(Return the names of a frame's children in insertion order.

O(log n + children), and O(log n) for each frame that changed since the version of the previous such query: versions
made from one another share an index. The first query of all of them builds it in O(n log n).)")
        .def("subtree",
             [](const SceneGraph& s, const std::string& frame) {
        return tuple_of(names_of(s, s.subtree(s.record(frame).id)));
    }, nb::arg("frame"), R"(Return a frame and all its descendants, parents before children, level by level.

Costs as ``children``, and O(log n) for each of them.

Raises:
    UnknownNameError: no such frame.)")
        .def("ancestors",
             [](const SceneGraph& s, const std::string& frame) {
        std::vector<std::string> names;
        for (FrameId at = s.record(frame).parent; at != no_frame; at = s.record(at).parent)
            names.push_back(s.record(at).name->text);
        return tuple_of(names);
    }, nb::arg("frame"), "Return the ancestors of a frame, nearest first. O(depth log n).")
        .def("root",
             [](const SceneGraph& s, const std::string& frame) {
        return s.record(s.root_of(s.record(frame).id)).name->text;
    }, nb::arg("frame"), "Return the root of the tree that a frame stands in. O(depth log n).")
        .def("body",
             [](const SceneGraph& s, const std::string& frame) { return s.body(s.record(frame).body).name->text; },
             nb::arg("frame"), "Return the name of the body that a frame is on. O(log n).")
        .def("joint", [](const SceneGraph& s, const std::string& frame) { return joint_of(s.record(frame)); },
             nb::arg("frame"), "Return how a frame moves relative to its parent. O(log n).")
        .def("joint_frame",
             [](const SceneGraph& s, const std::string& joint) { return s.record(s.joint_frame(joint)).name->text; },
             nb::arg("joint"), R"(Return the frame that a joint moves. O(log n).

Raises:
    UnknownNameError: no such joint.)")
        .def("local_pose", [](const SceneGraph& s, const std::string& frame) { return s.record(frame).pose; },
             nb::arg("frame"), "Return parent_from_frame at joint value 0; the identity for a root. O(log n).")
        .def("shapes",
             [](const SceneGraph& s, const std::string& frame) {
        const FrameRecord& record = s.record(frame);
        return nb::typed<nb::tuple, AttachedShape, nb::ellipsis>(
            nb::tuple(nb::cast(record.details ? record.details->shapes : std::vector<AttachedShape>{})));
    }, nb::arg("frame"), "Return the shapes on a frame.")
        .def("classes",
             [](const SceneGraph& s, const std::string& frame) {
        const FrameRecord& record = s.record(frame);
        return tuple_of(record.details ? record.details->classes : std::vector<std::string>{});
    }, nb::arg("frame"), "Return what a frame is, e.g. ``('movable',)``.")
        .def("frames_of_class",
             [](const SceneGraph& s, const std::string& name) {
        return tuple_of(names_of(s, s.frames_of_class(name)));
    }, nb::arg("name"), "Return the frames of a class in insertion order. Costs as ``children``.")
        .def("twist_edge", [](const SceneGraph& s, std::string_view frame) { return twist_tuple(s.twist(frame)); },
             nb::arg("frame"), R"(Return the twist edge of a frame, or None. O(log n).

Returns:
    Name of the reference body, and (6,) the twist at the frame's origin in its axes.

Raises:
    UnknownNameError: no such frame.)")
        .def_prop_ro("twist_frames",
                     [](const SceneGraph& s) {
        std::vector<std::string> names;
        for (FrameId id : s.frames_with_twists()) names.push_back(s.record(id).name->text);
        return nb::typed<nb::tuple, nb::str, nb::ellipsis>(nb::tuple(nb::cast(names)));
    }, "Names of the frames that have a twist edge, in insertion order.")
        .def("twist_path",
             [](const SceneGraph& s, std::string_view from, std::string_view to) {
        std::vector<std::string> names;
        for (FrameId id : s.twist_path(s.body_id(from), s.body_id(to))) names.push_back(s.record(id).name->text);
        return nb::typed<nb::tuple, nb::str, nb::ellipsis>(nb::tuple(nb::cast(names)));
    }, nb::arg("reference"), nb::arg("body"),
             R"(Return the frames whose twist edges lead from one body to another. O(t) for t twist edges.

Args:
    reference: the body to start from.
    body: the body to reach.

Returns:
    Names of the frames, nearest to the body first; none when there is no path.

Raises:
    UnknownNameError: no such body.)")
        .def_prop_ro("bare_bodies",
                     [](const SceneGraph& s) {
        return nb::typed<nb::tuple, nb::str, nb::ellipsis>(nb::tuple(nb::cast(s.bare_bodies())));
    }, "Names of the bodies without a frame, in their order.")
        .def("inertia", &SceneGraph::inertia, nb::arg("frame"),
             R"(Return the mass properties of a frame's body in the axes of that frame, or None.

Raises:
    UnknownNameError: no such frame.
    DisconnectedError: the inertia was given in another tree.)")
        .def("is_allowed", nb::overload_cast<std::string_view, std::string_view>(&SceneGraph::is_allowed, nb::const_),
             nb::arg("a"), nb::arg("b"), R"(Return whether two frames may touch. O(log n).

Args:
    a: a frame.
    b: another frame; the order does not matter.

Raises:
    UnknownNameError: no such frame.)")
        .def("attributes",
             [](const SceneGraph& s, std::string_view frame) { return attribute_dict(attributes_on(s.record(frame))); },
             nb::arg("frame"), "Return the free tags of a frame, a new dict. O(log n).")
        .def("frames_with_attribute",
             [](const SceneGraph& s, const std::string& key, nb::object value) {
        const bool any = value.is(nb::ellipsis());
        const std::string text = any ? std::string() : attribute_text(key, value);
        std::vector<std::string> names;
        s.for_each_frame([&](const FrameRecord& frame) {
            for (const auto& [name, said] : attributes_on(frame))
                if (name == key && (any || said == text)) names.push_back(frame.name->text);
        });
        return tuple_of(names);
    }, nb::arg("key"), nb::arg("value").none() = nb::ellipsis(),
             R"(Return the frames that have an attribute, in insertion order. O(n).

Args:
    key: the name of the attribute.
    value: the JSON value it must have; any value if omitted.

Raises:
    SceneError: a value that is not JSON.)")
        .def_prop_ro("group_names", [](const SceneGraph& s) { return tuple_of(s.group_names()); },
                     "Names of all groups, sorted.")
        .def("group",
             [](const SceneGraph& s, std::string_view name) {
        GroupSpecification group = s.group(name);
        return Group{std::move(group.frames), std::move(group.groups)};
    }, nb::arg("name"), R"(Return what a group holds itself.

Raises:
    UnknownNameError: no such group.)")
        .def("frames_of_group",
             [](const SceneGraph& s, std::string_view name) {
        std::vector<std::string> names;
        for (FrameId id : s.frames_of_group(name)) names.push_back(s.record(id).name->text);
        return tuple_of(names);
    }, nb::arg("name"), R"(Return the frames of a group and of the groups in it, each once, in insertion order.

Raises:
    UnknownNameError: no such group.)")
        .def("groups_of", [](const SceneGraph& s, std::string_view frame) { return tuple_of(s.groups_of(frame)); },
             nb::arg("frame"), "Return the groups that name a frame themselves, sorted. O(groups and their members).")
        .def("frame_id", [](const SceneGraph& s, std::string_view frame) { return s.record(frame).id; },
             nb::arg("frame"), R"(Return the number of a frame, which survives rename and reparenting. O(log n).

Ids grow with insertion, are not used again, and mean the same in all versions made from one another; they are no
part of equality.)")
        .def("frame_of_id",
             [](const SceneGraph& s, FrameId id) {
        const FrameRecord* record = s.find(id);
        return record ? std::optional<std::string>(record->name->text) : std::nullopt;
    }, nb::arg("frame_id"),
             "Return the name of the frame with this id, None when it is not (or no longer) there. O(log n).")
        .def("common_ancestor",
             [](const SceneGraph& s, std::string_view a, std::string_view b) {
        return s.record(s.common_ancestor(s.record(a).id, s.record(b).id)).name->text;
    }, nb::arg("a"), nb::arg("b"),
             R"(Return the nearest frame that is an ancestor of both frames, or one of them. O(depth log n).

Args:
    a: a frame.
    b: another frame of the same tree.

Raises:
    UnknownNameError: no such frame.
    DisconnectedError: the frames are in different trees.)")
        .def("path",
             [](const SceneGraph& s, std::string_view start, std::string_view end) {
        std::vector<std::string> names;
        for (FrameId id : s.path(s.record(start).id, s.record(end).id)) names.push_back(s.record(id).name->text);
        return tuple_of(names);
    }, nb::arg("start"), nb::arg("end"),
             R"(Return the frames from one to another, over their nearest common ancestor. O(depth log n).

Args:
    start: the first frame of the path.
    end: the last frame of the path.

Raises:
    UnknownNameError: no such frame.
    DisconnectedError: the frames are in different trees.)")
        .def("joints_between",
             [](const SceneGraph& s, std::string_view start, std::string_view end) {
        std::size_t top = 0;
        const std::vector<FrameId> path = s.path(s.record(start).id, s.record(end).id, &top);
        std::vector<std::string> names;
        for (std::size_t i = 0; i < path.size(); ++i)
            if (const FrameRecord& record = s.record(path[i]); i != top && record.joint)
                names.push_back(record.joint->name);
        return tuple_of(names);
    }, nb::arg("start"), nb::arg("end"),
             R"(Return the joints on the path between two frames, mimic joints included. O(depth log n).

Args:
    start: the first frame of the path.
    end: the last frame of the path.

Returns:
    Names of the joints, in the order of the path.

Raises:
    UnknownNameError: no such frame.
    DisconnectedError: the frames are in different trees.)")
        .def("transform_points",
             [](const SceneGraph& s, const ArrayArgument& points, std::string_view source, std::string_view target,
                const std::optional<ArrayArgument>& q) {
        return transformed(points, s.pose(source, target, ConfigurationArgument(q, s).get()), true);
    },
             nb::arg("points"), nb::kw_only(), nb::arg("source"), nb::arg("target"), nb::arg("q") = nb::none(),
             R"(Express points given in one frame in coordinates of another. O(n + depth log n).

Args:
    points: (n, 3) metres, in coordinates of the source.
    source: the frame they are given in.
    target: the frame they are returned in.
    q: (n_joints,) configuration, radians or metres; optional when no joint is on the path.

Returns:
    (n, 3) metres, in coordinates of the target; read-only.

Raises:
    UnknownNameError: no such frame.
    DisconnectedError: the frames are in different trees.
    ConfigurationError: a joint is on the path and q is missing, or q has the wrong length or non-finite numbers.)")
        .def("transform_vectors",
             [](const SceneGraph& s, const ArrayArgument& vectors, std::string_view source, std::string_view target,
                const std::optional<ArrayArgument>& q) {
        return transformed(vectors, s.pose(source, target, ConfigurationArgument(q, s).get()), false);
    },
             nb::arg("vectors"), nb::kw_only(), nb::arg("source"), nb::arg("target"), nb::arg("q") = nb::none(),
             R"(Express free vectors given in the axes of one frame in the axes of another. O(n + depth log n).

They are rotated, not translated.

Args:
    vectors: (n, 3), in the axes of the source.
    source: the frame they are given in.
    target: the frame they are returned in.
    q: (n_joints,) configuration, radians or metres; optional when no joint is on the path.

Returns:
    (n, 3) in the axes of the target; read-only.

Raises:
    UnknownNameError: no such frame.
    DisconnectedError: the frames are in different trees.
    ConfigurationError: a joint is on the path and q is missing, or q has the wrong length or non-finite numbers.)")
        .def("pose_batch", &pose_batch, nb::arg("target"), nb::arg("reference"), nb::arg("q"),
             R"(Return the pose of one frame relative to another for many configurations. O(m depth).

Other threads run meanwhile. Row i has the bits of ``pose(target, reference, q=q[i])``.

Args:
    target: the frame of which the pose is returned.
    reference: the frame it is relative to.
    q: (m, n_joints) configurations, radians or metres.

Returns:
    (m, 7) reference_from_target: x, y, z, qx, qy, qz, qw; read-only.

Raises:
    UnknownNameError: no such frame.
    DisconnectedError: the frames are in different trees.
    ConfigurationError: q has the wrong shape or non-finite numbers.)")
        .def("poses_batch", &poses_batch, nb::arg("q"),
             R"(Return the poses of all frames for many configurations (m, n_joints). O(m n).

Other threads run meanwhile. ``poses_batch(q)[i]`` has the bits of ``at(q[i]).poses``.

Returns:
    (m, n_frames, 7) x, y, z, qx, qy, qz, qw relative to the root; read-only.

Raises:
    ConfigurationError: q has the wrong shape or non-finite numbers.)")
        .def_prop_ro("digest",
                     [](const SceneGraph& s) {
        const std::string bytes = s.content_bytes();
        return nb::cast<std::string>(
            nb::module_::import_("hashlib").attr("sha256")(nb::bytes(bytes.data(), bytes.size())).attr("hexdigest")());
    }, R"(SHA-256 of the content, as hexadecimal text: equal if and only if scenes are equal. O(n).

The same in every process. Content is what ``==`` compares: insertion order, names, parents, bodies, joints, poses,
classes, attributes, shapes, inertia, allowed pairs and groups; not ids. -0.0 is 0.0. A pose is its seven numbers,
so that q and -q, one rotation, make two scenes.)")
        .def("pose",
             [](const SceneGraph& s, std::string_view target, std::string_view reference,
                const std::optional<ArrayArgument>& q) {
        return in_range(s.pose(target, reference, ConfigurationArgument(q, s).get()));
    },
             nb::arg("target"), nb::arg("reference"), nb::kw_only(), nb::arg("q") = nb::none(),
             R"(Return the pose of one frame relative to another: reference_from_target. O(depth log n).

Args:
    target: the frame of which the pose is returned.
    reference: the frame it is relative to, and in whose axes the coordinates are.
    q: (n_joints,) configuration, radians or metres; optional when no joint is on the path.

Raises:
    UnknownNameError: no such frame.
    DisconnectedError: the frames are in different trees.
    ConfigurationError: a joint is on the path and q is missing, or q has the wrong length or non-finite numbers.)")
        .def("pose",
             [](const SceneGraph& s, std::string_view target, std::string_view reference, double stamp,
                const std::optional<ArrayArgument>& q, std::string_view policy) {
        return in_range(s.pose(target, reference, ConfigurationArgument(q, s).get(), {stamp, stamp_policy(policy)}));
    },
             nb::arg("target"), nb::arg("reference"), nb::kw_only(), nb::arg("stamp"), nb::arg("q") = nb::none(),
             nb::arg("policy") = "interpolated",
             R"(Return the pose of one frame relative to another at a time, by stamped poses. O(depth log n).

Edges without stamped poses keep their pose; joints are at q.

Args:
    target: the frame of which the pose is returned.
    reference: the frame it is relative to, and in whose axes the coordinates are.
    stamp: seconds.
    q: (n_joints,) configuration, radians or metres; optional when no joint is on the path.
    policy: between two stamps, the pose of the ``closest`` (of two equally near, the newer), of the ``preceding``,
        or one ``interpolated``: the origin along a straight line, the orientation along the shorter arc; with
        ``screw`` the motion between both is one of constant twist.

Raises:
    UnknownNameError: no such frame, or policy.
    DisconnectedError: the frames are in different trees.
    StampError: the stamp lies outside the history of an edge on the path.
    ConfigurationError: a joint is on the path and q is missing, or q has the wrong length or non-finite numbers.)")
        .def("stamped_poses",
             [](const SceneGraph& s, std::string_view frame) {
        return stamps_copy(s.stamped_poses(frame));
    }, nb::arg("frame"), R"(Return the stamped poses of a frame's edge, or None when none are kept. O(log n + capacity).

Raises:
    UnknownNameError: no such frame.)")
        .def("stamps",
             [](const SceneGraph& s, std::string_view frame) {
        const std::optional<StampedPoses> known = stamps_copy(s.stamped_poses(frame));
        return stamps_array(known.value_or(StampedPoses{}));
    }, nb::arg("frame"), R"(Return the stamps (k,) of a frame's edge, ascending, in seconds. O(log n + k).

Raises:
    UnknownNameError: no such frame.)")
        .def("twist_from_stamps",
             [](const SceneGraph& s, std::string_view target, std::string_view reference, double first, double second,
                const std::optional<ArrayArgument>& q, std::string_view policy) {
        return make_array(s.twist_from_stamps(target, reference, first, second, ConfigurationArgument(q, s).get(),
                                              stamp_policy(policy)));
    },
             nb::arg("target"), nb::arg("reference"), nb::kw_only(), nb::arg("first"), nb::arg("second"),
             nb::arg("q") = nb::none(), nb::arg("policy") = "interpolated",
             R"(Return (6,) the constant twist of a frame relative to another between two stamps.

It leads from the pose at the first stamp to that at the second. It is the twist of the target's body, at the
target's origin and in its axes, linear part first (m/s, rad/s): what ``set_twist`` takes, relative to the body of
the reference frame.

Args:
    target: the frame that moves.
    reference: the frame relative to which it moves.
    first: stamp of the first pose, seconds.
    second: a later stamp, seconds.
    q: (n_joints,) configuration, radians or metres; optional when no joint is on the path.
    policy: for stamps between those of the histories; see ``pose``.

Raises:
    StampError: the second stamp is not later, or one lies outside a history on the path.
    UnknownNameError, DisconnectedError, ConfigurationError: as ``pose``.)")
        .def("at", &kinematics_at, nb::arg("q") = nb::none(), nb::arg("qd") = nb::none(),
             R"(Run forward kinematics at a configuration. O(n).

Args:
    q: (n_joints,) configuration, radians or metres, in joint_names order; optional without joints.
    qd: (n_joints,) joint velocities, rad/s or m/s, for twists; none if omitted.

Returns:
    The scene at this configuration, with all poses computed.

Raises:
    ConfigurationError: q is missing though there are joints, or q or qd has the wrong length or non-finite numbers.)")
        .def("zero_configuration",
             [](const SceneGraph& s) {
        return make_array(std::vector<double>(s.joint_count(), 0.0), {s.joint_count()});
    }, "Return the configuration (n_joints,) of zeros, whether or not it is within the limits.")
        .def("configuration", &configuration, nb::arg("values"), nb::kw_only(), nb::arg("base") = nb::none(),
             R"(Return a configuration (n_joints,) from joint values by name.

Args:
    values: radians or metres by joint name.
    base: the configuration that gives all other entries; zeros if omitted.

Raises:
    UnknownNameError: no such joint.
    ConfigurationError: a joint that mimics another, or a value that is not finite.)")
        .def_prop_ro("joint_limits", &joint_limits,
                     "(n_joints, 2) smallest and largest values, radians or metres; -inf and inf when unlimited.")
        .def_prop_ro("velocity_limits", [](const SceneGraph& s) { return joint_property(s, &Joint::velocity); },
                     "(n_joints,) largest speeds, rad/s or m/s.")
        .def_prop_ro("effort_limits", [](const SceneGraph& s) { return joint_property(s, &Joint::effort); },
                     "(n_joints,) largest torques or forces, N m or N.")
        .def("specification", [](const SceneGraph& s, const std::string& frame) { return s.specification(frame); },
             nb::arg("frame"),
             R"(Return all that is said of one frame; ``SceneGraph.from_frames`` makes the scene of these again.

Raises:
    UnknownNameError: no such frame.)")
        .def_static("from_frames",
                    [](const std::vector<FrameSpecification>& frames,
                       const std::vector<std::tuple<std::string, std::string, std::string>>& allowed,
                       const std::vector<std::string>& bare_bodies) {
        SceneEdit edit{SceneGraph()};
        for (const std::string& body : bare_bodies) edit.add_body(body);
        edit.add_frames(frames);
        for (const auto& [a, b, reason] : allowed) edit.allow_collision(a, b, reason);
        return std::move(edit).take();
    },
                    nb::arg("frames"), nb::kw_only(), nb::arg("allowed") = nb::tuple(),
                    nb::arg("bare_bodies") = nb::tuple(), R"(Make a scene of all its frames at once. O(n log n).

Args:
    frames: in insertion order; a parent, or the leader of a mimic joint, may come after.
    allowed: pairs that may touch, with the reason: (a, b, reason).
    bare_bodies: bodies that have no frame.

Raises:
    UnknownNameError, DuplicateNameError, CycleError, SceneError: as the single edits.)")
        .def("_defects", &SceneGraph::defects,
             "Describe a broken invariant of the inner maps, for tests; empty when all is well. O(n log n).");
    // What people see is written in Python.
    cls.def("tree",
            [](nb::handle self, const std::optional<std::string>& frame, const std::optional<int>& depth,
               const std::optional<ArrayArgument>& q) {
        return nb::cast<std::string>(registered_function(&Registered::tree_text)(
            self, nb::arg("frame") = frame, nb::arg("depth") = depth, nb::arg("q") = q));
    },
            nb::kw_only(), nb::arg("frame") = nb::none(), nb::arg("depth") = nb::none(), nb::arg("q") = nb::none(),
            R"(Return the tree as text, for ``print(scene.tree())``. O(n).

Args:
    frame: the frame at the top; all roots if omitted.
    depth: levels below the top that are shown; all if omitted.
    q: (n_joints,) configuration, radians or metres: joint values and poses are shown too.

Raises:
    UnknownNameError: no such frame.
    ConfigurationError: q has the wrong length or non-finite numbers.)")
        .def("consolidated",
             [](nb::handle self, const nb::typed<nb::iterable, nb::str>& keep) {
        return nb::typed<nb::object, SceneGraph>(
            registered_function(&Registered::consolidated)(self, nb::arg("keep") = keep));
    }, nb::kw_only(), nb::arg("keep") = nb::tuple(),
             R"(Return the scene with chains of fixed frames folded into one frame each. O(n log n).

Frames that stay give the same poses (to rounding), joints, collision answers and masses.

Args:
    keep: names of frames that stay in any case.

Raises:
    UnknownNameError: no such frame to keep.)")
        .def("_repr_html_", [](nb::handle self) {
        return nb::cast<std::string>(registered_function(&Registered::tree_html)(self));
    }, "Return what a notebook shows.");
}

void bind_group(nb::module_& m) {
    nb::class_<Group>(m, "Group", nb::is_weak_referenceable(),
                      "What a group holds itself: frames and other groups. Immutable.")
        .def_prop_ro("frames", [](const Group& g) { return tuple_of(g.frames); }, "Its frames, as they were given.")
        .def_prop_ro("groups", [](const Group& g) { return tuple_of(g.groups); },
                     "The groups in it, as they were given.")
        .def("__eq__",
             [](const Group& g, nb::handle o) {
        return nb::isinstance<Group>(o) && g.frames == nb::cast<const Group&>(o).frames &&
               g.groups == nb::cast<const Group&>(o).groups;
    }, nb::arg("other").none())
        .def("__hash__", [](const Group& g) {
        return nb::hash(nb::make_tuple(tuple_of(g.frames), tuple_of(g.groups)));
    }).def("__repr__", [](const Group& g) {
        return "Group(frames=" + nb::cast<std::string>(nb::repr(tuple_of(g.frames))) +
               ", groups=" + nb::cast<std::string>(nb::repr(tuple_of(g.groups))) + ")";
    });
}

}  // namespace tmkit::bindings
