// Queries of the content of a scene: names, trees, bodies, shapes, attributes, groups, paths.
#include "bindings.hpp"
#include "tmkit/scene_graph.hpp"

namespace tmkit::bindings {
namespace {

std::vector<std::string> names_of(const SceneGraph& scene, const std::vector<FrameId>& frames) {
    std::vector<std::string> names;
    names.reserve(frames.size());
    for (const FrameId id : frames) names.push_back(scene.record(id).name->text);
    return names;
}

void bind_name_queries(nb::class_<SceneGraph>& cls) {
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
        .def("__contains__", [](const SceneGraph& s, nb::handle name) {
        std::string_view text;
        return nb::try_cast(name, text) && s.find(text);
    });
}

void bind_tree_queries(nb::class_<SceneGraph>& cls) {
    cls.def("parent",
            [](const SceneGraph& s, const std::string& frame) {
        const FrameId parent = s.record(frame).parent;
        return parent == no_frame ? std::optional<std::string>() : s.record(parent).name->text;
    }, nb::arg("frame"), R"(Return the name of a frame's parent, None for a root. O(log n).

Raises:
    UnknownNameError: no such frame.)")
        .def("children",
             [](const SceneGraph& s, const std::string& frame) {
        return tuple_of(names_of(s, s.children(s.record(frame).id)));
    }, nb::arg("frame"), R"(Return the names of a frame's children in insertion order.

O(log n + children), and O(log n) for each frame that changed since the version of the previous such query: versions
made from one another share an index. The first query of all of them builds it in O(n log n).

Raises:
    UnknownNameError: no such frame.)")
        .def("subtree",
             [](const SceneGraph& s, const std::string& frame) {
        return tuple_of(names_of(s, s.subtree(s.record(frame).id)));
    }, nb::arg("frame"), R"(Return a frame and all its descendants, parents before children, level by level.

Costs as ``children``, and O(log n) for each of them.

Raises:
    UnknownNameError: no such frame.)")
        .def("ancestors", [](const SceneGraph& s, const std::string& frame) {
        std::vector<std::string> names;
        for (FrameId at = s.record(frame).parent; at != no_frame; at = s.record(at).parent)
            names.push_back(s.record(at).name->text);
        return tuple_of(names);
    }, nb::arg("frame"), R"(Return the ancestors of a frame, nearest first. O(depth log n).

Raises:
    UnknownNameError: no such frame.)");
}

void bind_frame_queries(nb::class_<SceneGraph>& cls) {
    cls.def("root",
            [](const SceneGraph& s, const std::string& frame) {
        return s.record(s.root_of(s.record(frame).id)).name->text;
    }, nb::arg("frame"), R"(Return the root of the tree of a frame. O(depth log n).

Raises:
    UnknownNameError: no such frame.)")
        .def("body",
             [](const SceneGraph& s, const std::string& frame) { return s.body(s.record(frame).body).name->text; },
             nb::arg("frame"), R"(Return the name of the body that a frame is on. O(log n).

Raises:
    UnknownNameError: no such frame.)")
        .def("joint", [](const SceneGraph& s, const std::string& frame) { return joint_of(s.record(frame)); },
             nb::arg("frame"), R"(Return how a frame moves relative to its parent. O(log n).

Raises:
    UnknownNameError: no such frame.)")
        .def("joint_frame",
             [](const SceneGraph& s, const std::string& joint) { return s.record(s.joint_frame(joint)).name->text; },
             nb::arg("joint"), R"(Return the frame that a joint moves. O(log n).

Raises:
    UnknownNameError: no such joint.)")
        .def("local_pose", [](const SceneGraph& s, const std::string& frame) { return s.record(frame).pose; },
             nb::arg("frame"), R"(Return parent_from_frame at joint value 0; the identity for a root. O(log n).

Raises:
    UnknownNameError: no such frame.)");
}

void bind_shape_queries(nb::class_<SceneGraph>& cls) {
    cls.def("shapes",
            [](const SceneGraph& s, const std::string& frame) {
        const FrameRecord& record = s.record(frame);
        return nb::typed<nb::tuple, AttachedShape, nb::ellipsis>(
            nb::tuple(nb::cast(record.details ? record.details->shapes : std::vector<AttachedShape>{})));
    }, nb::arg("frame"), R"(Return the shapes on a frame. O(log n + shapes).

Raises:
    UnknownNameError: no such frame.)")
        .def("classes",
             [](const SceneGraph& s, const std::string& frame) {
        const FrameRecord& record = s.record(frame);
        return tuple_of(record.details ? record.details->classes : std::vector<std::string>{});
    }, nb::arg("frame"), R"(Return the classes of a frame, e.g. ``('movable',)``. O(log n).

Raises:
    UnknownNameError: no such frame.)")
        .def("frames_of_class", [](const SceneGraph& s, const std::string& name) {
        return tuple_of(names_of(s, s.frames_of_class(name)));
    }, nb::arg("name"), "Return the frames of a class in insertion order. Costs as ``children``.");
}

void bind_twist_queries(nb::class_<SceneGraph>& cls) {
    cls.def("twist_edge", [](const SceneGraph& s, std::string_view frame) { return twist_tuple(s.twist(frame)); },
            nb::arg("frame"), R"(Return the twist edge of a frame, or None. O(log n).

Returns:
    Name of the reference body, and (6,) the twist at the frame's origin in its axes.

Raises:
    UnknownNameError: no such frame.)")
        .def_prop_ro("twist_frames", [](const SceneGraph& s) {
        std::vector<std::string> names;
        for (FrameId id : s.frames_with_twists()) names.push_back(s.record(id).name->text);
        return nb::typed<nb::tuple, nb::str, nb::ellipsis>(nb::tuple(nb::cast(names)));
    }, "Names of the frames that have a twist edge, in insertion order.");
}

void bind_body_queries(nb::class_<SceneGraph>& cls) {
    cls.def_prop_ro("bodies_without_frames",
                    [](const SceneGraph& s) {
        return nb::typed<nb::tuple, nb::str, nb::ellipsis>(nb::tuple(nb::cast(s.bodies_without_frames())));
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
    UnknownNameError: no such frame.)");
}

void bind_attribute_queries(nb::class_<SceneGraph>& cls) {
    cls.def("attributes", [](const SceneGraph& s, std::string_view frame) {
        return attribute_map(attributes_on(s.record(frame)));
    }, nb::arg("frame"), R"(Return the attributes of a frame, an immutable map (``pyrsistent.PMap``).

Lists in it are ``PVector``, dicts ``PMap``; ``pyrsistent.thaw`` returns plain ones. The order of keys is undefined.

Args:
    frame: the frame.

Cost: O(log n + length of the attributes as JSON), some microseconds; more on first use of these attributes.

Raises:
    UnknownNameError: no such frame.)");
}

void bind_group_queries(nb::class_<SceneGraph>& cls) {
    cls.def_prop_ro("group_names", [](const SceneGraph& s) { return tuple_of(s.group_names()); },
                    "Names of all groups, sorted.")
        .def("group",
             [](const SceneGraph& s, std::string_view name) {
        GroupSpecification group = s.group(name);
        return Group{std::move(group.frames), std::move(group.groups)};
    }, nb::arg("name"), R"(Return the direct content of a group.

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
             nb::arg("frame"), R"(Return the groups that contain a frame directly, sorted. O(groups and their members).

Raises:
    UnknownNameError: no such frame.)");
}

void bind_id_queries(nb::class_<SceneGraph>& cls) {
    cls.def("frame_id", [](const SceneGraph& s, std::string_view frame) { return s.record(frame).id; },
            nb::arg("frame"), R"(Return the number of a frame, which survives rename and reparenting. O(log n).

Ids grow with insertion, are not used again, and mean the same in all versions made from one another; they are no
part of equality.

Raises:
    UnknownNameError: no such frame.)")
        .def("frame_of_id",
             [](const SceneGraph& s, FrameId id) {
        const FrameRecord* record = s.find(id);
        return record ? std::optional<std::string>(record->name->text) : std::nullopt;
    }, nb::arg("frame_id"),
             "Return the name of the frame with this id, None when it is not (or no longer) there. O(log n).");
}

void bind_path_queries(nb::class_<SceneGraph>& cls) {
    cls.def("path",
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
    DisconnectedError: the frames are in different trees.)");
}

void bind_path_functions(nb::module_& m) {
    m.def("common_ancestor",
          [](const SceneGraph& s, std::string_view a, std::string_view b) {
        return s.record(s.common_ancestor(s.record(a).id, s.record(b).id)).name->text;
    }, nb::arg("scene"), nb::arg("a"), nb::arg("b"),
          R"(Return the nearest frame that is an ancestor of both frames, or one of them. O(depth log n).

Args:
    scene: the scene.
    a: a frame.
    b: another frame of the same tree.

Raises:
    UnknownNameError: no such frame.
    DisconnectedError: the frames are in different trees.)");
    m.def("joints_between",
          [](const SceneGraph& s, std::string_view start, std::string_view end) {
        std::size_t top = 0;
        const std::vector<FrameId> path = s.path(s.record(start).id, s.record(end).id, &top);
        std::vector<std::string> names;
        for (std::size_t i = 0; i < path.size(); ++i)
            if (const FrameRecord& record = s.record(path[i]); i != top && record.joint)
                names.push_back(record.joint->name);
        return tuple_of(names);
    }, nb::arg("scene"), nb::arg("start"), nb::arg("end"),
          R"(Return the joints on the path between two frames, mimic joints included. O(depth log n).

Args:
    scene: the scene.
    start: the first frame of the path.
    end: the last frame of the path.

Returns:
    Names of the joints, in the order of the path.

Raises:
    UnknownNameError: no such frame.
    DisconnectedError: the frames are in different trees.)");
}

void bind_tag_functions(nb::module_& m) {
    m.def("frames_with_attribute",
          [](const SceneGraph& s, const std::string& key, nb::object value) {
        const bool any = value.is(nb::ellipsis());
        const std::string text = any ? std::string() : attribute_text(key, value);
        std::vector<std::string> names;
        s.for_each_frame([&](const FrameRecord& frame) {
            for (const auto& [name, said] : attributes_on(frame))
                if (name == key && (any || said == text)) names.push_back(frame.name->text);
        });
        return tuple_of(names);
    }, nb::arg("scene"), nb::arg("key"), nb::arg("value").none() = nb::ellipsis(),
          R"(Return the frames that have an attribute, in insertion order. O(n).

Args:
    scene: the scene.
    key: the name of the attribute.
    value: the JSON value it must have; any value if omitted.

Raises:
    SceneError: a value that is not JSON.)");
}

}  // namespace

void bind_structure_queries(nb::class_<SceneGraph>& cls) {
    bind_name_queries(cls);
    bind_tree_queries(cls);
    bind_frame_queries(cls);
    bind_shape_queries(cls);
    bind_twist_queries(cls);
    bind_body_queries(cls);
    bind_attribute_queries(cls);
    bind_group_queries(cls);
    bind_id_queries(cls);
    bind_path_queries(cls);
}

void bind_structure_functions(nb::module_& m) {
    bind_path_functions(m);
    bind_tag_functions(m);
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
