#include "tmkit/scene_graph.hpp"

#include <nanobind/stl/array.h>

#include <cmath>
#include <unordered_map>

#include "bindings.hpp"
#include "tmkit/kinematics.hpp"

namespace tmkit::bindings {
namespace {

// Many edits, one new version: see the docstring below.
struct SceneEdit {
    SceneGraph scene;
    bool discarded = false;
};

using Names = nb::typed<nb::tuple, nb::str, nb::ellipsis>;

Names tuple_of(const std::vector<std::string>& names) { return Names(nb::tuple(nb::cast(names))); }

std::vector<std::string> names_at(const SceneGraph& scene, const std::vector<std::int32_t>& indices) {
    std::vector<std::string> names;
    for (std::int32_t index : indices) names.push_back(scene.record(scene.layout().ids[index]).name->text);
    return names;
}

std::int32_t index_of(const SceneGraph& scene, const std::string& frame) {
    return scene.layout().index_of(scene.record(frame).id);
}

Joint joint_of(const FrameRecord& record) {
    if (record.joint) return *record.joint;
    Joint joint;
    joint.type = record.joint_type;
    return joint;
}

// A SceneGraph's edit gives a new version, or the very same object when nothing changed; a SceneEdit's works in place.
template <class Edit>
nb::typed<nb::object, SceneGraph> apply_edit(nb::typed<nb::object, SceneGraph> self, Edit&& edit) {
    const SceneGraph& scene = nb::cast<const SceneGraph&>(self);
    SceneGraph next = edit(scene);
    if (next.same_version(scene)) return self;
    return nb::typed<nb::object, SceneGraph>(nb::cast(std::move(next)));
}

template <class Edit>
void apply_edit(SceneEdit& self, Edit&& edit) {
    if (self.discarded) throw Error(ErrorKind::scene, "this edit was discarded; begin another with scene.edit()");
    self.scene = edit(static_cast<const SceneGraph&>(self.scene));
}

template <class Self>
void bind_edits(auto& cls) {
    cls.def("add_root", [](Self self, const std::string& name) {
            return apply_edit(self, [&](const SceneGraph& s) { return s.add_root(name); });
        }, nb::arg("name"), R"(Add a frame without a parent, on a body of its own name: the root of another tree. O(log n).

Raises:
    DuplicateNameError: the name is taken.)")
        .def("add_frame", [](Self self, const std::string& name, const std::string& parent, const Pose& pose, const Joint& joint,
                             const std::optional<std::string>& body, const std::vector<std::string>& classes,
                             const std::vector<AttachedShape>& shapes) {
            if (body && body->empty()) throw Error(ErrorKind::scene, "a body needs a name that is not empty");
            const FrameSpecification specification{name, parent, pose, joint, body.value_or(""), classes, shapes};
            return apply_edit(self, [&](const SceneGraph& s) { return s.add_frame(specification); });
        }, nb::arg("name"), nb::arg("parent"), nb::kw_only(), nb::arg("pose") = Pose{}, nb::arg("joint") = Joint{},
           nb::arg("body") = nb::none(), nb::arg("classes") = nb::tuple(), nb::arg("shapes") = nb::tuple(),
           R"(Add a frame under a parent. O(log n).

Args:
    name: unique among frames.
    parent: name of the parent frame.
    pose: parent_from_frame, at joint value 0.
    joint: how the frame moves relative to the parent.
    body: the existing or new body that the frame sits on; a body of the frame's own name when left out. A frame on its
        parent's body is joined to it by a fixed edge.
    classes: what the frame is, e.g. ``movable`` or ``surface``.
    shapes: the shapes on the frame.

Raises:
    UnknownNameError: no such parent, or a mimic joint whose leader is not there.
    DuplicateNameError: the frame, joint or body name is taken.
    SceneError: the body already has a frame in this tree that is not joined to the parent.)")
        .def("remove_frame", [](Self self, const std::string& frame, bool subtree) {
            return apply_edit(self, [&](const SceneGraph& s) { return s.remove_frame(frame, subtree); });
        }, nb::arg("frame"), nb::kw_only(), nb::arg("subtree") = false,
           R"(Remove a frame, with all its descendants when ``subtree`` is set. O(n).

Raises:
    UnknownNameError: no such frame.
    SceneError: it has children and ``subtree`` is not set, or a joint that stays mimics one that would go.)")
        .def("rename_frame", [](Self self, const std::string& frame, const std::string& name) {
            return apply_edit(self, [&](const SceneGraph& s) { return s.rename_frame(frame, name); });
        }, nb::arg("frame"), nb::arg("name"), "Give a frame another name; its joint and body keep theirs. O(log n).\n\nRaises:\n    UnknownNameError: no such frame.\n    DuplicateNameError: the new name is taken.")
        .def("reparent", [](Self self, const std::string& frame, const std::string& parent, const std::optional<Pose>& pose, const std::optional<ArrayArgument>& q) {
            return apply_edit(self, [&](const SceneGraph& s) {
                if (pose && q) throw Error(ErrorKind::scene, "give either pose or q to reparent, not both");
                if (pose) return s.reparent(frame, parent, *pose);
                return s.reparent_keeping_pose(frame, parent, ConfigurationArgument(q, s).get());
            });
        }, nb::arg("frame"), nb::arg("parent"), nb::kw_only(), nb::arg("pose") = nb::none(), nb::arg("q") = nb::none(),
           R"(Hang a frame, and with it its subtree, under another parent. O(depth log n).

Args:
    frame: the frame that moves.
    parent: its new parent.
    pose: parent_from_frame in the new place, at joint value 0.
    q: without ``pose``, the frame keeps its place in the world at this configuration (n_joints,); it may be left out
        when no joint is on the way between frame and parent.

Raises:
    UnknownNameError: no such frame.
    CycleError: the parent is the frame itself or its descendant.
    ConfigurationError: a joint is on the way and q is missing, or q has the wrong length.
    SceneError: the frame is a root, or would leave its body, or give a body two paths.)")
        .def("set_pose", [](Self self, const std::string& frame, const Pose& pose) {
            return apply_edit(self, [&](const SceneGraph& s) { return s.set_pose(frame, pose); });
        }, nb::arg("frame"), nb::arg("pose"), "Set parent_from_frame at joint value 0. O(depth log n).\n\nRaises:\n    UnknownNameError: no such frame.\n    SceneError: a root, or an edge inside one body, whose pose is constant.")
        .def("set_joint", [](Self self, const std::string& frame, const Joint& joint) {
            return apply_edit(self, [&](const SceneGraph& s) { return s.set_joint(frame, joint); });
        }, nb::arg("frame"), nb::arg("joint"), "Set how a frame moves relative to its parent. O(log n).\n\nRaises:\n    UnknownNameError: no such frame, or no such leader.\n    DuplicateNameError: the joint name is taken.\n    SceneError: a root, an edge inside one body, or others mimic the joint.")
        .def("set_classes", [](Self self, const std::string& frame, const std::vector<std::string>& classes) {
            return apply_edit(self, [&](const SceneGraph& s) { return s.set_classes(frame, classes); });
        }, nb::arg("frame"), nb::arg("classes"), "Set what a frame is, e.g. ``('movable',)``. O(log n).")
        .def("set_shapes", [](Self self, const std::string& frame, const std::vector<AttachedShape>& shapes) {
            return apply_edit(self, [&](const SceneGraph& s) { return s.set_shapes(frame, shapes); });
        }, nb::arg("frame"), nb::arg("shapes"), "Set all shapes of a frame. O(log n).")
        .def("add_shape", [](Self self, const std::string& frame, const AttachedShape& shape) {
            return apply_edit(self, [&](const SceneGraph& s) {
                const FrameRecord& record = s.record(frame);
                std::vector<AttachedShape> shapes = record.details ? record.details->shapes : std::vector<AttachedShape>{};
                shapes.push_back(shape);
                return s.set_shapes(frame, std::move(shapes));
            });
        }, nb::arg("frame"), nb::arg("shape"), "Attach one more shape to a frame. O(log n).")
        .def("set_inertia", [](Self self, const std::string& frame, const std::optional<Inertia>& inertia) {
            return apply_edit(self, [&](const SceneGraph& s) { return s.set_inertia(frame, inertia); });
        }, nb::arg("frame"), nb::arg("inertia").none(), "Set the mass properties of the body that a frame sits on, in the axes of that frame, or take them away with None. O(log n).\n\nRaises:\n    SceneError: a mass that is not positive, or a matrix that is not symmetric positive semi-definite.")
        .def("allow_collision", [](Self self, const std::string& a, const std::string& b, const std::string& reason) {
            return apply_edit(self, [&](const SceneGraph& s) { return s.allow_collision(a, b, reason); });
        }, nb::arg("a"), nb::arg("b"), nb::kw_only(), nb::arg("reason") = "user", "Let the shapes of two frames touch: the pair is not checked. O(log n).")
        .def("forbid_collision", [](Self self, const std::string& a, const std::string& b) {
            return apply_edit(self, [&](const SceneGraph& s) { return s.forbid_collision(a, b); });
        }, nb::arg("a"), nb::arg("b"), "Check a pair of frames again. O(log n).");
}

// What pickle keeps: (format, shapes, frames, allowed pairs). A shape is written once however many frames hold it.
nb::tuple scene_state(const SceneGraph& scene) {
    nb::list shapes, frames, allowed;
    std::unordered_map<const Shape*, std::size_t> places;
    const auto attached_state = [&](const FrameRecord& record) {
        nb::list attached;
        if (!record.details) return attached;
        for (const AttachedShape& a : record.details->shapes) {
            const auto [place, is_new] = places.emplace(a.shape.get(), places.size());
            if (is_new) shapes.append(nb::cast(ShapeHandle{a.shape}));
            attached.append(nb::make_tuple(place->second, a.pose, a.color, a.has_color, a.visual, a.collision, a.friction));
        }
        return attached;
    };
    for (const std::string& name : scene.frame_names()) {
        const FrameRecord& record = scene.record(name);
        const BodyRecord& body = scene.body(record.body);
        nb::object parent = record.parent == no_frame ? nb::none() : nb::cast(scene.record(record.parent).name->text);
        nb::object inertia = body.inertia_frame == record.id ? nb::cast(body.inertia) : nb::none();
        frames.append(nb::make_tuple(name, parent, body.name->text, record.pose, joint_of(record),
                                     record.details ? record.details->classes : std::vector<std::string>{},
                                     attached_state(record), inertia));
    }
    for (const AllowedPair& pair : scene.allowed_pairs()) allowed.append(nb::make_tuple(pair.a, pair.b, pair.reason));
    return nb::make_tuple(2, shapes, frames, allowed);
}

SceneGraph scene_from_state(const nb::tuple& state) {
    if (nb::cast<int>(state[0]) != 2) throw Error(ErrorKind::scene, "this pickled scene is of another version of tmkit");
    const auto shapes = nb::cast<std::vector<ShapeHandle>>(state[1]);
    std::vector<FrameSpecification> specifications;
    for (nb::handle entry : nb::cast<nb::list>(state[2])) {
        const nb::tuple f = nb::cast<nb::tuple>(entry);
        std::vector<AttachedShape> attached;
        for (nb::handle item : nb::cast<nb::list>(f[6])) {
            const nb::tuple a = nb::cast<nb::tuple>(item);
            attached.push_back({shapes.at(nb::cast<std::size_t>(a[0])).shape, nb::cast<Pose>(a[1]), nb::cast<std::array<double, 4>>(a[2]),
                                nb::cast<bool>(a[3]), nb::cast<bool>(a[4]), nb::cast<bool>(a[5]), nb::cast<std::optional<double>>(a[6])});
        }
        specifications.push_back({nb::cast<std::string>(f[0]), f[1].is_none() ? "" : nb::cast<std::string>(f[1]), nb::cast<Pose>(f[3]),
                                  nb::cast<Joint>(f[4]), nb::cast<std::string>(f[2]), nb::cast<std::vector<std::string>>(f[5]), std::move(attached),
                                  nb::cast<std::optional<Inertia>>(f[7])});
    }
    SceneGraph scene = SceneGraph::from_frames(specifications);
    for (nb::handle entry : nb::cast<nb::list>(state[3])) {
        const nb::tuple pair = nb::cast<nb::tuple>(entry);
        scene = scene.allow_collision(nb::cast<std::string>(pair[0]), nb::cast<std::string>(pair[1]), nb::cast<std::string>(pair[2]));
    }
    return scene;
}

Kinematics kinematics_at(const SceneGraph& scene, const std::optional<ArrayArgument>& q) {
    const ConfigurationArgument configuration(q, scene);
    if (!configuration.given && scene.joint_count() > 0)
        throw Error(ErrorKind::configuration, "this scene has " + std::to_string(scene.joint_count()) + " joints, so at() needs a configuration q");
    return Kinematics(scene, configuration.values);
}

ReadOnlyArray joint_property(const SceneGraph& scene, double Joint::*property) {
    std::vector<double> values;
    for (const std::string& name : scene.joint_names()) values.push_back(*scene.record(scene.joint_frame(name)).joint.*property);
    const std::size_t count = values.size();
    return make_array(std::move(values), {count});
}

ReadOnlyArray joint_limits(const SceneGraph& scene) {
    std::vector<double> values;
    for (const std::string& name : scene.joint_names()) {
        const Joint& joint = *scene.record(scene.joint_frame(name)).joint;
        values.push_back(joint.lower);
        values.push_back(joint.upper);
    }
    const std::size_t count = values.size() / 2;
    return make_array(std::move(values), {count, 2});
}

ReadOnlyArray configuration(const SceneGraph& scene, const nb::typed<nb::mapping, nb::str, double>& values, const std::optional<ArrayArgument>& base) {
    std::vector<double> q = base ? read_vector(*base, "base", scene.joint_count()) : std::vector<double>(scene.joint_count(), 0.0);
    const std::vector<std::string> names = scene.joint_names();
    for (nb::handle item : values.items()) {
        const nb::handle key = item[0], value = item[1];
        std::string name;
        if (!nb::try_cast(key, name)) throw Error(ErrorKind::configuration, "joint names are text, not " + nb::cast<std::string>(nb::repr(key)));
        const auto at = std::find(names.begin(), names.end(), name);
        if (at == names.end()) {
            const FrameRecord& record = scene.record(scene.joint_frame(name));  // an unknown name is refused here
            throw Error(ErrorKind::configuration, "joint '" + name + "' mimics '" + record.joint->mimic + "', so it has no value of its own; set '" + record.joint->mimic + "'", {{"joint", name}});
        }
        double number = 0.0;
        if (!nb::try_cast(value, number) || !std::isfinite(number))
            throw Error(ErrorKind::configuration, "joint '" + name + "' needs a finite number, not " + nb::cast<std::string>(nb::repr(value)), {{"joint", name}});
        q[static_cast<std::size_t>(at - names.begin())] = number;
    }
    const std::size_t count = q.size();
    return make_array(std::move(q), {count});
}

void bind_queries(nb::class_<SceneGraph>& cls) {
    cls.def_prop_ro("frame_names", [](const SceneGraph& s) { return tuple_of(s.frame_names()); }, "Names of all frames in insertion order; reparenting does not change it. O(n).")
        .def_prop_ro("joint_names", [](const SceneGraph& s) { return tuple_of(s.joint_names()); }, "Names of the joints that have an entry in the configuration, in its order. O(n).")
        .def_prop_ro("joint_frames", [](const SceneGraph& s) { return tuple_of(names_at(s, s.layout().joint_frame)); }, "The frame that each entry of the configuration moves. O(n).")
        .def_prop_ro("body_names", [](const SceneGraph& s) { return tuple_of(s.body_names()); }, "Names of all bodies, in the order of their first frames. O(n).")
        .def_prop_ro("root_names", [](const SceneGraph& s) {
            std::vector<std::int32_t> roots;
            for (std::size_t i = 0; i < s.size(); ++i)
                if (s.layout().parent[i] < 0) roots.push_back(static_cast<std::int32_t>(i));
            return tuple_of(names_at(s, roots));
        }, "Names of the frames without a parent. O(n).")
        .def_prop_ro("allowed_pairs", [](const SceneGraph& s) {
            nb::list pairs;
            for (const AllowedPair& pair : s.allowed_pairs()) pairs.append(nb::make_tuple(pair.a, pair.b, pair.reason));
            return nb::typed<nb::tuple, nb::typed<nb::tuple, nb::str, nb::str, nb::str>, nb::ellipsis>(nb::tuple(pairs));
        }, "Pairs of frames that may touch, with the reason: (a, b, reason).")
        .def("__len__", &SceneGraph::size)
        .def("__contains__", [](const SceneGraph& s, nb::handle name) {
            std::string text;
            return nb::try_cast(name, text) && s.find(text);
        })
        .def("parent", [](const SceneGraph& s, const std::string& frame) {
            const FrameId parent = s.record(frame).parent;
            return parent == no_frame ? std::optional<std::string>() : s.record(parent).name->text;
        }, nb::arg("frame"), "Return the name of a frame's parent, None for a root. O(log n).")
        .def("children", [](const SceneGraph& s, const std::string& frame) {
            const Layout& flat = s.layout();
            const std::int32_t at = index_of(s, frame);
            return tuple_of(names_at(s, {flat.child.begin() + flat.first_child[at], flat.child.begin() + flat.first_child[at + 1]}));
        }, nb::arg("frame"), "Return the names of a frame's children in insertion order.")
        .def("subtree", [](const SceneGraph& s, const std::string& frame) { return tuple_of(names_at(s, s.layout().subtree(index_of(s, frame)))); },
             nb::arg("frame"), "Return the frame and all its descendants, parents before children.")
        .def("ancestors", [](const SceneGraph& s, const std::string& frame) {
            std::vector<std::string> names;
            for (FrameId at = s.record(frame).parent; at != no_frame; at = s.record(at).parent) names.push_back(s.record(at).name->text);
            return tuple_of(names);
        }, nb::arg("frame"), "Return the ancestors of a frame, nearest first. O(depth log n).")
        .def("root", [](const SceneGraph& s, const std::string& frame) { return s.record(s.root_of(s.record(frame).id)).name->text; }, nb::arg("frame"), "Return the root of the tree that a frame stands in. O(depth log n).")
        .def("body", [](const SceneGraph& s, const std::string& frame) { return s.body(s.record(frame).body).name->text; }, nb::arg("frame"), "Return the name of the body that a frame sits on. O(log n).")
        .def("joint", [](const SceneGraph& s, const std::string& frame) { return joint_of(s.record(frame)); }, nb::arg("frame"), "Return how a frame moves relative to its parent. O(log n).")
        .def("joint_frame", [](const SceneGraph& s, const std::string& joint) { return s.record(s.joint_frame(joint)).name->text; }, nb::arg("joint"), "Return the frame that a joint moves. O(log n).\n\nRaises:\n    UnknownNameError: no such joint.")
        .def("local_pose", [](const SceneGraph& s, const std::string& frame) { return s.record(frame).pose; }, nb::arg("frame"), "Return parent_from_frame at joint value 0; the identity for a root. O(log n).")
        .def("shapes", [](const SceneGraph& s, const std::string& frame) {
            const FrameRecord& record = s.record(frame);
            return nb::typed<nb::tuple, AttachedShape, nb::ellipsis>(nb::tuple(nb::cast(record.details ? record.details->shapes : std::vector<AttachedShape>{})));
        }, nb::arg("frame"), "Return the shapes on a frame.")
        .def("classes", [](const SceneGraph& s, const std::string& frame) {
            const FrameRecord& record = s.record(frame);
            return tuple_of(record.details ? record.details->classes : std::vector<std::string>{});
        }, nb::arg("frame"), "Return what a frame is, e.g. ``('movable',)``.")
        .def("frames_of_class", [](const SceneGraph& s, const std::string& name) {
            std::vector<std::string> names;
            for (FrameId id : s.layout().ids) {
                const FrameRecord& record = s.record(id);
                if (record.details && std::find(record.details->classes.begin(), record.details->classes.end(), name) != record.details->classes.end()) names.push_back(record.name->text);
            }
            return tuple_of(names);
        }, nb::arg("name"), "Return the frames of a class in insertion order. O(n log n).")
        .def("inertia", &SceneGraph::inertia, nb::arg("frame"), "Return the mass properties of a frame's body in the axes of that frame, or None.\n\nRaises:\n    UnknownNameError: no such frame.\n    DisconnectedError: the inertia was given in another tree.")
        .def("is_allowed", nb::overload_cast<std::string_view, std::string_view>(&SceneGraph::is_allowed, nb::const_), nb::arg("a"), nb::arg("b"), "Tell whether two frames may touch. O(log n).")
        .def("pose", [](const SceneGraph& s, const std::string& target, const std::string& reference, const std::optional<ArrayArgument>& q) {
            return s.pose(target, reference, ConfigurationArgument(q, s).get());
        }, nb::arg("target"), nb::arg("reference"), nb::kw_only(), nb::arg("q") = nb::none(), R"(Return the pose of one frame relative to another: reference_from_target. O(depth log n).

Args:
    target: the frame whose pose is asked.
    reference: the frame it is relative to, and whose axes the coordinates are in.
    q: configuration (n_joints,); may be left out when no joint is on the path.

Raises:
    UnknownNameError: no such frame.
    DisconnectedError: the frames stand in different trees.
    ConfigurationError: a joint is on the path and q is missing, or q has the wrong length or numbers that are not finite.)")
        .def("at", &kinematics_at, nb::arg("q") = nb::none(), "Run forward kinematics at a configuration (n_joints,). O(n).\n\nRaises:\n    ConfigurationError: q is missing though there are joints, or has the wrong length.")
        .def("zero_configuration", [](const SceneGraph& s) { return make_array(std::vector<double>(s.joint_count(), 0.0), {s.joint_count()}); }, "Return the configuration (n_joints,) of zeros, whether or not it is within the limits.")
        .def("configuration", &configuration, nb::arg("values"), nb::kw_only(), nb::arg("base") = nb::none(), R"(Return a configuration (n_joints,) from joint values by name.

Args:
    values: radians or metres by joint name.
    base: the configuration that gives all other entries; zeros when left out.

Raises:
    UnknownNameError: no such joint.
    ConfigurationError: a joint that mimics another, or a value that is not finite.)")
        .def_prop_ro("joint_limits", &joint_limits, "(n_joints, 2) smallest and largest values, radians or metres; -inf and inf when unlimited.")
        .def_prop_ro("velocity_limits", [](const SceneGraph& s) { return joint_property(s, &Joint::velocity); }, "(n_joints,) largest speeds, rad/s or m/s.")
        .def_prop_ro("effort_limits", [](const SceneGraph& s) { return joint_property(s, &Joint::effort); }, "(n_joints,) largest torques or forces, N m or N.")
        .def("specification", [](const SceneGraph& s, const std::string& frame) { return s.specification(frame); }, nb::arg("frame"), "Return all that is said of one frame; ``SceneGraph.from_frames`` makes the scene of these again.\n\nRaises:\n    UnknownNameError: no such frame.")
        .def_static("from_frames", [](const std::vector<FrameSpecification>& frames, const std::vector<std::tuple<std::string, std::string, std::string>>& allowed) {
            SceneGraph scene = SceneGraph::from_frames(frames);
            for (const auto& [a, b, reason] : allowed) scene = scene.allow_collision(a, b, reason);
            return scene;
        }, nb::arg("frames"), nb::kw_only(), nb::arg("allowed") = nb::tuple(), R"(Make a scene of all its frames at once. O(n log n).

Args:
    frames: in insertion order; a parent, or the leader of a mimic joint, may come after.
    allowed: pairs that may touch, with the reason: (a, b, reason).

Raises:
    UnknownNameError, DuplicateNameError, CycleError, SceneError: as the single edits.)")
        .def("edit", [](const SceneGraph& s) { return SceneEdit{s}; }, "Begin many edits that make one new version: ``with scene.edit() as edit: ...; edit.finish()``.")
        .def("_defects", &SceneGraph::defects, "Describe a broken invariant of the inner maps, for tests; empty when all is well. O(n log n).");
    // What people see is written in Python, and imported when it is first asked for.
    cls.def("tree", [](nb::handle self, const std::optional<std::string>& frame, const std::optional<int>& depth, const std::optional<ArrayArgument>& q) {
            const nb::object text = nb::module_::import_("tmkit.graph.display").attr("tree_text");
            return nb::cast<std::string>(text(self, nb::arg("frame") = frame, nb::arg("depth") = depth, nb::arg("q") = q));
        }, nb::kw_only(), nb::arg("frame") = nb::none(), nb::arg("depth") = nb::none(), nb::arg("q") = nb::none(), "Return the tree as text, as ``tmkit.graph.tree_text`` does, for ``print(scene.tree())``. O(n).\n\nArgs:\n    frame: the frame at the top; all roots when left out.\n    depth: levels below the top that are shown.\n    q: configuration (n_joints,): values of joints and places of frames are shown too.")
        .def("_repr_html_", [](nb::handle self) { return nb::cast<std::string>(nb::module_::import_("tmkit.graph.display").attr("tree_html")(self)); }, "Return what a notebook shows.");
}

}  // namespace

void bind_scene_graph(nb::module_& m) {
    nb::class_<Inertia>(m, "Inertia", R"(Mass properties of a body, in the axes of one of its frames. Immutable.

Args:
    mass: kilograms.
    center: (3,) centre of mass, metres.
    matrix: (3, 3) inertia about the centre of mass, kg m^2; zeros when left out.

Raises:
    SceneError: a mass that is not positive, or a matrix that is not symmetric positive semi-definite.)")
        .def("__init__", [](Inertia* self, double mass, const ArrayArgument& center, const std::optional<ArrayArgument>& matrix) {
            Inertia inertia{mass, read_vector3(center, "center"), {}};
            if (matrix) {
                const std::vector<double> v = read_matrix(*matrix, "matrix", 3, ErrorKind::scene);
                if (v.size() != 9) throw Error(ErrorKind::scene, "an inertia matrix has shape (3, 3)");
                std::copy(v.begin(), v.end(), inertia.matrix.begin());
            }
            inertia.check();
            new (self) Inertia(inertia);
        }, nb::arg("mass"), nb::arg("center") = nb::make_tuple(0.0, 0.0, 0.0), nb::kw_only(), nb::arg("matrix") = nb::none())
        .def_ro("mass", &Inertia::mass, "Kilograms.")
        .def_prop_ro("center", [](const Inertia& i) { return make_array(i.center); }, "(3,) centre of mass, metres.")
        .def_prop_ro("matrix", [](const Inertia& i) { return make_array({i.matrix.begin(), i.matrix.end()}, {3, 3}); }, "(3, 3) inertia about the centre of mass, kg m^2.")
        .def("__eq__", [](const Inertia& a, nb::handle b) { return nb::isinstance<Inertia>(b) && a == nb::cast<const Inertia&>(b); })
        .def("__hash__", [](const Inertia& a) { return nb::hash(nb::make_tuple(a.mass, a.center[0], a.center[1], a.center[2])); })
        .def("__repr__", [](const Inertia& i) { return "Inertia(" + number_text(i.mass) + ", [" + number_text(i.center[0]) + ", " + number_text(i.center[1]) + ", " + number_text(i.center[2]) + "])"; })
        .def("__getstate__", [](nb::handle self) { return nb::make_tuple(self.attr("mass"), self.attr("center"), self.attr("matrix")); })
        .def("__setstate__", [](Inertia& self, const nb::tuple& s) {
            const std::vector<double> c = read_vector(s[1], "center", 3), v = read_matrix(s[2], "matrix", 3);
            new (&self) Inertia{nb::cast<double>(s[0]), {c[0], c[1], c[2]}, {}};
            std::copy(v.begin(), v.end(), self.matrix.begin());
        });

    nb::class_<SceneGraph> scene(m, "SceneGraph", R"(One consistent version of the world: frames in trees, joints, bodies and shapes, as an immutable value.

An edit returns a new version that shares nearly everything with this one, which goes on to answer as before; an edit
that changes nothing returns the same object. Safe to read from any thread. Equality is by content, in insertion order.

Args:
    root: name of the first root frame; None for an empty scene.)");
    scene.def("__init__", [](SceneGraph* self, const std::optional<std::string>& root) {
        new (self) SceneGraph(root ? SceneGraph().add_root(*root) : SceneGraph());
    }, nb::arg("root").none() = "world");
    bind_edits<nb::typed<nb::object, SceneGraph>>(scene);
    bind_queries(scene);
    scene.def("__eq__", [](const SceneGraph& a, nb::handle b) { return nb::isinstance<SceneGraph>(b) && a.same_content(nb::cast<const SceneGraph&>(b)); })
        .def("__hash__", [](const SceneGraph& s) { return static_cast<Py_hash_t>(s.content_hash() >> 2); })
        .def("__copy__", [](nb::typed<nb::object, SceneGraph> self) { return self; })
        .def("__deepcopy__", [](nb::typed<nb::object, SceneGraph> self, nb::handle) { return self; }, nb::arg("memo"))
        .def("__repr__", [](const SceneGraph& s) {
            return "SceneGraph(" + std::to_string(s.size()) + " frames, " + std::to_string(s.joint_count()) + " joints)";
        })
        .def("__getstate__", &scene_state)
        .def("__setstate__", [](SceneGraph& self, const nb::tuple& state) { new (&self) SceneGraph(scene_from_state(state)); });

    nb::class_<SceneEdit> edit(m, "SceneEdit", R"(Many edits that make one new version.

Made by ``scene.edit()``. Its methods are the edits of ``SceneGraph`` and work in place; the scene it began with stays as
it was. Used with ``with``, an exception discards all edits.)");
    bind_edits<SceneEdit&>(edit);
    edit.def_prop_ro("scene", [](const SceneEdit& e) { return e.scene; }, "The scene with the edits so far.")
        .def("finish", [](const SceneEdit& e) {
            if (e.discarded) throw Error(ErrorKind::scene, "this edit was discarded by an exception");
            return e.scene;
        }, "Return the new version. May be called again after more edits.\n\nRaises:\n    SceneError: the edits were discarded.")
        .def("__enter__", [](nb::typed<nb::object, SceneEdit> self) { return self; })
        .def("__exit__", [](SceneEdit& e, nb::handle type, nb::handle, nb::handle) {
            if (!type.is_none()) e.discarded = true;
        }, nb::arg("exception_type").none(), nb::arg("exception").none(), nb::arg("traceback").none())
        .def("__repr__", [](const SceneEdit& e) { return "SceneEdit(" + std::to_string(e.scene.size()) + " frames" + (e.discarded ? ", discarded)" : ")"); });
}

}  // namespace tmkit::bindings
