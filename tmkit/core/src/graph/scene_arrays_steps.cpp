// Steps of edits: links, order, poses, bodies and pools. Each step keeps its columns consistent
// among themselves; the rules were checked before.
#include "scene_arrays_view.hpp"

namespace tmkit {

// --- subtrees

// The frame after `current_slot` in the subtree of `top`, parents first; none after the last.
SceneArrays::Slot SceneArrays::next_in_subtree(Slot current_slot, Slot top) const {
    if (const Slot child = children_.first(current_slot); child != none) return child;
    for (; current_slot != top; current_slot = parent_[current_slot])
        if (const Slot next = children_.next(current_slot); next != none) return next;
    return none;
}

std::int32_t SceneArrays::mark_subtree(Slot top) const {
    marks_.forget();
    std::int32_t count = 0;
    for (Slot current_slot = top; current_slot != none;
         current_slot = next_in_subtree(current_slot, top)) {
        marks_.mark(current_slot);
        gathered_[count++] = current_slot;
    }
    return count;
}

// --- order and poses

// `moving` is attached to `parent`. If that is later in the order, the frames between the two are
// rewritten: first the other frames, the parent last, then the subtree of the moved frame, each in
// its old order.
void SceneArrays::restore_order(Slot moving, Slot parent) {
    const std::int32_t begin = position_[moving], end = position_[parent] + 1;
    if (begin >= end) return;
    marks_.forget();
    marks_.mark(moving);
    gathered_[0] = moving;
    std::int32_t moved = 1, current_slot = begin;
    const auto put = [this, &current_slot](Slot slot) {
        order_[current_slot] = slot;
        position_[slot] = current_slot++;
    };
    for (std::int32_t i = begin + 1; i < end; ++i) {
        const Slot slot = order_[i];
        const Slot above = parent_[slot];
        if (above != none && marks_.has(above)) {
            marks_.mark(slot);
            gathered_[moved++] = slot;
        } else {
            put(slot);
        }
    }
    for (std::int32_t i = 0; i < moved; ++i) put(gathered_[i]);
}

void SceneArrays::refresh(Slot slot) {
    const Slot parent = parent_[slot];
    moves_[slot] = entry_[slot] != none || (parent != none && moves_[parent]);
    const auto value_of = [this](std::int32_t entry) { return q_[entry]; };
    root_pose_.store(slot, pose_from_parent(slot, value_of));
}

void SceneArrays::refresh_subtree(Slot top) {
    for (Slot current_slot = top; current_slot != none;
         current_slot = next_in_subtree(current_slot, top))
        refresh(current_slot);
}

// --- bodies

SceneArrays::Slot SceneArrays::take_body(std::string_view name) {
    const Slot body = free_bodies_.take();
    body_names_.insert(body, name);
    return body;
}

void SceneArrays::leave_body(Slot slot) {
    const Slot body = body_[slot];
    const bool tops = is_top(slot), carries_inertia = inertia_frame_[body] == slot;
    if (tops) tops_.unlink(body, slot);
    // The inertia remains with the body: in the axes of the frame above.
    if (carries_inertia && !tops) {
        inertia_[body] = inertia_[body].in_axes_of(Pose{} * pose_[slot]);
        inertia_frame_[body] = parent_[slot];
        // Frames in other trees have no known pose, so they cannot carry it.
    } else if (carries_inertia) {
        inertia_[body] = Inertia{};
        inertia_frame_[body] = none;
    }
    if (tops_.first(body) != none) return;
    body_names_.erase(body);
    free_bodies_.push_back(body);
}

// --- removal and pools

// Remove the marked frames, collected parents first, from all columns but the pool of shapes.
void SceneArrays::remove_marked(std::int32_t leaving) {
    bool had_joints = false;
    const auto goes = [this](Slot slot) { return marks_.has(slot); };
    drop_twists(goes);
    for (std::int32_t i = leaving; i-- > 0;) {  // children before parents
        const Slot slot = gathered_[i];
        had_joints |= is_actuated(type_[slot]);
        drop_joint(slot);
        drop_stamps(slot, none);
        leave_body(slot);
        frame_names_.erase(slot);
    }
    const std::int32_t count = counts_[frame_count];
    std::int32_t ordered = 0, in_sequence = 0;
    for (std::int32_t i = 0; i < count; ++i) {
        if (const Slot slot = order_[i]; !goes(slot)) {
            order_[ordered] = slot;
            position_[slot] = ordered++;
        }
        if (const Slot slot = sequence_[i]; !goes(slot)) sequence_.store(in_sequence++, slot);
    }
    counts_.store(frame_count, in_sequence);
    for (Slot pair = pair_count_; pair-- > 0;) {
        const auto& [a, b] = pair_frames_[pair];
        if (goes(a) || goes(b)) drop_pair(pair);
    }
    for (auto* lists : {&group_frames_, &group_parents_})
        for (Slot& first : *lists) members_.drop_if(first, goes);
    for (std::int32_t i = leaving; i-- > 0;) {
        const Slot slot = gathered_[i];
        parent_.store(slot, none);
        entry_.store(slot, none);
        pose_.store(slot, Pose{});
        id_.store(slot, no_frame);
        children_.clear(slot);
        free_frames_.push_back(slot);
    }
    if (had_joints) renew_entries();
}

// The last pair moves to the index of the removed one.
void SceneArrays::drop_pair(Slot pair) {
    const Slot last = --pair_count_;
    pairs_.erase(pair);
    if (pair == last) return;
    const std::array<FrameId, 2> ids = pair_ids_[last];
    pairs_.erase(last);
    pair_ids_[pair] = ids;
    pair_frames_[pair] = pair_frames_[last];
    pairs_.insert(pair, pair_key(ids));
    reasons_.set(pair, reasons_.view(last));
}

// --- joints: their rules, and the frames of the configuration entries

// The joint's numbers, checked, without its texts, which avoids allocation.
static Joint checked_numbers(const Joint& joint, std::string_view name) {
    Joint numbers;
    numbers.type = joint.type;
    numbers.is_stated = joint.is_stated;
    numbers.axis = joint.axis;
    numbers.numbers() = joint.numbers();
    try {
        numbers.check();
    } catch (const Error&) {  // throw again, with the name
        numbers.name = name;
        numbers.check();
    }
    return numbers;
}

SceneArrays::JointPlan SceneArrays::plan_joint(const Joint& joint, std::string_view name,
                                               Slot slot) const {
    JointPlan plan;
    plan.type = joint.type;
    plan.is_stated = joint.is_stated;
    if (!is_actuated(joint.type)) return plan;
    const Joint numbers = checked_numbers(joint, name);
    plan.axis = numbers.axis;
    plan.numbers = numbers.numbers();
    plan.name = name;
    if (const Slot holder = joint_names_.find(name); holder != none && holder != slot)
        throw duplicate("joint", name);
    if (!joint.mimic.empty()) {
        plan.leader = joint_names_.find(joint.mimic);
        rules::check_leader(View(*this), name, joint.mimic, slot, plan.leader);
    }
    if (followers_ > 0 || plan.leader != none)
        rules::check_leader_range(
            rules::RejointedView(View(*this), slot, no_frame, plan.leader, numbers, name));
    require_fit(name);
    return plan;
}

bool SceneArrays::same_joint(Slot slot, const Joint& numbers, std::string_view name,
                             std::string_view leader) const {
    if (numbers.type != type_[slot] || numbers.is_stated != (stated_[slot] != 0)) return false;
    if (!is_actuated(numbers.type)) return true;
    return numbers.axis == axis_[slot] && numbers.numbers() == numbers_[slot] &&
           joint_names_.view(slot) == name &&
           (leader_[slot] == none ? leader.empty() : joint_names_.view(leader_[slot]) == leader);
}

void SceneArrays::set_joint(std::string_view frame, const Joint& joint) {
    const Writer writer(lock_);
    const Slot slot = require_frame(frame);
    if (parent_[slot] == none) throw errors::root_without(frame, "joint");
    if (joint.type != JointType::fixed && !is_top(slot)) throw errors::joint_inside_body(frame);
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
    const bool keeps_name =
        is_actuated(type_[slot]) && is_actuated(plan.type) && joint_names_.view(slot) == plan.name;
    if (!keeps_name) drop_joint(slot);
    else followers_ -= leader_[slot] != none;
    type_.store(slot, plan.type);
    // Frames of one body do not move.
    stated_.store(slot, plan.is_stated || parent_[slot] == none || !is_top(slot));
    leader_[slot] = plan.leader;
    followers_ += plan.leader != none;
    if (!is_actuated(plan.type)) return;
    if (!keeps_name) joint_names_.insert(slot, plan.name);
    axis_.store(slot, plan.axis);
    numbers_[slot] = plan.numbers;
}

void SceneArrays::state_motion(Slot slot) {
    const Section section(lock_);
    stated_.store(slot, 1);
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
    const auto leads = [this](Slot slot) {
        return is_actuated(type_[slot]) && leader_[slot] == none;
    };
    std::int32_t entries = 0;
    for (std::int32_t i = 0; i < count;
         ++i) {  // the values by their new entries, before the old ones change
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
        const auto [rule, leader] = rules::leader_rule(View(*this), slot);
        if (leader == slot) continue;
        entry_.store(slot, entry_[leader]);
        multiplier_.store(slot, rule.multiplier);
        offset_.store(slot, rule.offset);
    }
}

// With mimic joints, a change of one joint may move any frame.
void SceneArrays::refresh_after_joint(Slot slot) {
    if (followers_ == 0) return refresh_subtree(slot);
    for (std::int32_t i = 0; i < counts_[frame_count]; ++i) refresh(order_[i]);
}

}  // namespace tmkit
