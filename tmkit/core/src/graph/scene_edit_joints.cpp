#include <algorithm>

#include "scene_rules.hpp"
#include "tmkit/scene_edit.hpp"

namespace tmkit {
namespace {

bool has_joint(const FrameRecord& frame, const Joint& joint) {
    return joint.type == frame.joint_type && (!frame.joint || frame.joint->same_content(joint));
}

bool moves_as(const FrameRecord& frame, JointType type, const Joint* joint) {
    return type == frame.joint_type && (!joint || joint->moves_like(*frame.joint));
}

}  // namespace

// --- joints ----------------------------------------------------------------------------------------------------------

// The joint as it will be in the scene; null for a type without a value. Throws when it may not be there.
Ref<const Joint> SceneEdit::checked_joint(Joint joint, FrameId frame, std::string_view frame_name) const {
    if (!is_actuated(joint.type)) return nullptr;
    if (joint.name.empty()) joint.name = frame_name;
    joint.check();
    if (const FrameId* holder = scene_.joint_names_.find(std::string_view(joint.name)); holder && *holder != frame)
        throw duplicate("joint", joint.name);
    if (!joint.mimic.empty()) {
        const FrameId* leader = scene_.joint_names_.find(std::string_view(joint.mimic));
        rules::check_leader(GraphView(scene_), joint.name, joint.mimic, scene_.find(frame),
                            leader ? &record(*leader) : nullptr);
    }
    return Ref<const Joint>(new Joint(std::move(joint)));
}

void SceneEdit::put_joint(FrameId frame, const Ref<const Joint>& joint) {
    scene_.joint_names_.assign(make_ref<const Name>(joint->name), frame);
    if (joint->mimic.empty()) scene_.joints_.assign(frame, joint);
    else scene_.joints_.remove(frame);
}

void SceneEdit::require_no_followers(const std::vector<FrameId>& leaving) const {
    const auto has_joint = [&](FrameId id) { return static_cast<bool>(record(id).joint); };
    const bool any_follows = scene_.joint_names_.size() > scene_.joints_.size();
    if (!any_follows || std::none_of(leaving.begin(), leaving.end(), has_joint)) return;
    scene_.joint_names_.for_each([&](const Ref<const Name>& follower, FrameId id) {
        const std::string& leader = record(id).joint->mimic;
        if (leader.empty() || std::binary_search(leaving.begin(), leaving.end(), id)) return;
        if (std::binary_search(leaving.begin(), leaving.end(), scene_.joint_frame(leader)))
            throw refusals::is_followed(leader, follower->text);
    });
}

void SceneEdit::drop_joint(const FrameRecord& leaving) {
    if (!leaving.joint) return;
    scene_.joint_names_.remove(std::string_view(leaving.joint->name));
    scene_.joints_.remove(leaving.id);
}

void SceneEdit::set_joint(std::string_view frame, Joint joint) {
    const FrameRecord& old = record(frame);
    if (old.parent == no_frame) throw refusals::root_without(frame, "joint");
    if (joint.type != JointType::fixed && record(old.parent).body == old.body) throw refusals::joint_inside_body(frame);
    if (joint.name.empty()) joint.name = old.joint ? old.joint->name : old.name->text;
    joint.check();
    if (has_joint(old, joint)) return;
    const bool leaves = old.joint && (!is_actuated(joint.type) || joint.name != old.joint->name);
    if (leaves) require_no_followers({old.id});
    const FrameId id = old.id;
    const JointType type = joint.type;
    const Ref<const Joint> checked = checked_joint(std::move(joint), id, old.name->text);
    const bool same_motion = moves_as(old, type, checked.get());
    if (leaves) drop_joint(old);
    FrameRecord& changed = own(id);
    changed.joint_type = type;
    changed.joint = checked;
    if (checked) put_joint(id, checked);
    if (!same_motion) note_change(id, true);
}

void SceneEdit::set_inertia(std::string_view frame, const std::optional<Inertia>& inertia) {
    const FrameRecord& on = record(frame);
    if (inertia) inertia->check();
    const BodyRecord& old = body(on.body);
    const FrameId inertia_frame = inertia ? on.id : no_frame;
    const Inertia value = inertia.value_or(Inertia{});
    if (old.inertia_frame == inertia_frame && old.inertia == value) return;
    auto changed = Ref<BodyRecord>(new BodyRecord(old));
    changed->inertia_frame = inertia_frame;
    changed->inertia = value;
    scene_.bodies_.assign(on.body, Ref<const BodyRecord>(changed));
}

}  // namespace tmkit
