#include "tmkit/scene_edit.hpp"

namespace tmkit {

template <class Edit>
SceneGraph SceneGraph::edited(Edit&& edit) const {
    SceneEdit one(*this);
    edit(one);
    return std::move(one).take();
}

SceneGraph SceneGraph::from_frames(const std::vector<FrameSpecification>& frames) {
    return SceneGraph().edited([&](SceneEdit& edit) { edit.add_frames(frames); });
}

SceneGraph SceneGraph::add_root(std::string_view name) const {
    return edited([&](SceneEdit& edit) { edit.add_root(name); });
}

SceneGraph SceneGraph::add_frame(const FrameSpecification& specification) const {
    return edited([&](SceneEdit& edit) { edit.add_frame(specification); });
}

SceneGraph SceneGraph::remove_frame(std::string_view name, bool with_subtree) const {
    return edited([&](SceneEdit& edit) { edit.remove_frame(name, with_subtree); });
}

SceneGraph SceneGraph::rename_frame(std::string_view name, std::string_view new_name) const {
    return edited([&](SceneEdit& edit) { edit.rename_frame(name, new_name); });
}

SceneGraph SceneGraph::reparent(std::string_view frame, std::string_view parent, const Pose& parent_from_frame) const {
    return edited([&](SceneEdit& edit) { edit.reparent(frame, parent, parent_from_frame); });
}

SceneGraph SceneGraph::reparent_keeping_pose(std::string_view frame, std::string_view parent, const double* q) const {
    return edited([&](SceneEdit& edit) { edit.reparent_keeping_pose(frame, parent, q); });
}

SceneGraph SceneGraph::set_pose(std::string_view frame, const Pose& parent_from_frame) const {
    return edited([&](SceneEdit& edit) { edit.set_pose(frame, parent_from_frame); });
}

SceneGraph SceneGraph::set_joint(std::string_view frame, Joint joint) const {
    return edited([&](SceneEdit& edit) { edit.set_joint(frame, std::move(joint)); });
}

SceneGraph SceneGraph::set_classes(std::string_view frame, std::vector<std::string> classes) const {
    return edited([&](SceneEdit& edit) { edit.set_classes(frame, std::move(classes)); });
}

SceneGraph SceneGraph::set_shapes(std::string_view frame, std::vector<AttachedShape> shapes) const {
    return edited([&](SceneEdit& edit) { edit.set_shapes(frame, std::move(shapes)); });
}

SceneGraph SceneGraph::set_attributes(std::string_view frame, Attributes attributes) const {
    return edited([&](SceneEdit& edit) { edit.set_attributes(frame, std::move(attributes)); });
}

SceneGraph SceneGraph::set_inertia(std::string_view frame, const std::optional<Inertia>& inertia) const {
    return edited([&](SceneEdit& edit) { edit.set_inertia(frame, inertia); });
}

SceneGraph SceneGraph::set_group(const GroupSpecification& group) const {
    return edited([&](SceneEdit& edit) { edit.set_group(group); });
}

SceneGraph SceneGraph::allow_collision(std::string_view a, std::string_view b, std::string_view reason) const {
    return edited([&](SceneEdit& edit) { edit.allow_collision(a, b, reason); });
}

SceneGraph SceneGraph::forbid_collision(std::string_view a, std::string_view b) const {
    return edited([&](SceneEdit& edit) { edit.forbid_collision(a, b); });
}

}  // namespace tmkit
