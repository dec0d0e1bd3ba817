// Scenes whose edits return new versions, as in Python: the core has SceneEdit alone.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tmkit/scene_edit.hpp"

namespace tmkit::test {

class EditableScene : public SceneGraph {
public:
    EditableScene() = default;
    // Also for results of functions of the core.
    EditableScene(SceneGraph scene) : SceneGraph(std::move(scene)) {}

    static EditableScene from_frames(const std::vector<FrameSpecification>& frames) {
        return EditableScene().edited([&](SceneEdit& edit) { edit.add_frames(frames); });
    }
    EditableScene add_root(std::string_view name) const {
        return edited([&](SceneEdit& edit) { edit.add_root(name); });
    }
    EditableScene add_frame(const FrameSpecification& specification) const {
        return edited([&](SceneEdit& edit) { edit.add_frame(specification); });
    }
    EditableScene remove_frame(std::string_view name, bool with_subtree) const {
        return edited([&](SceneEdit& edit) { edit.remove_frame(name, with_subtree); });
    }
    EditableScene rename_frame(std::string_view name, std::string_view new_name) const {
        return edited([&](SceneEdit& edit) { edit.rename_frame(name, new_name); });
    }
    EditableScene reparent(std::string_view frame, std::string_view parent,
                           const Pose& parent_from_frame) const {
        return edited([&](SceneEdit& edit) { edit.reparent(frame, parent, parent_from_frame); });
    }
    EditableScene reparent_keeping_pose(std::string_view frame, std::string_view parent,
                                        const double* q) const {
        return edited([&](SceneEdit& edit) { edit.reparent_keeping_pose(frame, parent, q); });
    }
    EditableScene set_pose(std::string_view frame, const Pose& parent_from_frame) const {
        return edited([&](SceneEdit& edit) { edit.set_pose(frame, parent_from_frame); });
    }
    EditableScene set_joint(std::string_view frame, Joint joint) const {
        return edited([&](SceneEdit& edit) { edit.set_joint(frame, std::move(joint)); });
    }
    EditableScene set_classes(std::string_view frame, std::vector<std::string> classes) const {
        return edited([&](SceneEdit& edit) { edit.set_classes(frame, std::move(classes)); });
    }
    EditableScene set_shapes(std::string_view frame, std::vector<AttachedShape> shapes) const {
        return edited([&](SceneEdit& edit) { edit.set_shapes(frame, std::move(shapes)); });
    }
    EditableScene set_attributes(std::string_view frame, Attributes attributes) const {
        return edited([&](SceneEdit& edit) { edit.set_attributes(frame, std::move(attributes)); });
    }
    EditableScene set_inertia(std::string_view frame, const std::optional<Inertia>& inertia) const {
        return edited([&](SceneEdit& edit) { edit.set_inertia(frame, inertia); });
    }
    EditableScene set_group(const GroupSpecification& group) const {
        return edited([&](SceneEdit& edit) { edit.set_group(group); });
    }
    EditableScene allow_collision(std::string_view a, std::string_view b,
                                  std::string_view reason) const {
        return edited([&](SceneEdit& edit) { edit.allow_collision(a, b, reason); });
    }
    EditableScene forbid_collision(std::string_view a, std::string_view b) const {
        return edited([&](SceneEdit& edit) { edit.forbid_collision(a, b); });
    }

private:
    template <class Edit> EditableScene edited(Edit&& edit) const {
        SceneEdit one(*this);
        edit(one);
        return std::move(one).take();
    }
};

}  // namespace tmkit::test
