#include "tmkit/scene_graph.hpp"

#include "edits.hpp"
#include "state.hpp"
#include "tmkit/scene_difference.hpp"
#include "tmkit/scene_errors.hpp"

namespace tmkit::bindings {
namespace {

template <class Self>
void bind_edits(auto& cls) {
    cls.def("add_root",
            [](Self self, const std::string& name, const std::optional<std::string>& body) {
        return apply_edit(self, [&](SceneEdit& s) {
            require_known_body(s.scene(), name, body);
            s.add_root(name, body.value_or(""));
        });
    }, nb::arg("name"), nb::kw_only(), nb::arg("body") = nb::none(),
            R"(Add a frame without a parent: the root of another tree. O(log n).

Args:
    name: unique among frames.
    body: the body that the frame is on, made before with ``add_body`` or by another frame; by default a new body of
        the frame's own name.

Raises:
    DuplicateNameError: the name is taken.
    UnknownNameError: no such body.)")
        .def("add_body",
             [](Self self, const std::string& name) {
        return apply_edit(self, [&](SceneEdit& s) { s.add_body(name); });
    }, nb::arg("name"), R"(Add a body that has no frame yet. O(log n).

Frames are put on it by ``body=``. It is removed with its last frame.

Raises:
    DuplicateNameError: the name is taken.
    SceneError: an empty name.)")
        .def("remove_body",
             [](Self self, const std::string& name) {
        return apply_edit(self, [&](SceneEdit& s) { s.remove_body(name); });
    }, nb::arg("name"), R"(Remove a body without frames. O(log n + twists).

Raises:
    UnknownNameError: no such body.
    SceneError: it has a frame, or a twist is relative to it.)")
        .def("attach",
             [](Self self, std::string_view root, std::string_view parent, const Pose& pose, const Joint& joint) {
        return apply_edit(self, [&](SceneEdit& s) { s.attach(root, parent, pose, joint); });
    }, nb::arg("root"), nb::arg("parent"), nb::kw_only(), nb::arg("pose") = Pose{}, nb::arg("joint") = Joint{},
             R"(Attach a root, with its tree, to a frame of another tree. O(moved frames * log n).

Args:
    root: a frame without a parent.
    parent: a frame of another tree.
    pose: parent_from_root at joint value 0.
    joint: how the root moves relative to its parent; between frames of one body it is fixed.

Raises:
    UnknownNameError: no such frame.
    CycleError: the parent is in the root's own tree.
    SceneError: the frame has a parent already; a body would come to have two paths of poses, or two of twists.)")
        .def("set_twist",
             [](Self self, std::string_view frame, const std::string& reference, const ArrayArgument& vector,
                const std::optional<ArrayArgument>& covariance) {
        TwistEdge edge = read_twist_edge(reference, vector);
        edge.noise = own_twist_noise(covariance, frame, reference);
        return apply_edit(self, [&](SceneEdit& s) { s.set_twist(frame, edge); });
    },
             nb::arg("frame"), nb::arg("reference"), nb::arg("vector"), nb::kw_only(),
             nb::arg("covariance") = nb::none(),
             R"(Set how a frame moves relative to another body: a twist edge. O(log n + t log t) for t edges.

Adds an edge, or changes its value. Twists given at another point or in other axes are converted by ``add_twist``.

Args:
    frame: the frame whose body moves.
    reference: the body relative to which it moves.
    vector: (6,) twist of the frame's body relative to the reference body, at the frame's origin and in its axes:
        linear part in m/s, then angular part in rad/s.
    covariance: (6, 6) of the vector, symmetric positive semi-definite; None or zero: exact. Its error comes from a
        source of its own and is the same for as long as the edge has this value.

Raises:
    UnknownNameError: no such frame or body.
    SceneError: the frame is on the reference body; it has a twist relative to another one; the twist is already
        given by a path of twists from that body to a frame joined to it by poses; a path of twists leads back; a
        number is not finite; or the covariance is not symmetric positive semi-definite, with its eigenvalues.)")
        .def("remove_twist",
             [](Self self, std::string_view frame) {
        return apply_edit(self, [&](SceneEdit& s) { s.remove_twist(frame); });
    }, nb::arg("frame"), R"(Remove the twist edge of a frame, if it has one. O(log n).

Raises:
    UnknownNameError: no such frame.)")
        .def("add_stamped_pose",
             [](Self self, std::string_view frame, const Pose& pose, double stamp, std::optional<std::size_t> capacity,
                std::optional<double> window) {
        return apply_edit(self, [&](SceneEdit& s) { s.add_stamped_pose(frame, {stamp, pose}, capacity, window); });
    },
             nb::arg("frame"), nb::arg("pose"), nb::kw_only(), nb::arg("stamp"), nb::arg("capacity") = nb::none(),
             nb::arg("window") = nb::none(),
             R"(Add a pose at a time to the short history of a frame's edge. O(depth log n + capacity).

Poses may come in any order. When the stamp is the newest, this becomes the frame's pose, as by ``set_pose``; a new
pose drops what no longer fits. A history belongs to an edge: reparenting the frame removes it.

Args:
    frame: a frame whose parent is on another body.
    pose: parent_from_frame, at joint value 0.
    stamp: seconds, on any clock.
    capacity: most poses that are kept; if omitted as before, at first 32.
    window: most seconds between the oldest and the newest; if omitted as before, at first unlimited.

Raises:
    UnknownNameError: no such frame.
    StampError: there is a pose of that stamp; it is older than what is kept; a stamp that is not finite; a capacity
        of 0 or a window that is not positive.
    SceneError: a root, or an edge inside one body, whose pose is constant.)")
        .def("set_stamped_poses",
             [](Self self, std::string_view frame, const std::optional<StampedPoses>& stamps) {
        return apply_edit(self, [&](SceneEdit& s) { s.set_stamped_poses(frame, stamps_ref(stamps)); });
    }, nb::arg("frame"), nb::arg("stamps").none(),
             R"(Set the whole history of a frame's edge; its present pose stays. O(log n + capacity).

Args:
    frame: a frame whose parent is on another body.
    stamps: poses parent_from_frame at joint value 0, by stamp; None removes the history.

Raises:
    UnknownNameError: no such frame.
    SceneError: a root, or an edge inside one body, whose pose is constant.)")
        .def("add_frame",
             [](Self self, const std::string& name, const std::optional<std::string>& parent, const Pose& pose,
                const Joint& joint, const std::optional<std::string>& body, const std::vector<std::string>& classes,
                const std::vector<ShapeArgument>& shapes, const std::optional<ArrayArgument>& covariance) {
        const FrameSpecification specification{name,
                                               parent.value_or(""),
                                               pose,
                                               joint,
                                               body.value_or(""),
                                               classes,
                                               attached_shapes(shapes),
                                               {},
                                               {},
                                               {},
                                               {},
                                               own_noise(covariance, name, parent.value_or(""))};
        return apply_edit(self, [&](SceneEdit& s) {
            require_known_body(s.scene(), name, body);
            if (parent) return s.add_frame(specification);
            if (!body) throw refusals::on_no_body(name);
            s.add_frames({specification});
        });
    },
             nb::arg("name"), nb::arg("parent") = nb::none(), nb::kw_only(), nb::arg("pose") = Pose{},
             nb::arg("joint") = Joint{}, nb::arg("body") = nb::none(), nb::arg("classes") = nb::tuple(),
             nb::arg("shapes") = nb::tuple(), nb::arg("covariance") = nb::none(),
             R"(Add a frame under a parent. O(log n).

Args:
    name: unique among frames.
    parent: name of the parent frame. If omitted, the frame is the root of a tree of its own on an existing
        ``body``, until a pose or ``attach`` joins it to others.
    pose: parent_from_frame, at joint value 0.
    joint: how the frame moves relative to the parent.
    body: the body that the frame is on, made before with ``add_body`` or by another frame; under a parent by
        default a new body of the frame's own name. A frame on its parent's body is joined to it by a fixed edge.
    classes: what the frame is, e.g. ``movable`` or ``surface``.
    shapes: the shapes on the frame; a bare shape sits in its origin.
    covariance: (6, 6) of the error of its pose, [rho, theta] in the frame's own axes, behind the joint; exact if
        omitted. See ``set_covariance``.

Raises:
    UnknownNameError: no such parent, no such body, or a mimic joint whose leader is not there.
    DuplicateNameError: the frame, joint or body name is taken.
    SceneError: the body already has a frame in this tree that is not joined to the parent; or neither a parent nor
        a body is given.)")
        .def("remove_frame",
             [](Self self, std::string_view frame, bool subtree) {
        return apply_edit(self, [&](SceneEdit& s) { s.remove_frame(frame, subtree); });
    }, nb::arg("frame"), nb::kw_only(), nb::arg("subtree") = false, R"(Remove a frame.

O(log n) for each frame removed and each of its allowed pairs, after a query like ``children``; and O(members of all
groups), O(twists), O(joints) when a joint is removed and another mimics.

Args:
    frame: the frame.
    subtree: remove all its descendants too.

Raises:
    UnknownNameError: no such frame.
    SceneError: it has children and ``subtree`` is False, or a joint that stays mimics one that would be removed.)")
        .def("rename_frame",
             [](Self self, std::string_view frame, const std::string& name) {
        return apply_edit(self, [&](SceneEdit& s) { s.rename_frame(frame, name); });
    }, nb::arg("frame"), nb::arg("name"), R"(Rename a frame; its joint and body keep their names. O(log n).

Args:
    frame: the frame.
    name: its new name, unique among frames.

Raises:
    UnknownNameError: no such frame.
    DuplicateNameError: the new name is taken.)")
        .def("reparent",
             [](Self self, std::string_view frame, std::string_view parent, const std::optional<Pose>& pose,
                const std::optional<ArrayArgument>& q, const std::optional<ArrayArgument>& covariance) {
        if (pose && q) throw Error(ErrorKind::scene, "give either pose or q to reparent, not both");
        const Ref<const EdgeNoise> noise = own_noise(covariance, frame, parent);
        const ConfigurationArgument configuration(q, scene_before(self));
        return apply_edit(self, [&](SceneEdit& s) {
            if (pose) s.reparent(frame, parent, *pose, noise);
            else s.reparent_keeping_pose(frame, parent, configuration.get(), noise);
        });
    },
             nb::arg("frame"), nb::arg("parent"), nb::kw_only(), nb::arg("pose") = nb::none(),
             nb::arg("q") = nb::none(), nb::arg("covariance") = nb::none(),
             R"(Move a frame with its subtree under another parent. O(depth log n).

With t twist edges O(t depth log n) more. What is known of motions along the old edge ends with it: its stamped
poses, and all twist edges whose path of poses, from their frame to the body that they are relative to, leads over
it. A cup on a belt that is grasped moves with the hand. Motions inside the subtree stay; set what still holds with
``set_twist``.

Args:
    frame: the frame that moves.
    parent: its new parent.
    pose: parent_from_frame in the new place, at joint value 0.
    q: without ``pose``, the frame keeps its place in the world at this configuration (n_joints,); optional when no
        joint is on the path between frame and parent.
    covariance: (6, 6) of an error that comes with the move, [rho, theta] in the frame's own axes, from a source of
        its own. With ``pose`` it is the whole error of the new edge, which is exact without it. Otherwise it is
        added (slip of a grasp, placement): the new edge keeps the errors of all edges between frame and parent,
        source by source, so that to first order every relative pose in the scene keeps its distribution.

Raises:
    UnknownNameError: no such frame.
    CycleError: the parent is the frame itself or its descendant.
    ConfigurationError: a joint is on the path and q is missing, or q has the wrong length.
    SceneError: the frame is a root, or would leave its body, or give a body two paths, or join trees whose twist
        edges contradict each other.)")
        .def("set_pose",
             [](Self self, std::string_view frame, const Pose& pose) {
        return apply_edit(self, [&](SceneEdit& s) { s.set_pose(frame, pose); });
    }, nb::arg("frame"), nb::arg("pose"), R"(Set the pose of a frame relative to its parent. O(depth log n).

Stamped poses of the edge stay: a query with a stamp uses them alone, one without uses this pose, until a newer
stamped pose is added. A twist edge stays as well.

Args:
    frame: a frame whose parent is on another body.
    pose: parent_from_frame at joint value 0.

Raises:
    UnknownNameError: no such frame.
    SceneError: a root, or an edge inside one body, whose pose is constant.)")
        .def("set_joint",
             [](Self self, std::string_view frame, const Joint& joint) {
        return apply_edit(self, [&](SceneEdit& s) { s.set_joint(frame, joint); });
    }, nb::arg("frame"), nb::arg("joint"), R"(Set how a frame moves relative to its parent. O(log n).

Args:
    frame: a frame whose parent is on another body.
    joint: the new joint, in place of the old one.

Raises:
    UnknownNameError: no such frame, or no such leader of a mimic joint.
    DuplicateNameError: the joint name is taken.
    SceneError: a root, an edge inside one body, or others mimic the joint.)")
        .def("set_classes",
             [](Self self, std::string_view frame, const std::vector<std::string>& classes) {
        return apply_edit(self, [&](SceneEdit& s) { s.set_classes(frame, classes); });
    }, nb::arg("frame"), nb::arg("classes"), R"(Set the classes of a frame. O(log n).

Args:
    frame: the frame.
    classes: what the frame is, e.g. ``('movable',)``; replaces its classes.

Raises:
    UnknownNameError: no such frame.)")
        .def("set_shapes",
             [](Self self, std::string_view frame, const std::vector<ShapeArgument>& shapes) {
        return apply_edit(self, [&](SceneEdit& s) { s.set_shapes(frame, attached_shapes(shapes)); });
    }, nb::arg("frame"), nb::arg("shapes"), R"(Set all shapes of a frame. O(log n).

Args:
    frame: the frame.
    shapes: the shapes on it, in place of those it has; a bare shape is put at the frame's origin.

Raises:
    UnknownNameError: no such frame.)")
        .def("add_shape",
             [](Self self, std::string_view frame, const ShapeArgument& shape) {
        return apply_edit(self, [&](SceneEdit& s) { s.add_shape(frame, shape.attached()); });
    }, nb::arg("frame"), nb::arg("shape"), R"(Attach one more shape to a frame. O(log n).

Args:
    frame: the frame.
    shape: the shape; a bare shape is put at the frame's origin.

Raises:
    UnknownNameError: no such frame.)")
        .def("set_inertia",
             [](Self self, std::string_view frame, const std::optional<Inertia>& inertia) {
        return apply_edit(self, [&](SceneEdit& s) { s.set_inertia(frame, inertia); });
    }, nb::arg("frame"), nb::arg("inertia").none(), R"(Set the mass properties of the body that a frame is on. O(log n).

Args:
    frame: the frame in whose axes they are given.
    inertia: mass, centre and inertia matrix; None removes them.

Raises:
    UnknownNameError: no such frame.
    SceneError: a mass that is not positive, or a matrix that is not symmetric positive semi-definite.)")
        .def("allow_collision",
             [](Self self, std::string_view a, std::string_view b, const std::string& reason) {
        return apply_edit(self, [&](SceneEdit& s) { s.allow_collision(a, b, reason); });
    }, nb::arg("a"), nb::arg("b"), nb::kw_only(), nb::arg("reason") = "user",
             R"(Let the shapes of two frames touch: the pair is not checked. O(log n).

Args:
    a: a frame.
    b: another frame; the order does not matter.
    reason: why they may touch, kept with the pair.

Raises:
    UnknownNameError: no such frame.
    SceneError: a frame with itself.)")
        .def("forbid_collision",
             [](Self self, std::string_view a, std::string_view b) {
        return apply_edit(self, [&](SceneEdit& s) { s.forbid_collision(a, b); });
    }, nb::arg("a"), nb::arg("b"), R"(Check a pair of frames for collision again. O(log n).

Args:
    a: a frame.
    b: another frame; the order does not matter.

Raises:
    UnknownNameError: no such frame.)")
        .def("set_attributes",
             [](Self self, std::string_view frame, const nb::typed<nb::mapping, nb::str, nb::any>& attributes) {
        Attributes tags = attributes_of(attributes);
        return apply_edit(self, [&](SceneEdit& s) { s.set_attributes(frame, std::move(tags)); });
    }, nb::arg("frame"), nb::arg("attributes"), R"(Set all attributes of a frame. O(log n).

Args:
    frame: the frame.
    attributes: JSON values by key: text, numbers, True, False, None, lists and dicts of these. Replaces those it
        has.

Raises:
    UnknownNameError: no such frame.
    SceneError: a key that is no text or empty, or a value that is not JSON.)")
        .def("set_attribute",
             [](Self self, std::string_view frame, const std::string& key, nb::handle value) {
        const std::string text = attribute_text(key, value);
        return apply_edit(self, [&](SceneEdit& s) {
            s.set_attributes(frame, with_attribute(attributes_on(s.scene().record(frame)), key, text));
        });
    }, nb::arg("frame"), nb::arg("key"), nb::arg("value").none(), R"(Set one attribute of a frame. O(log n).

Args:
    frame: the frame.
    key: the name of the attribute, not empty.
    value: a JSON value; see ``set_attributes``.

Raises:
    UnknownNameError: no such frame.
    SceneError: an empty key, or a value that is not JSON.)")
        .def("set_group",
             [](Self self, const std::string& name, const std::vector<std::string>& frames,
                const std::vector<std::string>& groups) {
        return apply_edit(self, [&](SceneEdit& s) { s.set_group({name, frames, groups}); });
    },
             nb::arg("name"), nb::kw_only(), nb::arg("frames") = nb::tuple(), nb::arg("groups") = nb::tuple(),
             R"(Make a group, or replace what it holds. O(members log n).

Groups organise frames by meaning: they nest, may share members, and say nothing of poses. They follow their frames
through rename and reparenting.

Args:
    name: of the group.
    frames: its frames.
    groups: the groups in it, which exist.

Raises:
    UnknownNameError: no such frame or group.
    CycleError: the group would hold itself.)")
        .def("remove_group",
             [](Self self, std::string_view name) {
        return apply_edit(self, [&](SceneEdit& s) { s.remove_group(name); });
    }, nb::arg("name"), R"(Remove a group, also from the groups that hold it; its frames stay.

Raises:
    UnknownNameError: no such group.)")
        .def("mount",
             [](Self self, const SceneGraph& other, std::string_view under, const std::string& prefix, const Pose& pose,
                const Joint& joint) {
        return apply_edit(self, [&](SceneEdit& s) { s.mount(other, under, prefix, pose, joint); });
    },
             nb::arg("other"), nb::arg("under"), nb::kw_only(), nb::arg("prefix") = "", nb::arg("pose") = Pose{},
             nb::arg("joint") = Joint{}, R"(Add a copy of another scene under a frame. O(m log n) for m frames.

Shapes are shared, not copied. The same scene may be mounted many times, each with a prefix of its own: a template.

Args:
    other: the scene; every frame, joint, body, group and allowed pair of it is added.
    under: the frame that becomes the parent of its roots.
    prefix: put before every name of it, e.g. ``left/``.
    pose: under_from_root, of each of its roots.
    joint: between ``under`` and its roots.

Raises:
    UnknownNameError: no such frame.
    DuplicateNameError: a name with the prefix is taken.)")
        .def("merge",
             [](Self self, const SceneGraph& other) { return apply_edit(self, [&](SceneEdit& s) { s.merge(other); }); },
             nb::arg("other"), R"(Add the frames of another scene. O(m log n) for its m frames.

A root of the other scene that has the name of a frame here is that frame: children of the other's ``world`` become
children of the ``world`` here. Other roots become further roots.

Raises:
    DuplicateNameError: a frame, joint or body of the other scene has the name of one here.
    SceneError: the same root carries different shapes, classes or attributes in both.)")
        .def("extract",
             [](Self self, std::string_view frame) {
        return apply_edit(self, [&](SceneEdit& s) { s.extract(frame); });
    }, nb::arg("frame"), R"(Keep only a frame, which becomes the root, and its descendants.

O(m log n) for m frames that stay, O(members of all groups). Allowed pairs and groups are kept as far as their
frames are. Inertia given on a frame that is removed, is removed.

Raises:
    UnknownNameError: no such frame.
    SceneError: a joint that stays mimics one that does not.)")
        .def("apply", [](Self self, const SceneDifference& difference) {
        return apply_edit(self, [&](SceneEdit& s) { s.apply(difference); });
    }, nb::arg("difference"), R"(Make the changes that ``diff(a, b)`` found: applied to ``a`` it gives ``b``.

On another scene it changes the same fields of the frames of the same names. O(changes log n), or O(n log n) when
the changes depend on each other in a circle (two frames that swap names).

Raises:
    SceneError, UnknownNameError, DuplicateNameError, CycleError: the changes do not fit this scene.)");
}

}  // namespace

void bind_scene_graph(nb::module_& m) {
    nb::class_<SceneGraph> scene(
        m, "SceneGraph", nb::is_weak_referenceable(),
        R"(One consistent version of the world: frames in trees, joints, bodies and shapes, as an immutable value.

An edit returns a new version that shares nearly everything with this one, which goes on to answer as before; an
edit that changes nothing returns the same object. Safe to read from any thread. Equality is by content, in
insertion order; of versions made from one another it costs what ``diff`` costs, of others O(n). The first hash of a
version costs O(n).

Args:
    root: name of the first root frame; None for an empty scene.)");
    scene.def("__init__", [](SceneGraph* self, const std::optional<std::string>& root) {
        new (self) SceneGraph(root ? SceneGraph().add_root(*root) : SceneGraph());
    }, nb::arg("root").none() = "world");
    bind_edits<nb::typed<nb::object, SceneGraph>>(scene);
    bind_scene_queries(scene);
    bind_relations(scene);
    scene.def("edit", [](const SceneGraph& s) { return SceneEditHandle{SceneEdit(s)}; },
              "Begin many edits that make one new version: ``with scene.edit() as edit: ...; edit.finish()``.");
    scene
        .def("__eq__",
             [](const SceneGraph& a, nb::handle b) {
        return nb::isinstance<SceneGraph>(b) && a.same_content(nb::cast<const SceneGraph&>(b));
    }, nb::arg("other").none())
        .def("__hash__", [](const SceneGraph& s) { return static_cast<Py_hash_t>(s.content_hash() >> 2); })
        .def("__copy__", [](nb::typed<nb::object, SceneGraph> self) { return self; })
        .def("__deepcopy__", [](nb::typed<nb::object, SceneGraph> self, nb::handle) { return self; }, nb::arg("memo"))
        .def("__repr__", [](const SceneGraph& s) {
        return "SceneGraph(" + std::to_string(s.size()) + " frames, " + std::to_string(s.joint_count()) + " joints)";
    });
    bind_state(scene, &scene_state, &scene_from_state);

    nb::class_<SceneEditHandle> edit(m, "SceneEdit", nb::is_weak_referenceable(),
                                     R"(Many edits that make one new version.

Made by ``scene.edit()``. Its methods are the edits of ``SceneGraph`` and work in place; the scene it began with
stays as it was. Used with ``with``, an exception discards all edits; so does a MemoryError in the middle of one.)");
    bind_edits<SceneEditHandle&>(edit);
    bind_noise_edits(scene, edit);
    edit.def_prop_ro("scene",
                     [](const SceneEditHandle& e) {
        if (e.out_of_memory) e.require_kept();
        return e.edit.scene();
    }, "The scene with the edits so far.")
        .def("finish",
             [](const SceneEditHandle& e) {
        if (e.discarded) throw Error(ErrorKind::scene, "this edit was discarded by an exception");
        e.require_kept();
        return e.edit.scene();
    }, R"(Return the new version. May be called again after more edits.

Raises:
    SceneError: the edits were discarded.)")
        .def("__enter__", [](nb::typed<nb::object, SceneEditHandle> self) { return self; })
        .def("__exit__",
             [](SceneEditHandle& e, nb::handle type, nb::handle, nb::handle) {
        if (!type.is_none()) e.discarded = true;
    }, nb::arg("exception_type").none(), nb::arg("exception").none(), nb::arg("traceback").none())
        .def("__repr__", [](const SceneEditHandle& e) {
        return "SceneEdit(" + std::to_string(e.edit.scene().size()) + " frames" +
               (e.discarded || e.out_of_memory ? ", discarded)" : ")");
    });

    m.def("diff", &difference, nb::arg("a"), nb::arg("b"), R"(Return the difference between two versions of a scene.

O(changes log n) when one was made from the other, or both from a third: what they share is skipped. Between scenes
of different origin it is correct too, but not the smallest, and O(n).

Args:
    a: the first version.
    b: the second version.

Returns:
    The difference; ``a.apply(diff(a, b)) == b``.)");
}

}  // namespace tmkit::bindings
