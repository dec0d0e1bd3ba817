// Groups of the arrays: their members are lists in one pool, the frames of a group apart from the groups in it. They
// belong to the writer, who alone changes and asks them.
#include <algorithm>

#include "tmkit/scene_arrays.hpp"
#include "tmkit/scene_errors.hpp"

namespace tmkit {

SceneArrays::Slot SceneArrays::require_group(std::string_view name) const {
    const Slot group = group_names_.find(name);
    if (group == none) throw unknown_name("group", name, sorted_groups());
    return group;
}

std::vector<std::string> SceneArrays::sorted_groups() const {
    std::vector<std::string> names;
    for (std::size_t group = 0; group < is_group_.size(); ++group)
        if (is_group_[group]) names.emplace_back(group_names_.view(static_cast<Slot>(group)));
    std::sort(names.begin(), names.end());
    return names;
}

// --- lists of members ------------------------------------------------------------------------------------------------

void SceneArrays::append_member(Slot& first, Slot what) {
    Slot* last = &first;
    while (*last != none) last = &members_[*last].next;
    *last = free_member_;
    Member& member = members_[free_member_];
    free_member_ = member.next;
    --free_members_;
    member = {what, none};
}

template <class Goes>
void SceneArrays::drop_members_if(Slot& first, Goes&& goes) {
    for (Slot* at = &first; *at != none;) {
        const Slot here = *at;
        Member& member = members_[here];
        if (!goes(member.what)) {
            at = &member.next;
            continue;
        }
        *at = member.next;
        member = {none, free_member_};
        free_member_ = here;
        ++free_members_;
    }
}

void SceneArrays::leave_groups() {
    for (Slot& first : group_frames_) drop_members_if(first, [this](Slot frame) { return mark_[frame] == epoch_; });
}

// --- edits -----------------------------------------------------------------------------------------------------------

// Whether a group is met for the first time since `group_epoch_` was raised.
bool SceneArrays::is_new_group(Slot group) { return std::exchange(group_mark_[group], group_epoch_) != group_epoch_; }

void SceneArrays::forget_group_marks() {
    if (++group_epoch_ != 0) return;
    std::fill(group_mark_.begin(), group_mark_.end(), 0);
    group_epoch_ = 1;
}

// Marks the groups that are reached from those given, which are counted, each once; refuses what leads back.
std::size_t SceneArrays::check_nested(std::string_view name, std::span<const std::string> groups) {
    const Slot group = group_names_.find(name);
    std::size_t reached = 0;
    forget_group_marks();
    for (const std::string& member : groups) {
        if (member == name) throw refusals::group_holds_itself(name);
        if (const Slot found = require_group(member); is_new_group(found)) group_queue_[reached++] = found;
    }
    const std::size_t direct = reached;
    for (std::size_t next = 0; next < reached; ++next) {
        const Slot holder = group_queue_[next];
        for (Slot at = group_groups_[holder]; at != none; at = members_[at].next) {
            const Slot nested = members_[at].what;
            if (nested == group) throw refusals::group_holds_in_turn(group_names_.view(holder), name);
            if (is_new_group(nested)) group_queue_[reached++] = nested;
        }
    }
    return direct;
}

void SceneArrays::set_group(std::string_view name, std::span<const std::string> frames,
                            std::span<const std::string> groups) {
    const Writer writer(lock_);
    if (name.empty()) throw refusals::empty_group_name();
    std::size_t needed = 0;
    const auto is_new_frame = [this](Slot slot) { return std::exchange(mark_[slot], epoch_) != epoch_; };
    forget_marks();
    for (const std::string& frame : frames) needed += is_new_frame(require_frame(frame));
    needed += check_nested(name, groups);
    Slot group = group_names_.find(name);
    std::size_t room = free_members_;
    if (group == none) {
        require_fit(name);
        if (free_groups_.empty()) throw refusals::full("group", capacities_.groups, "groups");
    } else {
        for (const Slot first : {group_frames_[group], group_groups_[group]})
            for (Slot at = first; at != none; at = members_[at].next) ++room;
    }
    if (needed > room) throw refusals::full("member of a group", capacities_.group_members, "group_members");

    if (group == none) {
        group = free_groups_.back();
        free_groups_.pop_back();
        group_names_.insert(group, name);
        is_group_[group] = 1;
    }
    const auto all = [](Slot) { return true; };
    Slot& first_frame = group_frames_[group];
    Slot& first_group = group_groups_[group];
    drop_members_if(first_frame, all);
    drop_members_if(first_group, all);
    forget_marks();
    for (const std::string& frame : frames)
        if (const Slot slot = frame_names_.find(frame); is_new_frame(slot)) append_member(first_frame, slot);
    forget_group_marks();
    for (const std::string& member : groups)
        if (const Slot nested = group_names_.find(member); is_new_group(nested)) append_member(first_group, nested);
}

void SceneArrays::remove_group(std::string_view name) {
    const Writer writer(lock_);
    const Slot group = require_group(name);
    const auto all = [](Slot) { return true; };
    drop_members_if(group_frames_[group], all);
    drop_members_if(group_groups_[group], all);
    for (Slot& first : group_groups_) drop_members_if(first, [group](Slot nested) { return nested == group; });
    group_names_.erase(group);
    is_group_[group] = 0;
    free_groups_.push_back(group);
}

// --- queries ---------------------------------------------------------------------------------------------------------

GroupSpecification SceneArrays::members_of(Slot group) const {
    GroupSpecification made{std::string(group_names_.view(group)), {}, {}};
    const auto next = [this](Slot at) { return members_[at].next; };
    for (Slot at = group_frames_[group]; at != none; at = next(at))
        made.frames.emplace_back(frame_names_.view(members_[at].what));
    for (Slot at = group_groups_[group]; at != none; at = next(at))
        made.groups.emplace_back(group_names_.view(members_[at].what));
    return made;
}

std::vector<std::string> SceneArrays::group_names() const {
    const Writer writer(lock_);
    return sorted_groups();
}

GroupSpecification SceneArrays::group(std::string_view name) const {
    const Writer writer(lock_);
    return members_of(require_group(name));
}

}  // namespace tmkit
