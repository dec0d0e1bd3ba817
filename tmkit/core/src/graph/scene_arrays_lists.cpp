// Lists of the arrays. Stamped poses: a list for each edge with a history, from the newest to the
// oldest, in one pool, by the rules of stamped_poses.hpp. Members of groups, in another pool. Twist
// edges: a list of their frames, by insertion; their values are stored with the frames.
#include <algorithm>

#include "scene_arrays_view.hpp"
#include "tmkit/scene_arrays.hpp"
#include "tmkit/scene_errors.hpp"

namespace tmkit {

// --- rules

// Bounds of a history under other limits, which keep the newest poses.
StampBounds SceneArrays::bounds_of(Slot slot, std::size_t capacity, double window) const {
    StampBounds bounds{0, capacity, window, 0.0, 0.0};
    const Slot newest = newest_[slot];
    if (newest == none) return bounds;
    bounds.newest = stamp_[newest];
    bounds.count = static_cast<std::size_t>(stamp_count_[slot]);
    Slot current_slot = oldest_[slot];
    for (; bounds.count > capacity || stamp_[current_slot] < bounds.newest - window;
         current_slot = newer_[current_slot])
        --bounds.count;
    bounds.oldest = stamp_[current_slot];
    return bounds;
}

// --- edits

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
    // Existing poses, without the new one.
    std::int32_t kept_count = std::max(stamp_count_[slot], 0);
    for (Slot current_slot = oldest_[slot];
         kept_count > 0 &&
         (stamp_[current_slot] < newest - seconds || static_cast<std::size_t>(kept_count) >= most);
         current_slot = newer_[current_slot])
        --kept_count;
    Slot before = newest_[slot];
    while (before != none && stamp_[before] > entry.stamp) before = older_[before];
    if (before != none && stamp_[before] == entry.stamp) throw duplicate_stamp(entry.stamp, frame);
    if (free_stamps_ == 0 && kept_count >= stamp_count_[slot])
        throw errors::full("stamped pose", capacities_.stamps, "stamps");
    if (entry.covariance) require_noise_fits(columns_of_covariance);
    const bool is_newest = entry.stamp == newest, has_noise = is_newest && entry.covariance;
    const Ref<const EdgeNoise> noise =
        has_noise ? noise_of(entry, frame, frame_names_.view(parent_[slot])) : nullptr;

    const Section section(lock_);
    drop_stamps(slot, keeps ? kept_count : none);
    if (!keeps) stamp_count_.store(slot, 0);
    stamp_capacity_.store(slot, most);
    stamp_window_.store(slot, seconds);
    insert_stamp(slot, entry);
    if (has_noise) write_noise(slot, noise.get());
    if (!is_newest || pose_[slot] == entry.pose) return;
    pose_.store(slot, entry.pose);
    refresh_subtree(slot);
}

void SceneArrays::set_stamped_poses(std::string_view frame, const Ref<const StampedPoses>& stamps) {
    const Writer writer(lock_);
    const Slot slot = require_frame(frame);
    if (stamps) {
        rules::check_edge_for_stamps(View(*this), slot);
        stamps->check(frame);
        const auto present_count = static_cast<std::size_t>(std::max(stamp_count_[slot], 0));
        if (stamps->entries.size() > free_stamps_ + present_count)
            throw errors::full("stamped pose", capacities_.stamps, "stamps");
        if (stamps->has_covariances()) require_noise_fits(columns_of_covariance);
    }
    const Section section(lock_);
    drop_stamps(slot, none);
    if (!stamps) return;
    stamp_count_.store(slot, 0);
    stamp_capacity_.store(slot, stamps->capacity);
    stamp_window_.store(slot, stamps->window);
    for (const StampedPose& entry : stamps->entries) insert_stamp(slot, entry);
}

void SceneArrays::drop_stamps(Slot slot, std::int32_t kept_count) {
    if (stamp_count_[slot] == none) return;
    Slot current_slot = oldest_[slot];
    for (std::int32_t count = stamp_count_[slot]; count > std::max(kept_count, 0); --count) {
        const Slot next = newer_[current_slot];
        older_.store(current_slot, free_stamp_);
        free_stamp_ = current_slot;
        ++free_stamps_;
        current_slot = next;
    }
    oldest_.store(slot, current_slot);
    if (current_slot == none) newest_.store(slot, none);
    else older_.store(current_slot, none);
    stamp_count_.store(slot, std::min(kept_count, stamp_count_[slot]));
}

void SceneArrays::insert_stamp(Slot slot, const StampedPose& entry) {
    const Slot new_entry = free_stamp_;
    free_stamp_ = older_[new_entry];
    --free_stamps_;
    stamp_.store(new_entry, entry.stamp);
    stamp_pose_.store(new_entry, entry.pose);
    if (stamp_covariances()) {
        stamp_is_uncertain_.store(new_entry, entry.covariance ? 1 : 0);
        if (entry.covariance) stamp_covariance_.store(new_entry, entry.covariance->value);
    }
    Slot newer = none, current_slot = newest_[slot];
    for (; current_slot != none && stamp_[current_slot] > entry.stamp;
         current_slot = older_[current_slot])
        newer = current_slot;
    older_.store(new_entry, current_slot);
    newer_.store(new_entry, newer);
    if (newer == none) newest_.store(slot, new_entry);
    else older_.store(newer, new_entry);
    if (current_slot == none) oldest_.store(slot, new_entry);
    else newer_.store(current_slot, new_entry);
    stamp_count_.store(slot, stamp_count_[slot] + 1);
}

