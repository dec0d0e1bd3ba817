// What the arrays keep in lists. Stamped poses: for each edge that keeps any, from the newest to
// the oldest, in one pool, by the rules of stamped_poses.hpp. Members of groups, in another. Twist
// edges: a list of their frames, by insertion; their values stand beside the frames.
#include <algorithm>

#include "scene_arrays_view.hpp"
#include "tmkit/scene_arrays.hpp"
#include "tmkit/scene_errors.hpp"

namespace tmkit {

// --- rules
// -----------------------------------------------------------------------------------------------------------

// What stays of a history under other bounds: the newest, as many as fit.
StampBounds SceneArrays::bounds_of(Slot slot, std::size_t capacity, double window) const {
    StampBounds bounds{0, capacity, window, 0.0, 0.0};
    const Slot newest = newest_[slot];
    if (newest == none) return bounds;
    bounds.newest = stamp_[newest];
    bounds.count = static_cast<std::size_t>(stamp_count_[slot]);
    Slot at = oldest_[slot];
    for (; bounds.count > capacity || stamp_[at] < bounds.newest - window; at = newer_[at])
        --bounds.count;
    bounds.oldest = stamp_[at];
    return bounds;
}

// --- edits
// -----------------------------------------------------------------------------------------------------------

void SceneArrays::add_stamped_pose(std::string_view frame, const StampedPose& entry,
                                   std::optional<std::size_t> capacity,
                                   std::optional<double> window) {
    const Writer writer(lock_);
    const Slot slot = require_frame(frame);
    rules::check_edge_for_stamps(View(*this), slot);
    const bool keeps = stamp_count_[slot] != none;
    const std::size_t most =
        capacity.value_or(keeps ? stamp_capacity_[slot] : StampedPoses::usual_capacity);
    const double seconds = window.value_or(keeps ? stamp_window_[slot] : StampedPoses::without_end);
    require_limits(most, seconds, frame);
    const StampBounds bounds = bounds_of(slot, most, seconds);
    require_admission(entry.stamp, bounds, frame);
    const double newest = bounds.count ? std::max(bounds.newest, entry.stamp) : entry.stamp;
    std::int32_t kept =
        std::max(stamp_count_[slot], 0);  // of those that are there, beside the new one
    for (Slot at = oldest_[slot];
         kept > 0 && (stamp_[at] < newest - seconds || static_cast<std::size_t>(kept) >= most);
         at = newer_[at])
        --kept;
    Slot before = newest_[slot];
    while (before != none && stamp_[before] > entry.stamp) before = older_[before];
    if (before != none && stamp_[before] == entry.stamp) throw duplicate_stamp(entry.stamp, frame);
    if (free_stamps_ == 0 && kept >= stamp_count_[slot])
        throw errors::full("stamped pose", capacities_.stamps, "stamps");

    const Section section(lock_);
    drop_stamps(slot, keeps ? kept : none);
    if (!keeps) stamp_count_.store(slot, 0);
    stamp_capacity_.store(slot, most);
    stamp_window_.store(slot, seconds);
    insert_stamp(slot, entry);
    if (entry.stamp != newest || pose_[slot] == entry.pose) return;
    pose_.store(slot, entry.pose);
    refresh_subtree(slot);
}

void SceneArrays::set_stamped_poses(std::string_view frame, const Ref<const StampedPoses>& stamps) {
    const Writer writer(lock_);
    const Slot slot = require_frame(frame);
    if (stamps) {
        rules::check_edge_for_stamps(View(*this), slot);
        stamps->check(frame);
        const auto there = static_cast<std::size_t>(std::max(stamp_count_[slot], 0));
        if (stamps->entries.size() > free_stamps_ + there)
            throw errors::full("stamped pose", capacities_.stamps, "stamps");
    }
    const Section section(lock_);
    drop_stamps(slot, none);
    if (!stamps) return;
    stamp_count_.store(slot, 0);
    stamp_capacity_.store(slot, stamps->capacity);
    stamp_window_.store(slot, stamps->window);
    for (const StampedPose& entry : stamps->entries) insert_stamp(slot, entry);
}

void SceneArrays::drop_stamps(Slot slot, std::int32_t kept) {
    if (stamp_count_[slot] == none) return;
    Slot at = oldest_[slot];
    for (std::int32_t count = stamp_count_[slot]; count > std::max(kept, 0); --count) {
        const Slot next = newer_[at];
        older_.store(at, free_stamp_);
        free_stamp_ = at;
        ++free_stamps_;
        at = next;
    }
    oldest_.store(slot, at);
    if (at == none) newest_.store(slot, none);
    else older_.store(at, none);
    stamp_count_.store(slot, std::min(kept, stamp_count_[slot]));
}

void SceneArrays::insert_stamp(Slot slot, const StampedPose& entry) {
    const Slot taken = free_stamp_;
    free_stamp_ = older_[taken];
    --free_stamps_;
    stamp_.store(taken, entry.stamp);
    stamp_pose_.store(taken, entry.pose);
    Slot newer = none, at = newest_[slot];
    for (; at != none && stamp_[at] > entry.stamp; at = older_[at]) newer = at;
    older_.store(taken, at);
    newer_.store(taken, newer);
    if (newer == none) newest_.store(slot, taken);
    else older_.store(newer, taken);
    if (at == none) oldest_.store(slot, taken);
    else newer_.store(at, taken);
    stamp_count_.store(slot, stamp_count_[slot] + 1);
}

// --- queries, from any thread
// ----------------------------------------------------------------------------------------

Pose SceneArrays::pose_at(Slot slot, const Moment& moment) const {
    if (stamp_count_.load(slot) == none) return pose_.load(slot);
    const Slot newest = newest_.load(slot);
    Slot after = none, at = newest;
    for (std::size_t steps = 0;
         at != none && stamp_.load(at) > moment.stamp && steps < capacities_.stamps; ++steps) {
        after = at;
        at = older_.load(at);
    }
    const bool clamps = moment.policy == StampPolicy::clamped;
    if (at == none && clamps && after != none) return stamp_pose_.load(after);
    if (at != none) {
        const StampedPose before{stamp_.load(at), stamp_pose_.load(at)};
        const bool is_past = clamps && after == none && moment.stamp > before.stamp;
        if (before.stamp == moment.stamp || is_past) return before.pose;
        if (after != none)
            return tmkit::pose_between(before, {stamp_.load(after), stamp_pose_.load(after)},
                                       moment);
    }
    const std::optional<StampedPoses> known = history(slot);
    throw outside_stamps(moment.stamp, known ? tmkit::bounds_of(*known) : StampBounds{},
                         frame_names_.text(slot));
}

std::optional<StampedPoses> SceneArrays::history(Slot slot) const {
    const std::int32_t count = stamp_count_.load(slot);
    if (count == none) return std::nullopt;
    StampedPoses made;
    made.capacity = stamp_capacity_.load(slot);
    made.window = stamp_window_.load(slot);
    Slot at = newest_.load(slot);
    for (std::int32_t i = 0; i < count && at != none; ++i, at = older_.load(at))
        made.entries.push_back({stamp_.load(at), stamp_pose_.load(at)});
    std::reverse(made.entries.begin(), made.entries.end());
    return made;
}

std::optional<StampedPoses> SceneArrays::stamped_poses(std::string_view frame) const {
    return read_frame(frame, [this](Slot slot) { return history(slot); });
}

Pose SceneArrays::pose_between(Slot target, Slot reference, const Configuration& q,
                               const Moment& moment) const {
    return path_pose(target, reference,
                     [&](Slot slot) { return edge_from(slot, pose_at(slot, moment), q); });
}

Pose SceneArrays::pose(std::string_view target, std::optional<std::string_view> reference,
                       const Configuration& q, const Moment& moment) const {
    return lock_.read([&] {
        require_length(q);
        const Slot to = require_frame(target);
        return pose_between(to, reference_slot(reference), q, moment);
    });
}

Vector6 SceneArrays::twist_from_stamps(std::string_view target,
                                       std::optional<std::string_view> reference, double first,
                                       double second, const Configuration& q,
                                       StampPolicy policy) const {
    require_later(first, second, target);
    return lock_.read([&] {
        require_length(q);
        const View view(*this);
        const Slot to = require_frame(target),
                   from = reference ? require_frame(*reference) : rules::root_of(view, to);
        const Pose before = pose_between(to, from, q, {first, policy}),
                   after = pose_between(to, from, q, {second, policy});
        rules::check_no_twist_on_path(view, to, from, true);
        rules::check_stamped_or_stated(view, to, from);
        return twist_between(before, after, second - first);
    });
}

// --- groups: their frames apart from the groups in them; the writer alone changes and asks them
// ----------------------

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

// --- edits
// -----------------------------------------------------------------------------------------------------------

// Marks the groups that are reached from those given, which are counted, each once; refuses what
// leads back.
std::size_t SceneArrays::check_nested(std::string_view name, std::span<const std::string> groups) {
    const Slot group = group_names_.find(name);
    std::size_t reached = 0;
    group_marks_.forget();
    for (const std::string& member : groups) {
        if (member == name) throw errors::group_holds_itself(name);
        if (const Slot found = require_group(member); group_marks_.mark(found))
            group_queue_[reached++] = found;
    }
    const std::size_t direct = reached;
    for (std::size_t next = 0; next < reached; ++next) {
        const Slot holder = group_queue_[next];
        members_.for_each(group_groups_[holder], [&](Slot nested) {
            if (nested == group) throw errors::group_holds_in_turn(group_names_.view(holder), name);
            if (group_marks_.mark(nested)) group_queue_[reached++] = nested;
        });
    }
    return direct;
}

void SceneArrays::set_group(const GroupSpecification& wanted) {
    const Writer writer(lock_);
    const auto& [name, frames, groups, parents, given] = wanted;
    if (name.empty()) throw errors::empty_group_name();
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
        if (free_groups_.empty()) throw errors::full("group", capacities_.groups, "groups");
    } else {
        for (const auto* lists : {&group_frames_, &group_groups_, &group_parents_})
            room += members_.size((*lists)[group]);
    }
    if (needed > room)
        throw errors::full("member of a group", capacities_.group_members, "group_members");
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
            if (const Slot slot = frame_names_.find(frame); marks_.mark(slot))
                members_.append(first, slot);
    };
    enter(frames, group_frames_[group]);
    enter(parents, group_parents_[group]);
    group_marks_.forget();
    for (const std::string& member : groups)
        if (const Slot nested = group_names_.find(member); group_marks_.mark(nested))
            members_.append(group_groups_[group], nested);
}

