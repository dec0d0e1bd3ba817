// The edits of SceneArrays: those of scenes, and two that take less.
#include "edits.hpp"
#include "tmkit/scene_arrays.hpp"

namespace tmkit::bindings {

void bind_arrays_edits(nb::class_<SceneArrays>& cls) {
    bind_scene_edits(cls);
    bind_content_edits(cls);
    bind_noise_edits(cls);
    cls.def("add_frame",
            [](SceneArrays& self, std::string_view name, std::string_view parent, const Pose& pose, const Joint& joint,
               const OptionalName& body, const std::vector<std::string>& classes,
               const std::vector<ShapeArgument>& shapes) {
        require_known_body(self, name, body);
        const std::vector<AttachedShape> attached = attached_shapes(shapes);
        self.add_frame({name, parent, pose, &joint, body.value_or(std::string_view()), attached, classes});
    },
            "name"_a, "parent"_a, nb::kw_only(), "pose"_a = Pose{}, "joint"_a = Joint{}, "body"_a = nb::none(),
            "classes"_a = nb::tuple(), "shapes"_a = nb::tuple(),
            R"(Add a frame under a parent, as ``SceneGraph.add_frame``. O(depth), with a joint O(n).

Args:
    name: unique among frames.
    parent: name of the parent frame.
    pose: parent_from_frame, at joint value 0.
    joint: how the frame moves relative to the parent; fixed if omitted.
    body: an existing body that the frame is on; by default a new one of the frame's own name.
    classes: what the frame is, e.g. ``movable`` or ``surface``; none if omitted.
    shapes: the shapes on the frame; a ``Shape`` alone is put at its origin. None if omitted.

Raises:
    UnknownNameError, DuplicateNameError, SceneError: as ``SceneGraph.add_frame``.
    CapacityError: no room for another frame, body or shape, or a name that is too long.)");
    cls.def("reparent",
            [](SceneArrays& self, std::string_view frame, std::string_view parent, const Pose* pose,
               const OptionalArray& q) {
        if (pose && q) throw Error(ErrorKind::scene, "give either pose or q to reparent, not both");
        if (pose) return self.reparent(frame, parent, *pose);
        self.reparent_keeping_pose(frame, parent, GivenConfiguration(q, self).configuration);
    },
            "frame"_a, "parent"_a, nb::kw_only(), "pose"_a.none() = nb::none(), "q"_a = nb::none(),
            R"(Move a frame with its subtree under another parent. O(depth + subtree).

Args:
    frame: the frame that moves.
    parent: its new parent.
    pose: parent_from_frame in the new place, at joint value 0.
    q: without ``pose``, the frame keeps its place in the world at this configuration (n_joints,); at the present
        one if omitted.

Raises:
    UnknownNameError, CycleError, ConfigurationError, SceneError: as ``SceneGraph.reparent``.)");
}

}  // namespace tmkit::bindings
