// Queries of the content of a scene: names, trees, bodies, shapes, attributes, groups, paths.
// Queries common with SceneArrays are bound once.
#include "edits.hpp"

namespace tmkit::bindings {
namespace {

// Queries of a scene by the names of frames, as for arrays.
struct ByName {
    const SceneGraph& s;

    std::string name(FrameId id) const { return s.record(id).name->text; }
    std::optional<std::string> parent(std::string_view frame) const {
        const FrameId above = s.record(frame).parent;
        return above == no_frame ? std::nullopt : std::optional(name(above));
    }
    std::string root(std::string_view frame) const { return name(s.root_of(s.record(frame).id)); }
    std::string body(std::string_view frame) const {
        return s.body(s.record(frame).body).name->text;
    }
    Pose local_pose(std::string_view frame) const { return s.record(frame).pose; }
    const EdgeNoise* noise(std::string_view frame) const { return s.record(frame).noise.get(); }
    std::optional<StampedPoses> stamped_poses(std::string_view frame) const {
        return stamps_copy(s.stamped_poses(frame));
    }
    bool contains(std::string_view frame) const { return s.find(frame); }
    Names children(std::string_view frame) const {
        return names_of(s, s.children(s.record(frame).id));
    }
    Names twist_frames() const { return names_of(s, s.frames_with_twists()); }
    Names ancestors(std::string_view frame) const {
        std::vector<FrameId> above;
        for (FrameId ancestor = s.record(frame).parent; ancestor != no_frame;
             ancestor = s.record(ancestor).parent)
            above.push_back(ancestor);
        return names_of(s, above);
    }
};
ByName by_name(const SceneGraph& scene) { return {scene}; }
const SceneArrays& by_name(const SceneArrays& arrays) { return arrays; }
Names tuple_of(Names names) { return names; }

constexpr std::size_t max_compared_length = 200;  // the cost grows with the product of lengths

// Warn, at the line of the caller, of a class that no frame has if a similar class exists. Python
// shows a warning once for each text and line; a filter may turn it into an exception.
void warn_of_similar_class(const SceneGraph& scene, std::string_view name) {
    if (name.size() > max_compared_length) return;
    const std::string nearest = scene.class_like(name);
    const auto is_object_class = [](std::string_view text) {
        return text == "movable" || text == "moveable";  // spellings of one class
    };
    if (nearest.empty() || (is_object_class(name) && is_object_class(nearest))) return;
    const std::string text =
        format_text("no frame has the class '{}'; did you mean '{}'?", name, nearest);
    const nb::object errors = registered(Registered::errors);
    if (!errors.is_valid()) return;  // the Python part is not imported, or the interpreter ends
    const nb::object category = errors["UnknownClassWarning"];
    if (PyErr_WarnEx(category.ptr(), text.c_str(), 1) < 0) throw nb::python_error();
}
using bindings::tuple_of;

template <class Scene> void bind_shared_names_and_tree(nb::class_<Scene>& cls) {
    cls.def_prop_ro("frame_names", [](const Scene& s) { return tuple_of(s.frame_names()); },
                    "Names of all frames in insertion order; reparenting does not change it. O(n).")
        .def_prop_ro(
            "joint_names", [](const Scene& s) { return tuple_of(s.joint_names()); },
            "Names of the joints that have an entry in the configuration, in its order. O(joints).")
        .def_prop_ro("body_names", [](const Scene& s) { return tuple_of(s.body_names()); },
                     "Names of all bodies, in the order of their first frames; then those without, "
                     "by name. O(n).")
        .def_prop_ro("bodies_without_frames",
                     [](const Scene& s) { return tuple_of(s.bodies_without_frames()); },
                     "Names of the bodies without a frame, in their order.")
        .def_prop_ro("twist_frames",
                     [](const Scene& s) { return tuple_of(by_name(s).twist_frames()); },
                     "Names of the frames that have a twist edge, in insertion order.")
        .def_prop_ro("group_names", [](const Scene& s) { return tuple_of(s.group_names()); },
                     text_for<Scene>("Names of all groups, sorted.{| For the writer.}"))
        .def("zero_configuration",
             [](const Scene& s) { return make_array(std::vector<double>(s.joint_count(), 0.0)); },
             "Return the configuration (n_joints,) of zeros, even if it is outside the limits.")
        .def("__len__", &Scene::size)
        .def("__contains__", [](const Scene& s, nb::handle name) {
        std::string_view text;
        return nb::try_cast(name, text) && by_name(s).contains(text);
    });
    cls.def("parent",
            [](const Scene& s, std::string_view frame) { return by_name(s).parent(frame); },
            "frame"_a,
            text_for<Scene>(
                "Return the name of a frame's parent, None for a root. {O(log n)|O(1)}." NO_FRAME))
        .def("children",
             [](const Scene& s, std::string_view frame) {
        return tuple_of(by_name(s).children(frame));
    }, "frame"_a, text_for<Scene>(R"(Return the names of a frame's children in insertion order.

{O(log n + children), and O(log n) for each frame that changed since the version of the previous
such query, since versions of a lineage share an index. The first query builds it in
O(n log n).|O(k log k) for k children.})" NO_FRAME))
        .def("ancestors",
             [](const Scene& s, std::string_view frame) {
        return tuple_of(by_name(s).ancestors(frame));
    }, "frame"_a,
             text_for<Scene>("Return the ancestors of a frame, nearest first. {O(depth log "
                             "n)|O(depth)}." NO_FRAME))
        .def("root", [](const Scene& s, std::string_view frame) { return by_name(s).root(frame); },
             "frame"_a,
             text_for<Scene>(
                 "Return the root of the tree of a frame. {O(depth log n)|O(depth)}." NO_FRAME))
        .def("body", [](const Scene& s, std::string_view frame) { return by_name(s).body(frame); },
             "frame"_a,
             text_for<Scene>("Return the name of the body of a frame. {O(log n)|O(1)}." NO_FRAME))
        .def("is_allowed",
             [](const Scene& s, std::string_view a, std::string_view b) {
        return s.is_allowed(a, b);
    }, "a"_a, "b"_a,
             text_for<Scene>(
                 R"(Return whether two frames may touch. {O(log n)|O(1)}.)" PAIR NO_FRAME));
}

template <class Scene> void bind_shared_edges(nb::class_<Scene>& cls) {
    cls.def("local_pose",
            [](const Scene& s, std::string_view frame) { return by_name(s).local_pose(frame); },
            "frame"_a,
            text_for<Scene>("Return parent_from_frame at joint value 0; the identity for a root. "
                            "{O(log n)|O(1)}." NO_FRAME))
        .def("stamped_poses",
             [](const Scene& s, std::string_view frame) { return by_name(s).stamped_poses(frame); },
             "frame"_a,
             text_for<Scene>("Return the stamped poses of a frame's edge, or None. "
                             "{O(log n + capacity)|O(poses)}." NO_FRAME))
        .def("twist_edge",
             [](const Scene& s, std::string_view frame) {
        return twist_tuple(s.twist(frame));
    }, "frame"_a, text_for<Scene>(R"(Return the twist edge of a frame, or None. {O(log n)|O(1)}.

Returns:
    Name of the reference body, and (6,) the twist at the frame's origin in its axes.)" NO_FRAME))
        .def("noise",
             [](const Scene& s, std::string_view frame) {
        const EdgeNoise* noise = by_name(s).noise(frame);
        if constexpr (std::is_same_v<Scene, SceneGraph>)
            return noise_or_none(Ref<const EdgeNoise>(noise));
        else return noise_or_none(noise ? Ref<const EdgeNoise>(new EdgeNoise(*noise)) : nullptr);
    }, "frame"_a,
             text_for<Scene>("Return the error of a frame's pose relative to its parent by source, "
                             "or None if exact. "
                             "{O(log n)|For the writer}." NO_FRAME))
        .def("edge_covariance",
             [](const Scene& s, std::string_view frame) {
        const EdgeNoise* noise = by_name(s).noise(frame);
        return covariance_array(noise ? noise->covariance : Covariance{});
    }, "frame"_a,
             text_for<Scene>("Return the covariance (6, 6) of a frame's pose relative to its "
                             "parent; zeros when exact. "
                             "{O(log n)|For the writer}." NO_FRAME))
        .def("specification",
             [](const Scene& s, std::string_view frame) { return s.specification(frame); },
             "frame"_a,
             text_for<Scene>("Return the full specification of a frame, an argument of "
                             "``SceneGraph.from_frames``.{| For the writer.}" NO_FRAME))
        .def("group", [](const Scene& s, std::string_view name) { return s.group(name); }, "name"_a,
             text_for<Scene>("Return the specification of a group.{| For the writer.}" NO_GROUP));
}

void bind_stamped_noise(nb::class_<SceneGraph>& cls) {
    cls.def("_stamped_noise",
            [](const SceneGraph& s, std::string_view frame, double stamp, std::string_view policy) {
        const FrameRecord& on = s.record(frame);
        const StampedPoses none,
            &history = on.details && on.details->stamps ? *on.details->stamps : none;
        const std::string_view parent =
            on.parent == no_frame ? std::string_view() : s.record(on.parent).name->text;
        return noise_or_none(
            history.noise_at({stamp, stamp_policy(policy)}, frame, parent, on.noise));
    }, "frame"_a, "stamp"_a, "policy"_a,
            "Return the error of a stamped edge at a time by source, or None if exact. O(log "
            "n)." NO_FRAME R"(
    StampError: if the stamp is outside the history.)");
}

void bind_frame_queries(nb::class_<SceneGraph>& cls) {
    bind_stamped_noise(cls);
    cls.def_prop_ro("joint_frames",
                    [](const SceneGraph& s) { return names_of(s, s.joint_frames()); },
                    "The frame that each entry of the configuration moves. O(joints log n).")
        .def_prop_ro(
            "root_names", [](const SceneGraph& s) { return names_of(s, s.roots()); },
            "Names of the frames without a parent, in insertion order. Costs as ``children``.")
        .def_prop_ro("allowed_pairs",
                     [](const SceneGraph& s) {
        nb::list pairs;
        for (const AllowedPair& pair : s.allowed_pairs())
            pairs.append(nb::make_tuple(pair.a, pair.b, pair.reason));
        return TupleOf<nb::typed<nb::tuple, nb::str, nb::str, nb::str>>(nb::tuple(pairs));
    }, "Pairs of frames that may touch, with the reason: (a, b, reason).")
        .def_prop_ro("noisy_frames", [](const SceneGraph& s) {
        return names_of(s, s.frames_with_noise());
    }, "Names of the frames whose pose relative to their parent is not exact, in insertion order.");
    cls.def("subtree",
            [](const SceneGraph& s, std::string_view frame) {
        return names_of(s, s.subtree(s.record(frame).id));
    }, "frame"_a,
            R"(Return a frame and all its descendants, parents before children, level by level.

Costs as ``children``, and O(log n) for each of them.)" NO_FRAME)
        .def("joint",
             [](const SceneGraph& s, std::string_view frame) {
        return s.specification(frame).joint;
    }, "frame"_a, "Return the joint between a frame and its parent. O(log n)." NO_FRAME)
        .def("joint_frame",
             [](const SceneGraph& s, std::string_view joint) {
        return s.record(s.joint_frame(joint)).name->text;
    }, "joint"_a, R"(Return the frame that a joint moves. O(log n).)" NO_JOINT)
        .def("inertia", &SceneGraph::inertia, "frame"_a,
             "Return the mass properties of a frame's body in the axes of that frame, or "
             "None." NO_FRAME
             R"(
    DisconnectedError: if the inertia was given in another tree.)");
    cls.def("shapes",
            [](const SceneGraph& s, const std::string& frame) {
        return tuple_of(details_on(s.record(frame)).shapes);
    }, "frame"_a, "Return the shapes of a frame. O(log n + shapes)." NO_FRAME)
        .def("classes",
             [](const SceneGraph& s, const std::string& frame) {
        return tuple_of(details_on(s.record(frame)).classes);
    }, "frame"_a, "Return the classes of a frame, e.g. ``('movable',)``. O(log n)." NO_FRAME)
        .def("frames_of_class",
             [](const SceneGraph& s, std::string_view name) {
        const std::vector<FrameId> frames = s.frames_of_class(name);
        if (frames.empty()) warn_of_similar_class(s, name);
        return names_of(s, frames);
    }, "name"_a, R"(Return the frames of a class in insertion order. Costs as ``children``.

A class may have no frames. If another class of the scene has a similar name, an
:class:`UnknownClassWarning` names it.)")
        .def("_frames_of_class",
             [](const SceneGraph& s, std::string_view name) {
        return names_of(s, s.frames_of_class(name));
    }, "name"_a, "Return the frames of a class, without a warning: for names from other programs.")
        .def("frames_of_body", [](const SceneGraph& s, std::string_view body) {
        return names_of(s, s.frames_of_body(body));
    }, "body"_a, R"(Return the frames of a body in insertion order. Costs as ``children`` of each.

Args:
    body: the body.

Raises:
    UnknownNameError: if the body is unknown.
)");
}

void bind_group_and_path_queries(nb::class_<SceneGraph>& cls) {
    cls.def("attributes",
            [](const SceneGraph& s, std::string_view frame) {
        return attribute_map(details_on(s.record(frame)).attributes);
    }, "frame"_a,
            R"(Return the attributes of a frame, an immutable map (``pyrsistent.PMap``).

Lists are ``PVector`` and dicts ``PMap``; ``pyrsistent.thaw`` converts them. Keys have no
order.)" OF_FRAME
            R"(

Cost: O(log n + length of the attributes as JSON), some microseconds; more on their
first use.)" NO_FRAME);
    cls.def(
        "attribute_stamps",
        [](const SceneGraph& s, std::string_view frame) {
        return stamps_of(details_on(s.record(frame)).attributes);
    }, "frame"_a,
        "Return the stamps of a frame's attributes [s] by key, for those with a stamp." NO_FRAME);
    cls.def("frames_of_group",
            [](const SceneGraph& s, std::string_view name) {
        return names_of(s, s.frames_of_group(name));
    }, "name"_a,
            "Return the frames of a group and of its nested groups, each once, in insertion "
            "order." NO_GROUP)
        .def("groups_of",
             [](const SceneGraph& s, std::string_view frame, bool nested) {
        return tuple_of(s.groups_of(frame, nested));
    }, "frame"_a, nb::kw_only(), "nested"_a = false,
             "Return the groups that contain a frame, sorted. O(groups and their members)." OF_FRAME
             R"(
    nested: whether to include groups that contain it through nested groups; by default only direct
        ones.)" NO_FRAME);
    cls.def("frame_id",
            [](const SceneGraph& s, std::string_view frame) { return s.record(frame).id; },
            "frame"_a,
            R"(Return the number of a frame, which survives rename and reparenting. O(log n).

Ids grow with insertion, are never reused, and have the same meaning in all versions of a lineage;
they are not part of equality.)" NO_FRAME)
        .def("frame_of_id",
             [](const SceneGraph& s, FrameId id) {
        const FrameRecord* record = s.find(id);
        return record ? std::optional<std::string>(record->name->text) : std::nullopt;
    }, "frame_id"_a,
             "Return the name of the frame with this id, None if there is none. "
             "O(log n).");
    cls.def(
        "path",
        [](const SceneGraph& s, std::string_view start, std::string_view end) {
        return names_of(s, s.path(s.record(start).id, s.record(end).id));
    }, "start"_a, "end"_a,
        "Return the frames from one to another, over their nearest common ancestor. O(depth log n)."
        R"(

Args:
    start: the first frame of the path.
    end: the last frame of the path.)" NO_PATH);
}

}  // namespace

void bind_structure_queries(nb::class_<SceneGraph>& cls) {
    bind_shared_names_and_tree(cls);
    bind_shared_edges(cls);
    bind_frame_queries(cls);
    bind_group_and_path_queries(cls);
}

void bind_structure_queries(nb::class_<SceneArrays>& cls) {
    bind_shared_names_and_tree(cls);
    bind_shared_edges(cls);
}

}  // namespace tmkit::bindings