void SceneArrays::clear_group(Slot group) {
    for (auto* lists : {&group_frames_, &group_groups_, &group_parents_})
        members_.clear((*lists)[group]);
    group_attributes_[group].clear();
}

void SceneArrays::remove_group(std::string_view name) {
    const Writer writer(lock_);
    const Slot group = require_group(name);
    clear_group(group);
    for (Slot& first : group_groups_)
        members_.drop_if(first, [group](Slot nested) { return nested == group; });
    group_names_.erase(group);
    is_group_[group] = 0;
    free_groups_.push_back(group);
}

// --- queries
// ---------------------------------------------------------------------------------------------------------

GroupSpecification SceneArrays::members_of(Slot group) const {
    GroupSpecification made{
        std::string(group_names_.view(group)), {}, {}, {}, group_attributes_[group]};
    members_.for_each(group_frames_[group],
                      [&](Slot frame) { made.frames.emplace_back(frame_names_.view(frame)); });
    members_.for_each(group_groups_[group],
                      [&](Slot nested) { made.groups.emplace_back(group_names_.view(nested)); });
    members_.for_each(group_parents_[group],
                      [&](Slot frame) { made.parents.emplace_back(frame_names_.view(frame)); });
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

// --- bodies
// ----------------------------------------------------------------------------------------------------------

SceneArrays::Slot SceneArrays::require_body(std::string_view name) const {
    const Slot body = body_names_.find(name);
    if (body == none) throw unknown_name("body", name, body_names());
    return body;
}

void SceneArrays::add_body(std::string_view name) {
    const Writer writer(lock_);
    if (name.empty()) throw errors::empty_body_name();
    if (body_names_.find(name) != none) throw duplicate("body", name);
    require_fit(name);
    if (free_bodies_.empty()) throw errors::full("body", capacities_.bodies, "bodies");
    const Section section(lock_);
    bare_.store(take_body(name), 1);
}

void SceneArrays::remove_body(std::string_view name) {
    const Writer writer(lock_);
    const Slot body = require_body(name);
    rules::check_bare(View(*this), body);
    const Section section(lock_);
    bare_.store(body, 0);
    body_names_.erase(body);
    free_bodies_.push_back(body);
}

// --- edits
// -----------------------------------------------------------------------------------------------------------

void SceneArrays::set_twist(std::string_view frame, const TwistEdge& edge) {
    const Writer writer(lock_);
    const Slot slot = require_frame(frame), body = require_body(edge.reference);
    const bool is_new = rules::check_twist(View(*this), twist_rules_, slot, body, edge.vector);
    if (is_new && static_cast<std::size_t>(counts_[twist_count]) == capacities_.twists)
        throw errors::full("twist", capacities_.twists, "twists");
    const Section section(lock_);
    if (is_new) append_twist(slot, body);
    twist_vector_.store(slot, edge.vector);
    twist_noise_[slot] = edge.noise;
}

void SceneArrays::set_twist_noise(std::string_view frame, Ref<const EdgeNoise> noise) {
    const Writer writer(lock_);
    const Slot slot = require_frame(frame);
    if (twist_reference_[slot] == none) throw errors::without_twist(frame);
    twist_noise_[slot] = std::move(noise);
}

Ref<const EdgeNoise> SceneArrays::twist_noise(std::string_view frame) const {
    return twist_noise_[require_frame(frame)];
}

void SceneArrays::append_twist(Slot slot, Slot reference) {
    Slot at = counts_[twist_count];
    counts_.store(twist_count, at + 1);
    for (; at > 0 && id_[twists_[at - 1]] > id_[slot]; --at) twists_.store(at, twists_[at - 1]);
    twists_.store(at, slot);
    twist_reference_.store(slot, reference);
}

void SceneArrays::remove_twist(std::string_view frame) {
    const Writer writer(lock_);
    const Slot slot = require_frame(frame);
    if (twist_reference_[slot] == none) return;
    const Section section(lock_);
    drop_twists([slot](Slot frame) { return frame == slot; });
}

// --- queries, from any thread
// ----------------------------------------------------------------------------------------

std::string SceneArrays::body(std::string_view frame) const {
    return read_frame(frame,
                      [view = View(*this)](Slot slot) { return view.body_name(view.body(slot)); });
}

void SceneArrays::add_bare_bodies(std::vector<std::string>& names) const {
    const auto first = static_cast<std::ptrdiff_t>(names.size());
    for (std::size_t body = 0; body < capacities_.bodies; ++body)
        if (const auto slot = static_cast<Slot>(body); bare_.load(slot))
            names.push_back(body_names_.text(slot));
    std::sort(names.begin() + first, names.end());
}

std::vector<std::string> SceneArrays::bodies_without_frames() const {
    return lock_.read([&] {
        std::vector<std::string> found;
        add_bare_bodies(found);
        return found;
    });
}

std::vector<std::string> SceneArrays::body_names() const {
    return lock_.read([&] {
        std::vector<std::string> found;
        std::vector<char> seen(capacities_.bodies, 0);
        for (std::size_t i = 0; i < size(); ++i) {
            const Slot body = body_.load(sequence_.load(static_cast<std::int32_t>(i)));
            if (body == none || std::exchange(seen[body], 1)) continue;
            found.push_back(body_names_.text(body));
        }
        add_bare_bodies(found);
        return found;
    });
}

std::optional<TwistEdge> SceneArrays::twist(std::string_view frame) const {
    return read_frame(frame, [this](Slot slot) {
        const Slot reference = twist_reference_.load(slot);
        const View view(*this);
        return reference == none ? std::nullopt
                                 : std::optional(TwistEdge{view.body_name(reference),
                                                           twist_vector_.load(slot), nullptr});
    });
}

std::vector<std::string> SceneArrays::twist_frames() const {
    return names_in(frame_names_, twists_, twist_count);
}

}  // namespace tmkit
