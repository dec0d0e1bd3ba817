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

// --- edits -----------------------------------------------------------------------------------------------------------

// Marks the groups that are reached from those given, which are counted, each once; refuses what leads back.
std::size_t SceneArrays::check_nested(std::string_view name, std::span<const std::string> groups) {
    const Slot group = group_names_.find(name);
    std::size_t reached = 0;
    group_marks_.forget();
    for (const std::string& member : groups) {
        if (member == name) throw refusals::group_holds_itself(name);
        if (const Slot found = require_group(member); group_marks_.mark(found)) group_queue_[reached++] = found;
    }
    const std::size_t direct = reached;
    for (std::size_t next = 0; next < reached; ++next) {
        const Slot holder = group_queue_[next];
        members_.for_each(group_groups_[holder], [&](Slot nested) {
            if (nested == group) throw refusals::group_holds_in_turn(group_names_.view(holder), name);
            if (group_marks_.mark(nested)) group_queue_[reached++] = nested;
        });
    }
    return direct;
}

void SceneArrays::set_group(const GroupSpecification& wanted) {
    const Writer writer(lock_);
    const auto& [name, frames, groups, parents, given] = wanted;
    if (name.empty()) throw refusals::empty_group_name();
    std::size_t needed = 0;
    for (const auto* names : {&frames, &parents}) {
        marks_.forget();
        for (const std::string& frame : *names) needed += marks_.mark(require_frame(frame));
    }
    needed += check_nested(name, groups);
    Slot group = group_names_.find(name);
    std::size_t room = members_.room();
    if (group == none) {
        require_fit(name);
        if (free_groups_.empty()) throw refusals::full("group", capacities_.groups, "groups");
    } else {
        for (const auto* lists : {&group_frames_, &group_groups_, &group_parents_})
            room += members_.size((*lists)[group]);
    }
    if (needed > room) throw refusals::full("member of a group", capacities_.group_members, "group_members");
    Attributes attributes = given;
    std::sort(attributes.begin(), attributes.end());

    if (group == none) {
        group = free_groups_.take();
        group_names_.insert(group, name);
        is_group_[group] = 1;
    }
    clear_group(group);
    group_attributes_[group] = std::move(attributes);
    const auto enter = [&](const std::vector<std::string>& names, Slot& first) {
        marks_.forget();
        for (const std::string& frame : names)
            if (const Slot slot = frame_names_.find(frame); marks_.mark(slot)) members_.append(first, slot);
    };
    enter(frames, group_frames_[group]);
    enter(parents, group_parents_[group]);
    group_marks_.forget();
    for (const std::string& member : groups)
        if (const Slot nested = group_names_.find(member); group_marks_.mark(nested))
            members_.append(group_groups_[group], nested);
}

void SceneArrays::clear_group(Slot group) {
    for (auto* lists : {&group_frames_, &group_groups_, &group_parents_}) members_.clear((*lists)[group]);
    group_attributes_[group].clear();
}

void SceneArrays::remove_group(std::string_view name) {
    const Writer writer(lock_);
    const Slot group = require_group(name);
    clear_group(group);
    for (Slot& first : group_groups_) members_.drop_if(first, [group](Slot nested) { return nested == group; });
    group_names_.erase(group);
    is_group_[group] = 0;
    free_groups_.push_back(group);
}

// --- queries ---------------------------------------------------------------------------------------------------------

GroupSpecification SceneArrays::members_of(Slot group) const {
    GroupSpecification made{std::string(group_names_.view(group)), {}, {}, {}, group_attributes_[group]};
    members_.for_each(group_frames_[group], [&](Slot frame) { made.frames.emplace_back(frame_names_.view(frame)); });
    members_.for_each(group_groups_[group], [&](Slot nested) { made.groups.emplace_back(group_names_.view(nested)); });
    members_.for_each(group_parents_[group], [&](Slot frame) { made.parents.emplace_back(frame_names_.view(frame)); });
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
