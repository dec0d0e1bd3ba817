// The edits of the frames and edges of scenes: each is bound once, and works for SceneGraph,
// SceneEdit and SceneArrays.
#include "edits.hpp"
#include "tmkit/scene_errors.hpp"

#define OF_EDGE "\n\nArgs:\n    frame: a frame whose parent is on another body."
#define NAME_TAKEN "\n\nRaises:\n    DuplicateNameError: the name is taken."

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
    body: the body that the frame is on, made before with ``add_body`` or by another frame; by default a new body of
        the frame's own name.)" NAME_TAKEN R"(
    UnknownNameError: no such body.{|
    CapacityError: no room.})"))
        .def("add_body", EDIT(add_body, const std::string&), "name"_a,
             text_for<Self>(R"(Add a body that has no frame yet. {O(log n)|O(1)}.

Frames are put on it by ``body=``. It is removed with its last frame.)" NAME_TAKEN R"(
    SceneError: an empty name.{|
    CapacityError: no room.})"))
        .def("remove_body", EDIT(remove_body, const std::string&), "name"_a,
             text_for<Self>(
                 R"(Remove a body without frames. {O(log n + twists)|O(twists)}.)" NO_BODY R"(
    SceneError: it has a frame, or a twist is relative to it.)"));
    cls.def(
        "attach", EDIT(attach, std::string_view, std::string_view, const Pose&, const Joint&),
        "root"_a, "parent"_a, nb::kw_only(), "pose"_a = Pose{}, "joint"_a = Joint{},
        text_for<Self>(
            R"(Attach a root, with its tree, to a frame of another tree. Twists that then follow from others go.

{O(moved frames * log n)|O(depth + moved frames), with a joint O(n)}.

Args:
    root: a frame without a parent.
    parent: a frame of another tree.
    pose: parent_from_root at joint value 0; the identity if omitted.
    joint: how the root moves relative to its parent; fixed if omitted, and between frames of one body.)" NO_FRAME
            R"(
    CycleError: the parent is in the root's own tree.
    SceneError: the frame already has a parent; a body would get two paths of poses; or twists that follow from others
        differ from these by more than 1e-9, or a joint is between.{|
    CapacityError: the joint's name is too long.})"));
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
            text_for<Self>(R"(Set how a frame moves relative to another body: a twist edge.

{O(log n + t log t) for t edges|O(1) for another value of an edge, O(t * (log t + depth)) for a new one among t}. Adds
an edge, or changes its value. Twists given at another point or in other axes are converted by ``add_twist``.

Args:
    frame: the frame whose body moves.
    vector: (6,) twist of the frame's body relative to ``relative_to_body``, at the frame's origin and in its axes:
        linear part in m/s, then angular part in rad/s.
    relative_to_body: the body relative to which it moves.
    covariance: (6, 6) of the vector, symmetric positive semi-definite; None or zero: exact. Its error comes from a
        source of its own and is the same for as long as the edge has this value.

Raises:
    UnknownNameError: no such frame or body.
    SceneError: the frame is on ``relative_to_body``; it has a twist relative to another one; the twist is already
        given by a path of twists from that body to a frame joined to it by poses; a path of twists leads back; a
        number is not finite; or the covariance is not symmetric positive semi-definite, with its eigenvalues.{|
    CapacityError: no room for another.})"))
        .def("remove_twist", EDIT(remove_twist, std::string_view), "frame"_a,
             text_for<Self>(
                 "Remove the twist edge of a frame, if it has one. {O(log n)|O(1)}." NO_FRAME));
}

template <class Self> void bind_stamped_pose_edits(auto& cls) {
    cls.def("add_stamped_pose",
            [](Self self, std::string_view frame, const Pose& pose, double stamp,
               std::optional<std::size_t> capacity, std::optional<double> window) {
        return apply_edit(
            self, [&](auto& s) { s.add_stamped_pose(frame, {stamp, pose}, capacity, window); });
    },
            "frame"_a, "pose"_a, nb::kw_only(), "stamp"_a, "capacity"_a = nb::none(),
            "window"_a = nb::none(),
            text_for<Self>(R"(Add a pose at a time to the short history of a frame's edge.

{O(depth log n + capacity)|O(depth + newer poses + subtree)}. Poses may come in any order. When the stamp is the
newest, this becomes the frame's pose, as by ``set_pose``; a new pose drops what no longer fits. A history belongs to an
edge: reparenting the frame removes it.)" OF_EDGE R"(
    pose: parent_from_frame, at joint value 0.
    stamp: seconds, on any clock.
    capacity: most poses that are kept; if omitted as before, at first 32.
    window: most seconds between the oldest and the newest; if omitted as before, at first unlimited.)" NO_FRAME
                           R"(
    StampError: there is a pose of that stamp; it is older than what is kept; a stamp that is not finite; a capacity
        of 0 or a window that is not positive.
    SceneError: a root, or an edge inside one body, whose pose is constant.{|
    CapacityError: no room for another, and none of this edge's own is to be dropped.})"))
        .def(
            "set_stamped_poses",
            [](Self self, std::string_view frame, const std::optional<StampedPoses>& stamps) {
        return apply_edit(self, [&](auto& s) { s.set_stamped_poses(frame, stamps_ref(stamps)); });
    }, "frame"_a, "stamps"_a.none(),
            text_for<Self>(
                R"(Set all stamped poses of a frame's edge; its pose stays. {O(log n + capacity)|O(poses)}.)" OF_EDGE
                R"(
    stamps: poses parent_from_frame at joint value 0, by stamp; None removes the history.)" NO_FRAME
                R"(
    SceneError: a root, or an edge inside one body, whose pose is constant.{|
    CapacityError: no room for so many.})"));
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
    parent: name of the parent frame. If omitted, the frame is the root of a tree of its own on an existing
        ``body``, until a pose or ``attach`` joins it to others.
    pose: parent_from_frame, at joint value 0. The error of a ``GaussianPose``, [rho, theta] in the frame's own axes and
        behind the joint, comes from a source of its own; see ``set_covariance``.
    joint: how the frame moves relative to the parent; fixed if omitted.
    body: the body that the frame is on, made before with ``add_body`` or by another frame; under a parent by
        default a new body of the frame's own name. A frame on its parent's body is joined to it by a fixed edge.
    classes: what the frame is, e.g. ``movable`` or ``surface``; none if omitted.
    shapes: the shapes on the frame; a ``Shape`` alone is put at its origin. None if omitted.

Raises:
    UnknownNameError: no such parent, no such body, or a mimic joint whose leader is not there.
    DuplicateNameError: the frame, joint or body name is taken.
    SceneError: the body already has a frame in this tree that is not joined to the parent; or neither a parent nor
        a body is given.{|
    CapacityError: no room for another frame, body or shape, or a name that is too long.})"));
}

template <class Self> void bind_frame_edits(auto& cls) {
    cls.def("remove_frame", EDIT(remove_frame, std::string_view, bool), "frame"_a, nb::kw_only(),
            "subtree"_a = false, text_for<Self>(R"(Remove a frame.

{O(log n) for each frame removed and each of its allowed pairs, after a query like ``children``; and O(members of all
groups), O(twists), O(joints) when a joint is removed and another mimics.|O(n + allowed pairs + members of groups +
twists).})" OF_FRAME R"(
    subtree: remove all its descendants too.)" NO_FRAME R"(
    SceneError: it has children and ``subtree`` is False, or a joint that stays mimics one that would be removed.)"))
        .def("rename_frame", EDIT(rename_frame, std::string_view, const std::string&), "frame"_a,
             "name"_a,
             text_for<Self>(
                 R"(Rename a frame; its joint and body keep their names. {O(log n)|O(1)}.)" OF_FRAME
                 R"(
    name: its new name, unique among frames.)" NO_FRAME R"(
    DuplicateNameError: the new name is taken.{|
    CapacityError: the new name is too long.})"));
    cls.def(
           "set_pose", EDIT(set_pose, std::string_view, const Pose&), "frame"_a, "pose"_a,
           text_for<Self>(
               R"(Set the pose of a frame relative to its parent. {O(depth log n)|O(depth + subtree)}.

Stamped poses of the edge stay: a query with a stamp uses them alone, one without uses this pose, until a newer
stamped pose is added. A twist edge stays as well.)" OF_EDGE R"(
    pose: parent_from_frame at joint value 0.)" NO_FRAME R"(
    SceneError: a root, or an edge inside one body, whose pose is constant.)"))
        .def("set_joint", EDIT(set_joint, std::string_view, const Joint&), "frame"_a, "joint"_a,
             text_for<Self>(R"(Set how a frame moves relative to its parent. {O(log n)|O(n)}.{|

A joint that was there keeps its value, a new one starts at 0.})" OF_EDGE R"(
    joint: the new joint, in place of the old one.

Raises:
    UnknownNameError: no such frame, or no such leader of a mimic joint.
    DuplicateNameError: the joint name is taken.
    SceneError: a root, an edge inside one body, or others mimic the joint.{|
    CapacityError: the joint's name is too long.})"));
}

template <class Self> void bind_reparent(auto& cls) {
    cls.def(
        "reparent",
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
        text_for<Self>(
            R"(Move a frame with its subtree under another parent. {O(depth log n)|O(depth + subtree)}.

With t twist edges O(t depth{ log n|}) more. What is known of motions along the old edge ends with it: its stamped
poses, and all twist edges whose path of poses, from their frame to the body that they are relative to, leads over
it. A cup on a belt that is grasped moves with the hand. Motions inside the subtree stay; set what still holds with
``set_twist``.

Args:
    frame: the frame that moves.
    parent: its new parent.
    pose: parent_from_frame in the new place, at joint value 0.
    q: without ``pose``, the frame keeps its place in the world at this configuration (n_joints,); {optional when no
        joint is on the path between frame and parent|at the present one if omitted}.
    covariance: (6, 6) of an error that comes with the move, [rho, theta] in the frame's own axes, from a source of
        its own. With ``pose`` it is the whole error of the new edge, which is exact without it. Otherwise it is
        added (slip of a grasp, placement): the new edge keeps the errors of all edges between frame and parent,
        source by source; to first order every relative pose in the scene keeps its distribution.)" NO_FRAME
            R"(
    CycleError: the parent is the frame itself or its descendant.
    ConfigurationError: a joint is on the path and q is missing, or q has the wrong length.
    SceneError: the frame is a root, or would leave its body, or give a body two paths, or join trees whose twist
        edges contradict each other.{|
    CapacityError: no room for the sources of its error; construct SceneArrays with a larger capacity ``noise``.})"));
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
        cls.def(
            "make_root", EDIT(make_root, std::string_view), "frame"_a,
            R"(Make a frame the root of its tree: the edges above it are turned round, nothing moves. O(depth log n).

Errors, stamped poses and twist edges stay what they say.)" OF_FRAME NO_FRAME R"(
    SceneError: a joint is above it.)");
}
template void bind_scene_edits(nb::class_<SceneGraph>&);
template void bind_scene_edits(nb::class_<SceneEditHandle>&);
template void bind_scene_edits(nb::class_<SceneArrays>&);

}  // namespace tmkit::bindings