// --- queries, for any thread

Pose SceneArrays::pose_at(Slot slot, const Moment& moment) const {
    if (stamp_count_.load(slot) == none) return pose_.load(slot);
    const Slot newest = newest_.load(slot);
    Slot after = none, current_slot = newest;
    for (std::size_t steps = 0; current_slot != none && stamp_.load(current_slot) > moment.stamp &&
                                steps < capacities_.stamps;
         ++steps) {
        after = current_slot;
        current_slot = older_.load(current_slot);
    }
    const bool clamps = moment.policy == StampPolicy::clamped;
    if (current_slot == none && clamps && after != none) return stamp_pose_.load(after);
    if (current_slot != none) {
        const StampedPose before{stamp_.load(current_slot), stamp_pose_.load(current_slot)};
        const bool is_past = clamps && after == none && moment.stamp > before.stamp;
        if (before.stamp == moment.stamp || is_past) return before.pose;
        if (after != none)
            return tmkit::pose_between(before, {stamp_.load(after), stamp_pose_.load(after)},
                                       moment);
    }
    const std::optional<StampedPoses> old_history = history(slot);
    throw outside_stamps(moment.stamp, old_history ? tmkit::bounds_of(*old_history) : StampBounds{},
                         frame_names_.text(slot));
}

StampedPose SceneArrays::stamped_pose(Slot entry) const {
    StampedPose result{stamp_.load(entry), stamp_pose_.load(entry)};
    if (stamp_covariances() && stamp_is_uncertain_.load(entry))
        result.covariance =
            Ref<const StampCovariance>(new StampCovariance(stamp_covariance_.load(entry)));
    return result;
}

std::optional<StampedPoses> SceneArrays::history(Slot slot) const {
    const std::int32_t count = stamp_count_.load(slot);
    if (count == none) return std::nullopt;
    StampedPoses result;
    result.capacity = stamp_capacity_.load(slot);
    result.window = stamp_window_.load(slot);
    Slot current_slot = newest_.load(slot);
    for (std::int32_t i = 0; i < count && current_slot != none;
         ++i, current_slot = older_.load(current_slot))
        result.entries.push_back(stamped_pose(current_slot));
    std::reverse(result.entries.begin(), result.entries.end());
    return result;
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

// --- groups: their frames and their nested groups; only the writer changes and queries them

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

// Mark the groups reachable from the given ones, and count each once; throws if one leads back.
std::size_t SceneArrays::check_nested(std::string_view name, std::span<const std::string> groups) {
    const Slot group = group_names_.find(name);
    std::size_t reached = 0;
    group_marks_.forget();
    for (const std::string& member : groups) {
        if (member == name) throw errors::group_holds_itself(name);
        if (const Slot group_slot = require_group(member); group_marks_.mark(group_slot))
            group_queue_[reached++] = group_slot;
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

void SceneArrays::set_group(const GroupSpecification& specification) {
    const Writer writer(lock_);
    const auto& [name, frames, groups, parents, given] = specification;
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

GroupSpecification SceneArrays::members_of(Slot group) const {
    GroupSpecification result{
        std::string(group_names_.view(group)), {}, {}, {}, group_attributes_[group]};
    members_.for_each(group_frames_[group],
                      [&](Slot frame) { result.frames.emplace_back(frame_names_.view(frame)); });
    members_.for_each(group_groups_[group],
                      [&](Slot nested) { result.groups.emplace_back(group_names_.view(nested)); });
    members_.for_each(group_parents_[group],
                      [&](Slot frame) { result.parents.emplace_back(frame_names_.view(frame)); });
    return result;
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
    Slot current_slot = counts_[twist_count];
    counts_.store(twist_count, current_slot + 1);
    for (; current_slot > 0 && id_[twists_[current_slot - 1]] > id_[slot]; --current_slot)
        twists_.store(current_slot, twists_[current_slot - 1]);
    twists_.store(current_slot, slot);
    twist_reference_.store(slot, reference);
}

void SceneArrays::remove_twist(std::string_view frame) {
    const Writer writer(lock_);
    const Slot slot = require_frame(frame);
    if (twist_reference_[slot] == none) return;
    const Section section(lock_);
    drop_twists([slot](Slot frame) { return frame == slot; });
}

// --- queries, for any thread

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
        std::vector<std::string> group_slot;
        add_bare_bodies(group_slot);
        return group_slot;
    });
}

std::vector<std::string> SceneArrays::body_names() const {
    return lock_.read([&] {
        std::vector<std::string> group_slot;
        std::vector<char> is_listed(capacities_.bodies, 0);
        for (std::size_t i = 0; i < size(); ++i) {
            const Slot body = body_.load(sequence_.load(static_cast<std::int32_t>(i)));
            if (body == none || std::exchange(is_listed[body], 1)) continue;
            group_slot.push_back(body_names_.text(body));
        }
        add_bare_bodies(group_slot);
        return group_slot;
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
