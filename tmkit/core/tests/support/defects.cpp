// Invariants of scenes and arrays for tests (`defects`, in Python `_defects`): compiled with the
// tests, and into the Python module except for wheels (TMKIT_DEFECTS).
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/valid_map.hpp"
#include "tmkit/scene_arrays.hpp"
#include "tmkit/scene_graph.hpp"

namespace tmkit {

// --- scenes

namespace {

bool same_content(const Layout& a, const Layout& b) {
    return a.ids == b.ids && a.body == b.body && a.type == b.type && a.axis == b.axis &&
           a.q_index == b.q_index && a.multiplier == b.multiplier && a.offset == b.offset &&
           a.joint_frame == b.joint_frame && a.parent == b.parent && a.pose == b.pose &&
           a.root == b.root && a.tree() == b.tree() && a.moving == b.moving && a.slot == b.slot &&
           a.still == b.still;
}

}  // namespace

// Compare the data of frames and bodies with the other maps; return the first entry that only one
// side has.
std::string SceneGraph::defects_of_maps() const {
    std::set<std::string> said, mapped;
    const auto note = [](std::set<std::string>& side, const char* pattern, const auto&... parts) {
        side.insert(format_text(pattern, parts...));
    };
    const auto address = [](const auto& ref) {
        return reinterpret_cast<std::uintptr_t>(ref.get());
    };
    frames_.for_each([&](FrameId id, const Ref<const FrameRecord>& frame) {
        const bool is_root = frame->parent == no_frame;
        const FrameRecord* parent = is_root ? nullptr : find(frame->parent);
        if (frame->id != id || id >= next_frame_ || (!is_root && !parent))
            note(said, "frame {} is wrong", id);
        if (frame->parent == no_frame && frame->noise) note(said, "root {} has noise", id);
        note(said, "frame {} {}", frame->name->text, id);
        if (!parent || parent->body != frame->body) note(said, "top {} {}", frame->body, id);
        if (frame->noise) note(said, "noise {} {}", id, address(frame->noise));
        if (frame->details && frame->details->twist)
            note(said, "twist {} {}", id, frame->details->twist->reference);
        const Ref<const Joint>& joint = frame->joint;
        if (is_actuated(frame->joint_type) != static_cast<bool>(joint))
            note(said, "joint of {} is wrong", id);
        if (!joint) return;
        note(said, "joint {} {}", joint->name, id);
        if (joint->mimic.empty()) note(said, "entry {} {}", id, address(joint));
        else if (!joint_names_.find(std::string_view(joint->mimic)))
            note(said, "leader of {} is gone", joint->name);
    });
    names_.for_each([&](const Ref<const Name>& name, FrameId id) {
        note(mapped, "frame {} {}", name->text, id);
    });
    noises_.for_each([&](FrameId id, const Ref<const EdgeNoise>& n) {
        note(mapped, "noise {} {}", id, address(n));
    });
    twists_.for_each(
        [&](FrameId id, BodyId other) { note(mapped, "twist {} {}", id, body(other).name->text); });
    joint_names_.for_each([&](const Ref<const Name>& name, FrameId id) {
        note(mapped, "joint {} {}", name->text, id);
    });
    joints_.for_each([&](FrameId id, const Ref<const Joint>& j) {
        note(mapped, "entry {} {}", id, address(j));
    });
    body_names_.for_each([&](const Ref<const Name>& name, BodyId id) {
        note(mapped, "body {} {}", name->text, id);
    });
    bodies_.for_each([&](BodyId id, const Ref<const BodyRecord>& body) {
        note(said, "body {} {}", body->name->text, id);
        for (const FrameId top : body->tops) note(mapped, "top {} {}", id, top);
        const FrameRecord* carrier =
            body->inertia_frame == no_frame ? nullptr : find(body->inertia_frame);
        if (body->inertia_frame != no_frame && (!carrier || carrier->body != id))
            note(said, "inertia of {}", id);
    });
    allowed_.for_each([&](const Pair& pair, const Ref<const Name>&) {
        note(mapped, "pair {} {}", pair.first, pair.second);
        if (pair.first != pair.second && find(pair.first))
            note(said, "pair {} {}", pair.second, pair.first);
    });
    groups_.for_each([&](const Ref<const Name>& name, const Ref<const GroupRecord>& group) {
        const auto has_group = [this](const Ref<const Name>& nested) {
            return groups_.find(nested) != nullptr;
        };
        const auto has_frame = [this](FrameId id) { return find(id) != nullptr; };
        if (!std::ranges::all_of(group->frames, has_frame) ||
            !std::ranges::all_of(group->groups, has_group) ||
            !std::ranges::all_of(group->parents, has_frame))
            note(said, "a member of group {} is gone", name->text);
    });
    std::vector<std::string> wrong;
    std::ranges::set_symmetric_difference(said, mapped, std::back_inserter(wrong));
    return wrong.empty() ? "" : "out of step: " + wrong.front();
}

std::string SceneGraph::defects() const {
    const auto valid = [](const auto&... maps) { return (test::is_valid(maps) && ...); };
    if (!valid(frames_, names_, joints_, joint_names_, bodies_, body_names_, allowed_, groups_,
               twists_, noises_))
        return "a map is out of order or balance";
    if (frames_.size() != names_.size() || bodies_.size() != body_names_.size())
        return "names and records differ in number";
    if (const std::string defect = defects_of_maps(); !defect.empty()) return defect;
    const bool has_layout = layout_before_ || layout_.is_made();
    return has_layout && !tmkit::same_content(*fresh_layout(), layout())
               ? "the layout differs from one made afresh"
               : "";
}

// --- arrays

// Of one frame: its name, joint, pose and body.
std::string SceneArrays::defects_of_frame(Slot slot) const {
    const std::string name(frame_names_.view(slot));
    const bool moves = is_actuated(type_[slot]);
    if (frame_names_.find(name) != slot) return "name table misses " + name;
    if (moves != (entry_[slot] != none)) return "entry of " + name + " is wrong";
    if (moves && joint_names_.find(joint_names_.view(slot)) != slot)
        return "joint table misses " + name;
    if (leader_[slot] != none && !is_actuated(type_[leader_[slot]]))
        return "leader of " + name + " is gone";
    const Pose local = edge(slot, std::nullopt);
    if (root_pose_[slot] != (parent_[slot] == none ? local : root_pose_[parent_[slot]] * local))
        return "pose of " + name + " is old";
    bool listed = false;
    for (Slot top = tops_.first(body_[slot]); top != none; top = tops_.next(top))
        listed |= top == slot;
    return listed != is_top(slot) ? "body of " + name + " misses a topmost frame" : "";
}

std::string SceneArrays::defects_of_order() const {
    std::vector<char> seen(capacities_.frames, 0);
    for (std::int32_t i = 0; i < counts_[frame_count]; ++i) {
        const Slot slot = order_[i];
        const std::string name(frame_names_.view(slot));
        if (std::exchange(seen[slot], 1)) return name + " is twice in the order";
        if (position_[slot] != i) return "position of " + name + " is wrong";
        if (parent_[slot] != none && !seen[parent_[slot]])
            return name + " stands before its parent";
        if (std::string defect = defects_of_frame(slot); !defect.empty()) return defect;
    }
    FrameId before = no_frame;
    for (std::int32_t i = 0; i < counts_[frame_count]; before = id_[sequence_[i++]])
        if (!seen[sequence_[i]] || id_[sequence_[i]] <= before)
            return "the sequence is out of order";
    return {};
}

std::string SceneArrays::defects_of_children() const {
    const std::int32_t count = counts_[frame_count];
    for (std::int32_t i = 0; i < count; ++i) {
        std::size_t children = 0;
        const Slot slot = order_[i];
        for (Slot child = children_.first(slot); child != none;
             child = children_.next(child), ++children)
            if (parent_[child] != slot) return "a child has another parent";
        for (std::int32_t j = 0; j < count; ++j) children -= parent_[sequence_[j]] == slot;
        if (children != 0) return "a frame has lost a child";
    }
    return free_frames_.size() + static_cast<std::size_t>(count) != capacities_.frames
               ? "a slot is lost"
               : "";
}

std::string SceneArrays::defects() const {
    const Writer writer(lock_);
    for (const auto part : {&SceneArrays::defects_of_order, &SceneArrays::defects_of_children,
                            &SceneArrays::defects_of_twists, &SceneArrays::defects_of_pools})
        if (std::string defect = (this->*part)(); !defect.empty()) return defect;
    return {};
}

std::string SceneArrays::defects_of_twists() const {
    std::int32_t at = 0;
    for (std::int32_t i = 0; i < counts_[frame_count]; ++i) {
        const Slot slot = sequence_[i], reference = twist_reference_[slot];
        if (reference == none) continue;
        const std::string name(frame_names_.view(slot));
        if (at >= counts_[twist_count] || twists_[at] != slot)
            return "the list of twists misses " + name;
        ++at;
        if (body_names_.find(body_names_.view(reference)) != reference)
            return "reference of the twist of " + name + " is gone";
    }
    if (at != counts_[twist_count]) return "a twist has lost its frame";
    return {};
}

std::string SceneArrays::defects_of_pools() const {
    std::size_t stamps = 0, members = 0, groups = 0, bodies = 0;
    for (std::int32_t i = 0; i < counts_[frame_count]; ++i) {
        const Slot slot = sequence_[i];
        const std::string name(frame_names_.view(slot));
        if (bare_[body_[slot]]) return "body of " + name + " is marked as having no frame";
        const std::optional<StampedPoses> known = history(slot);
        if (!known) continue;
        if (known->entries.size() != static_cast<std::size_t>(stamp_count_[slot]))
            return "stamps of " + name + " are lost";
        Slot newer = none;
        for (Slot at_stamp = newest_[slot]; at_stamp != none;
             newer = at_stamp, at_stamp = older_[at_stamp])
            if (newer_[at_stamp] != newer)
                return "a stamped pose of " + name + " has lost its successor";
        if (newer != oldest_[slot]) return "the oldest stamped pose of " + name + " is another";
        stamps += known->entries.size();
        known->check(name);
    }
    for (std::size_t group = 0; group < is_group_.size(); ++group) {
        groups += is_group_[group] != 0;
        members += members_.size(group_frames_[group]) + members_.size(group_groups_[group]) +
                   members_.size(group_parents_[group]);
    }
    for (std::size_t body = 0; body < capacities_.bodies; ++body)
        bodies += bare_[static_cast<Slot>(body)] || tops_.first(static_cast<Slot>(body)) != none;
    if (stamps + free_stamps_ != capacities_.stamps) return "a stamped pose is lost";
    if (members + members_.room() != capacities_.group_members)
        return "a member of a group is lost";
    if (groups + free_groups_.size() != capacities_.groups) return "a group is lost";
    if (bodies + free_bodies_.size() != capacities_.bodies) return "a body is lost";
    return {};
}

}  // namespace tmkit
