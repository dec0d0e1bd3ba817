// Joints of the arrays: their rules, and which entry of the configuration moves which frame.
#include "scene_arrays_view.hpp"

namespace tmkit {
namespace {

// The joint's numbers, checked; its texts are left behind, so that nothing is allocated.
Joint checked_numbers(const Joint& joint, std::string_view name) {
    Joint numbers;
    numbers.type = joint.type;
    numbers.axis = joint.axis;
    numbers.numbers() = joint.numbers();
    try {
        numbers.check();
    } catch (const Error&) {  // say it again, with the name
        numbers.name = name;
        numbers.check();
    }
    return numbers;
}

}  // namespace

SceneArrays::JointPlan SceneArrays::plan_joint(const Joint& joint, std::string_view name, Slot slot) const {
    JointPlan plan;
    plan.type = joint.type;
    if (!is_actuated(joint.type)) return plan;
    const Joint numbers = checked_numbers(joint, name);
    plan.axis = numbers.axis;
    plan.numbers = numbers.numbers();
    plan.name = name;
    if (const Slot holder = joint_names_.find(name); holder != none && holder != slot) throw duplicate("joint", name);
    if (!joint.mimic.empty()) {
        plan.leader = joint_names_.find(joint.mimic);
        rules::check_leader(View(*this), name, joint.mimic, slot, plan.leader);
    }
    require_fit(name);
    return plan;
}

bool SceneArrays::same_joint(Slot slot, const Joint& numbers, std::string_view name, std::string_view leader) const {
    if (numbers.type != type_[slot]) return false;
    if (!is_actuated(numbers.type)) return true;
    return numbers.axis == axis_[slot] && numbers.numbers() == numbers_[slot] && joint_names_.view(slot) == name &&
           (leader_[slot] == none ? leader.empty() : joint_names_.view(leader_[slot]) == leader);
}

void SceneArrays::set_joint(std::string_view frame, const Joint& joint) {
    const Writer writer(lock_);
    const Slot slot = require_frame(frame);
    if (parent_[slot] == none) throw refusals::root_without(frame, "joint");
    if (joint.type != JointType::fixed && !is_top(slot)) throw refusals::joint_inside_body(frame);
    const bool had_joint = is_actuated(type_[slot]);
    const std::string_view old_name = had_joint ? joint_names_.view(slot) : frame_names_.view(slot);
    const std::string_view name = joint.name.empty() ? old_name : std::string_view(joint.name);
    if (same_joint(slot, checked_numbers(joint, name), name, joint.mimic)) return;
    const bool leaves = had_joint && (!is_actuated(joint.type) || name != old_name);
    if (leaves) {
        marks_.forget();
        marks_.mark(slot);
        require_no_followers();
    }
    const JointPlan plan = plan_joint(joint, name, slot);

    const Section section(lock_);
    write_joint(slot, plan);
    if (had_joint || is_actuated(plan.type)) renew_entries();
    refresh_after_joint(slot);
}

void SceneArrays::write_joint(Slot slot, const JointPlan& plan) {
    const bool keeps_name = is_actuated(type_[slot]) && is_actuated(plan.type) && joint_names_.view(slot) == plan.name;
    if (!keeps_name) drop_joint(slot);
    else followers_ -= leader_[slot] != none;
    type_.store(slot, plan.type);
    leader_[slot] = plan.leader;
    followers_ += plan.leader != none;
    if (!is_actuated(plan.type)) return;
    if (!keeps_name) joint_names_.insert(slot, plan.name);
    axis_.store(slot, plan.axis);
    numbers_[slot] = plan.numbers;
}

void SceneArrays::drop_joint(Slot slot) {
    if (!is_actuated(type_[slot])) return;
    joint_names_.erase(slot);
    followers_ -= leader_[slot] != none;
    leader_[slot] = none;
    type_.store(slot, JointType::fixed);
}

void SceneArrays::renew_entries() {
    const std::int32_t count = counts_[frame_count];
    const auto leads = [this](Slot slot) { return is_actuated(type_[slot]) && leader_[slot] == none; };
    std::int32_t entries = 0;
    for (std::int32_t i = 0; i < count; ++i) {  // the values by their new entries, as long as the old ones are there
        const Slot slot = sequence_[i];
        if (!leads(slot)) continue;
        const std::int32_t old = entry_[slot];
        const bool had_one = old != none && entries_[old] == slot;
        values_[entries++] = had_one ? q_[old] : 0.0;
    }
    entries = 0;
    for (std::int32_t i = 0; i < count; ++i) {
        const Slot slot = sequence_[i];
        if (leads(slot)) {
            q_.store(entries, values_[entries]);
            entries_.store(entries, slot);
            entry_.store(slot, entries++);
        } else {
            entry_.store(slot, none);
        }
        multiplier_.store(slot, 1.0);
        offset_.store(slot, 0.0);
    }
    counts_.store(entry_count, entries);
    if (followers_ == 0) return;
    for (std::int32_t i = 0; i < count; ++i) {
        const Slot slot = sequence_[i];
        const auto [rule, leader] = rules::followed(View(*this), slot);
        if (leader == slot) continue;
        entry_.store(slot, entry_[leader]);
        multiplier_.store(slot, rule.multiplier);
        offset_.store(slot, rule.offset);
    }
}

// Where somebody mimics, a change of one joint may move frames anywhere.
void SceneArrays::refresh_after_joint(Slot slot) {
    if (followers_ == 0) return refresh_subtree(slot);
    for (std::int32_t i = 0; i < counts_[frame_count]; ++i) refresh(order_[i]);
}

}  // namespace tmkit
