// Edits of the frames and edges of scenes, each bound once for SceneGraph, SceneEdit and
// SceneArrays.
#include "edits.hpp"
#include "tmkit/scene_errors.hpp"

#define OF_EDGE "\n\nArgs:\n    frame: a frame whose parent is on another body."
#define NAME_TAKEN "\n\nRaises:\n    DuplicateNameError: if the name is taken."

namespace tmkit::bindings {
namespace {

void add_root(SceneEdit& edit, const std::string& name, const std::string& body) {
    edit.add_root(name, body);
}
void add_root(SceneArrays& arrays, const std::string& name, const std::string& body) {
    arrays.add_frame({.name = name, .body = body});
}

template <class Self> void bind_root_edits(auto& cls) {
    cls.def("add_root",
            [](Self self, const std::string& name, const std::optional<std::string>& body) {
        return apply_edit(self, [&](auto& s) {
            require_known_body(scene_of(s), name, body);
            add_root(s, name, body.value_or(""));
        });
    }, "name"_a, nb::kw_only(), "body"_a = nb::none(),
            text_for<Self>(
                R"(Add a frame without a parent: the root of another tree. {O(log n)|O(1)}.

Args:
    name: unique among frames.
    body: the body of the frame, which exists already, by ``add_body`` or another frame; by default
        a new body with the frame's name.)" NAME_TAKEN R"(
    UnknownNameError: if the body is unknown.{|
    CapacityError: if the capacity is exceeded.})"))
        .def("add_body", EDIT(add_body, const std::string&), "name"_a,
             text_for<Self>(R"(Add a body without frames. {O(log n)|O(1)}.

Frames join it by ``body=``. It is removed with its last frame.)" NAME_TAKEN R"(
    SceneError: if the name is empty.{|
    CapacityError: if the capacity is exceeded.})"))
        .def("remove_body", EDIT(remove_body, const std::string&), "name"_a,
             text_for<Self>(
                 R"(Remove a body without frames. {O(log n + twists)|O(twists)}.)" NO_BODY R"(
    SceneError: if it has a frame, or a twist is relative to it.)"));
    cls.def("attach", EDIT(attach, std::string_view, std::string_view, const Pose&, const Joint&),
            "root"_a, "parent"_a, nb::kw_only(), "pose"_a = Pose{}, "joint"_a = Joint{},
            text_for<Self>("Attach a root, with its tree, to a frame of another tree. Redundant "
                           "twists are removed."
                           R"(

{O(moved frames * log n)|O(depth + moved frames), with a joint O(n)}.

Args:
    root: a frame without a parent.
    parent: a frame of another tree.
    pose: parent_from_root at joint value 0; the identity if omitted.
    joint: joint between the root and its parent; fixed if omitted, and between frames of
        one body.)" NO_FRAME
                           R"(
    CycleError: if the parent is in the root's own tree.
    SceneError: if the frame already has a parent, a body would get two paths of poses, or twists
        that become redundant differ from the others by more than 1e-9 or are separated by a
        joint.{|
    CapacityError: if the joint's name is too long.})"));
}

template <class Self> void bind_twist_edits(auto& cls) {
    cls.def("set_twist",
            [](Self self, std::string_view frame, const ArrayArgument& vector,
               const std::string& reference, const OptionalArray& covariance) {
        TwistEdge edge = read_twist_edge(reference, vector);
        edge.noise = own_noise(covariance, frame, reference, true);
        return apply_edit(self, [&](auto& s) { s.set_twist(frame, edge); });
    },
            "frame"_a, "vector"_a, nb::kw_only(), "relative_to_body"_a, "covariance"_a = nb::none(),
            text_for<Self>(R"(Set the twist of a frame relative to another body: a twist edge.

{O(log n + t log t) for t edges|O(1) for another value of an edge, O(t * (log t + depth)) for a new
one among t}. Adds an edge, or changes its value. ``add_twist`` converts twists at another point or
in other axes.

Args:
    frame: the frame whose body moves.
    vector: (6,) twist of the frame's body relative to ``relative_to_body``, at the frame's origin
        and in its axes: linear part [m/s], then angular part [rad/s].
    relative_to_body: the reference body.
    covariance: (6, 6) covariance of the vector, symmetric positive semi-definite; None or zero:
        exact. Its error has a new source and is constant until the edge gets another value.

Raises:
    UnknownNameError: if the frame or body is unknown.
    SceneError: if the frame is on ``relative_to_body``; it has a twist relative to another one; a
        path of twists from that body to a frame joined to it by poses already determines the twist;
        a path of twists leads back; a number is not finite; or the covariance is not symmetric
        positive semi-definite (the message has its eigenvalues).{|
    CapacityError: if the capacity is exceeded.})"))
        .def("remove_twist", EDIT(remove_twist, std::string_view), "frame"_a,
             text_for<Self>(
                 "Remove the twist edge of a frame, if it has one. {O(log n)|O(1)}." NO_FRAME));
}

template <class Self> void bind_stamped_pose_edits(auto& cls) {
    cls.def("add_stamped_pose",
            [](Self self, std::string_view frame, const Pose& pose, const NumberArgument& stamp,
               const OptionalArray& covariance, std::optional<std::size_t> capacity,
               const std::optional<NumberArgument>& window) {
        const double time = read_stamp(stamp);
        const StampedPose entry{
            time, pose,
            stamp_covariance(covariance,
                             format_text("the covariance of '{}' at {} s", frame, time))};
        const std::optional<double> span =
            window ? std::optional(read_stamp(*window, "window")) : std::nullopt;
        return apply_edit(self, [&](auto& s) { s.add_stamped_pose(frame, entry, capacity, span); });
    },
            "frame"_a, "pose"_a, nb::kw_only(), "stamp"_a, "covariance"_a = nb::none(),
            "capacity"_a = nb::none(), "window"_a = nb::none(),
            text_for<Self>(R"(Add a stamped pose to the history of a frame's edge.

{O(depth log n + capacity)|O(depth + newer poses + subtree)}. Poses may be added in any order. The
pose with the newest stamp becomes the frame's pose, as by ``set_pose``, and its covariance, if it
has one, that of the edge, as by ``set_covariance``. A new pose removes those beyond the limits. A
history belongs to an edge: reparenting the frame removes it.)" OF_EDGE R"(
    pose: parent_from_frame, at joint value 0.
    stamp: time on any clock [s].
    covariance: (6, 6) covariance of the pose, ordered [rho, theta] [m, rad], in the frame's own
        axes, behind the joint; symmetric positive semi-definite. Its error is independent of those
        at other stamps; zero: exact. If omitted, the error is that of the edge.
    capacity: largest number of poses; if omitted, unchanged, at first 32.
    window: largest time between the oldest and the newest [s]; if omitted, unchanged, at first
        unlimited.)" NO_FRAME
                           R"(
    StampError: if a pose with that stamp exists, the stamp is too old for the history or not
        finite, the capacity is 0, or the window is not positive.
    SceneError: if the frame is a root, its edge is inside one body and constant, or the covariance
        is not symmetric positive semi-definite (the message has its eigenvalues).{|
    CapacityError: if the capacity is exceeded, and no pose of this edge can be removed; or there is
        a covariance and the capacity ``noise`` is below 6.})"))
        .def("set_stamped_poses",
             [](Self self, std::string_view frame, const std::optional<StampedPoses>& stamps) {
        return apply_edit(self, [&](auto& s) { s.set_stamped_poses(frame, stamps_ref(stamps)); });
    }, "frame"_a, "stamps"_a.none(),
             text_for<Self>("Set all stamped poses of a frame's edge, without changing its pose. "
                            "{O(log n + capacity)|O(poses)}." OF_EDGE
                            R"(
    stamps: poses parent_from_frame at joint value 0, by stamp; None removes the history.)" NO_FRAME
                            R"(
    SceneError: if the frame is a root, or its edge is inside one body and constant.{|
    CapacityError: if the capacity is exceeded.})"));
}

void add_specified(SceneEdit& edit, const FrameSpecification& frame) {
    if (frame.parent.empty()) edit.add_frames({frame});
    else edit.add_frame(frame);
}
void add_specified(SceneArrays& arrays, const FrameSpecification& frame) {
    arrays.add_frame(frame);
}

template <class Self> void bind_add_frame(auto& cls) {
    cls.def("add_frame",
            [](Self self, const std::string& name, const std::optional<std::string>& parent,
               const PoseArgument& pose, const Joint& joint, const std::optional<std::string>& body,
               const std::vector<std::string>& classes, const std::vector<ShapeArgument>& shapes) {
        const std::string above = parent.value_or("");
        FrameSpecification specification{
            name, above, pose.mean(), joint, body.value_or(""), classes, attached_shapes(shapes)};
        specification.noise = own_noise(pose, name, above);
        return apply_edit(self, [&](auto& s) {
            require_known_body(scene_of(s), name, body);
            if (parent && above.empty()) throw errors::without_parent(name);
            if (!parent && !body)
                throw errors::rule(
                    "N3",
                    "frame '{}' has neither a parent nor a body; give parent= or body=", name);
            add_specified(s, specification);
        });
    },
            "name"_a, "parent"_a = nb::none(), nb::kw_only(), "pose"_a = Pose{},
            "joint"_a = Joint{}, "body"_a = nb::none(), "classes"_a = nb::tuple(),
            "shapes"_a = nb::tuple(),
            text_for<Self>(R"(Add a frame under a parent. {O(log n)|O(depth), with a joint O(n)}.

Args:
    name: unique among frames.
    parent: name of the parent frame. If omitted, the frame is the root of a new tree on an existing
        ``body``, until a pose or ``attach`` joins it to others.
    pose: parent_from_frame, at joint value 0. The error of a ``GaussianPose``, [rho, theta] in the
        frame's own axes and behind the joint, has a new source; see ``set_covariance``.
    joint: joint between the frame and its parent; fixed if omitted.
    body: the body of the frame, which exists already, by ``add_body`` or another frame. A frame on
        its parent's body is joined to it by a fixed edge. A frame with a parent and without
        ``body`` is a rigid body of its own, with the frame's name.
    classes: classes of the frame, e.g. ``movable`` or ``surface``; none if omitted.
    shapes: shapes of the frame; a ``Shape`` alone is placed at its origin. None if omitted.

Raises:
    UnknownNameError: if the parent, the body, or the leader of a mimic joint is unknown.
    DuplicateNameError: if the name of the frame, joint or body is taken.
    SceneError: if the body already has a frame in this tree that is not joined to the parent, or
        neither a parent nor a body is given.{|
    CapacityError: if there is no capacity for another frame, body or shape, or a name is too
        long.})"));
}

template <class Self> void bind_frame_edits(auto& cls) {
    cls.def("remove_frame", EDIT(remove_frame, std::string_view, bool), "frame"_a, nb::kw_only(),
            "subtree"_a = false, text_for<Self>(R"(Remove a frame.

{O(log n) for each removed frame and allowed pair, after a query like ``children``; and
O(members of all groups), O(twists), O(joints) if a joint is removed and the scene has mimic
joints.|O(n + allowed pairs + members of groups + twists).})" OF_FRAME R"(
    subtree: remove all its descendants too.)" NO_FRAME R"(
    SceneError: if it has children and ``subtree`` is False, or a remaining joint mimics a removed
        one.)"))
        .def("rename_frame", EDIT(rename_frame, std::string_view, const std::string&), "frame"_a,
             "name"_a,
             text_for<Self>(
                 "Rename a frame; its joint and body keep their names. {O(log n)|O(1)}." OF_FRAME
                 R"(
    name: its new name, unique among frames.)" NO_FRAME R"(
    DuplicateNameError: if the new name is taken.{|
    CapacityError: if the new name is too long.})"));
    cls.def("set_pose", EDIT(set_pose, std::string_view, const Pose&), "frame"_a, "pose"_a,
            text_for<Self>("Set the pose of a frame relative to its parent. {O(depth log "
                           "n)|O(depth + subtree)}."
                           R"(

Stamped poses of the edge remain. A query with a stamp uses them alone; one without uses this pose,
until a newer stamped pose is added. A twist edge remains too.)" OF_EDGE R"(
    pose: parent_from_frame at joint value 0.)" NO_FRAME R"(
    SceneError: if the frame is a root, or its edge is inside one body and constant.)"))
        .def("set_joint", EDIT(set_joint, std::string_view, const Joint&), "frame"_a, "joint"_a,
             text_for<Self>(R"(Set the joint between a frame and its parent. {O(log n)|O(n)}.{|

An existing joint keeps its value, a new one starts at 0.})" OF_EDGE R"(
    joint: the new joint.

Raises:
    UnknownNameError: if the frame, or the leader of a mimic joint, is unknown.
    DuplicateNameError: if the joint name is taken.
    SceneError: if the frame is a root, its edge is inside one body, or other joints mimic its
        joint.{|
    CapacityError: if the joint's name is too long.})"));
}

template <class Self> void bind_reparent(auto& cls) {
    cls.def("reparent",
            [](Self self, std::string_view frame, std::string_view parent, const Pose* pose,
               const OptionalArray& q, const OptionalArray& covariance) {
        if (pose && q) throw Error(ErrorKind::scene, "give either pose or q to reparent, not both");
        const Ref<const EdgeNoise> noise = own_noise(covariance, frame, parent);
        const At<Self> configuration(q, scene_before(self));
        return apply_edit(self, [&](auto& s) {
            if (pose) s.reparent(frame, parent, *pose, noise);
            else s.reparent_keeping_pose(frame, parent, configuration.get(), noise);
        });
    },
            "frame"_a, "parent"_a, nb::kw_only(), "pose"_a.none() = nb::none(), "q"_a = nb::none(),
            "covariance"_a = nb::none(),
            text_for<Self>("Attach a frame, with its subtree, to another parent. {O(depth log "
                           "n)|O(depth + subtree)}."
                           R"(

With t twist edges O(t depth{ log n|}) more. The motion of the old edge is removed with it: its
stamped poses, and all twist edges that cover it, by the path of poses from their frame to their
reference body. A cup grasped from a belt then moves with the hand. Motions inside the subtree
remain. Set those that are still valid with ``set_twist``.

Args:
    frame: the frame that moves.
    parent: its new parent.
    pose: parent_from_frame of the new edge, at joint value 0.
    q: without ``pose``, the frame keeps its pose in the world at this configuration (n_joints,);
        {optional if no joint is on the path between frame and parent|at the present one if
        omitted}.
    covariance: (6, 6) covariance of an error of the move, [rho, theta] in the frame's own axes,
        with a new source. With ``pose`` it is the whole error of the new edge, which is exact
        without it. Otherwise it is added (slip of a grasp, placement). The new edge then keeps the
        errors of all edges between frame and parent, source by source, and every relative pose in
        the scene keeps its distribution to first order.)" NO_FRAME
                           R"(
    CycleError: if the parent is the frame itself or its descendant.
    ConfigurationError: if a joint is on the path and q is missing, or q has the wrong length.
    SceneError: if the frame is a root, would leave its body, would give a body two paths, or would
        join trees with contradicting twist edges.{|
    CapacityError: if there is no capacity for the sources of its error; construct SceneArrays with
        a larger capacity ``noise``.})"));
}

}  // namespace

template <class Scene> void bind_scene_edits(nb::class_<Scene>& cls) {
    using Self = SelfOf<Scene>;
    bind_root_edits<Self>(cls);
    bind_twist_edits<Self>(cls);
    bind_stamped_pose_edits<Self>(cls);
    bind_frame_edits<Self>(cls);
    bind_add_frame<Self>(cls);
    bind_reparent<Self>(cls);
    if constexpr (!std::is_same_v<Scene, SceneArrays>)
        cls.def("make_root", EDIT(make_root, std::string_view), "frame"_a,
                "Make a frame the root of its tree: reverse the edges above it, without motion. "
                "O(depth log n)."
                R"(

Errors, stamped poses and twist edges keep their meaning.)" OF_FRAME NO_FRAME R"(
    SceneError: if a joint is above it.)");
}
template void bind_scene_edits(nb::class_<SceneGraph>&);
template void bind_scene_edits(nb::class_<SceneEditHandle>&);
template void bind_scene_edits(nb::class_<SceneArrays>&);

}  // namespace tmkit::bindings
