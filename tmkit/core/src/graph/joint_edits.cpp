#include "tmkit/joint_edits.hpp"

#include <algorithm>

#include "graph/scene_rules.hpp"

namespace tmkit {

static bool has_joint(const FrameRecord& frame, const Joint& joint) {
    return joint.type == frame.joint_type && joint.is_stated == frame.is_stated &&
           (!frame.joint || *frame.joint == joint);
}

static bool moves_as(const FrameRecord& frame, JointType type, const Joint* joint) {
    return type == frame.joint_type && (!joint || joint->moves_like(*frame.joint));
}

JointEdits::LeaderRanges JointEdits::leader_ranges() const {
    LeaderRanges ranges;
    const GraphView view(scene_);
    view.each_joint([&](const FrameRecord* frame) {
        const auto [rule, leader] = rules::leader_rule(view, frame);
        if (leader == frame) return;
        const auto entry = ranges.try_emplace(leader->id, rules::own_range(view, leader)).first;
        entry->second.narrow(rules::own_range(view, frame), rule.multiplier, rule.offset,
                             rules::mimics_above(view, frame));
    });
    return ranges;
}

// A joint that becomes a follower only narrows the range of its leader, which makes many of them
// cheap. After any other change all ranges are recomputed.
void JointEdits::check_limits(const Joint& joint, FrameId id, const FrameRecord* leader) {
    if (!leader && !scene_.has_followers()) return;
    const FrameRecord* frame = scene_.find(id);
    const rules::RejointedView view(GraphView(scene_), frame, id, leader, joint, joint.name);
    if (!ranges_) ranges_ = leader_ranges();
    const auto leader_rule = ranges_->find(id);
    const bool leads = leader_rule != ranges_->end();
    const bool follows = frame && frame->joint && !frame->joint->mimic.empty();
    if (!leader && !follows && !leads) return;
    const LeaderRange alone = rules::own_range(view, frame);
    const bool same_limits =
        frame && frame->joint && rules::own_range(GraphView(scene_), frame) == alone;
    if (!leader || follows || (leads && !same_limits)) {
        rules::check_leader_range(view);
        ranges_.reset();
        return;
    }
    const LeaderRange own = leads ? leader_rule->second : alone;
    const auto [rule, end] = rules::leader_rule(view, frame);
    const auto entry = ranges_->find(end->id);
    LeaderRange range = entry != ranges_->end() ? entry->second : rules::own_range(view, end);
    range.narrow(own, rule.multiplier, rule.offset, rules::mimics_above(view, frame));
    rules::require_values(view, end, range);
    ranges_->erase(id);
    (*ranges_)[end->id] = range;
}

// The joint as stored in the scene; null for a type without a value. Throws if it violates a rule.
Ref<const Joint> JointEdits::checked_joint(Joint joint, FrameId frame,
                                           std::string_view frame_name) {
    if (!is_actuated(joint.type)) return nullptr;
    if (joint.name.empty()) joint.name = frame_name;
    joint.check();
    if (const FrameId* holder = scene_.joint_names_.find(std::string_view(joint.name));
        holder && *holder != frame)
        throw duplicate("joint", joint.name);
    if (!joint.mimic.empty()) {
        const FrameId* leader = scene_.joint_names_.find(std::string_view(joint.mimic));
        rules::check_leader(GraphView(scene_), joint.name, joint.mimic, scene_.find(frame),
                            leader ? &record(*leader) : nullptr);
        check_limits(joint, frame, &record(*leader));
    } else {
        check_limits(joint, frame, nullptr);
    }
    return Ref<const Joint>(new Joint(std::move(joint)));
}

void JointEdits::store_joint(FrameId frame, const Ref<const Joint>& joint) {
    scene_.joint_names_.assign(make_ref<const Name>(joint->name), frame);
    if (joint->mimic.empty()) scene_.joints_.assign(frame, joint);
    else scene_.joints_.remove(frame);
}

void JointEdits::require_no_followers(const std::vector<FrameId>& leaving) const {
    const auto has_joint = [&](FrameId id) { return static_cast<bool>(record(id).joint); };
    if (!scene_.has_followers() || std::none_of(leaving.begin(), leaving.end(), has_joint)) return;
    scene_.joint_names_.for_each([&](const Ref<const Name>& follower, FrameId id) {
        const std::string& leader = record(id).joint->mimic;
        if (leader.empty() || std::binary_search(leaving.begin(), leaving.end(), id)) return;
        if (std::binary_search(leaving.begin(), leaving.end(), scene_.joint_frame(leader)))
            throw errors::is_followed(leader, follower->text);
    });
}

void JointEdits::drop_joint(const FrameRecord& leaving) {
    if (!leaving.joint) return;
    ranges_.reset();
    scene_.joint_names_.remove(std::string_view(leaving.joint->name));
    scene_.joints_.remove(leaving.id);
}

void JointEdits::set_joint(std::string_view frame, Joint joint) {
    const FrameRecord& old = record(frame);
    if (old.parent == no_frame) throw errors::root_without(frame, "joint");
    if (joint.type != JointType::fixed && record(old.parent).body == old.body)
        throw errors::joint_inside_body(frame);
    if (joint.name.empty()) joint.name = old.joint ? old.joint->name : old.name->text;
    joint.check();
    // Frames of one body do not move.
    if (record(old.parent).body == old.body) joint.is_stated = true;
    if (has_joint(old, joint)) return;
    const bool leaves = old.joint && (!is_actuated(joint.type) || joint.name != old.joint->name);
    if (leaves) require_no_followers({old.id});
    const FrameId id = old.id;
    const JointType type = joint.type;
    const bool is_stated = joint.is_stated;
    const Ref<const Joint> checked = checked_joint(std::move(joint), id, old.name->text);
    const bool same_motion = moves_as(old, type, checked.get());
    if (leaves) drop_joint(old);
    FrameRecord& changed = own(id);
    changed.joint_type = type;
    changed.is_stated = is_stated;
    changed.joint = checked;
    if (checked) store_joint(id, checked);
    if (!same_motion) note_change(id, true);
}

}  // namespace tmkit
