// Stamped poses of the arrays: for each edge that keeps any, a list from the newest to the oldest, in one pool. The
// rules are those of stamped_poses.hpp.
#include <algorithm>

#include "scene_arrays_view.hpp"

namespace tmkit {

// --- rules -----------------------------------------------------------------------------------------------------------

// What stays of a history under other bounds: the newest, as many as fit.
StampBounds SceneArrays::bounds_of(Slot slot, std::size_t capacity, double window) const {
    StampBounds bounds{0, capacity, window, 0.0, 0.0};
    const Slot newest = newest_[slot];
    if (newest == none) return bounds;
    bounds.newest = stamp_[newest];
    bounds.count = static_cast<std::size_t>(stamp_count_[slot]);
    Slot at = oldest_[slot];
    for (; bounds.count > capacity || stamp_[at] < bounds.newest - window; at = newer_[at]) --bounds.count;
    bounds.oldest = stamp_[at];
    return bounds;
}

// --- edits -----------------------------------------------------------------------------------------------------------

void SceneArrays::add_stamped_pose(std::string_view frame, const StampedPose& entry,
                                   std::optional<std::size_t> capacity, std::optional<double> window) {
    const Writer writer(lock_);
    const Slot slot = require_frame(frame);
    rules::check_edge_for_stamps(View(*this), slot);
    const bool keeps = stamp_count_[slot] != none;
    const std::size_t most = capacity.value_or(keeps ? stamp_capacity_[slot] : StampedPoses::usual_capacity);
    const double seconds = window.value_or(keeps ? stamp_window_[slot] : StampedPoses::without_end);
    require_limits(most, seconds, frame);
    const StampBounds bounds = bounds_of(slot, most, seconds);
    require_admission(entry.stamp, bounds, frame);
    const double newest = bounds.count ? std::max(bounds.newest, entry.stamp) : entry.stamp;
    std::int32_t kept = std::max(stamp_count_[slot], 0);  // of those that are there, beside the new one
    for (Slot at = oldest_[slot]; kept > 0 && (stamp_[at] < newest - seconds || static_cast<std::size_t>(kept) >= most);
         at = newer_[at])
        --kept;
    Slot before = newest_[slot];
    while (before != none && stamp_[before] > entry.stamp) before = older_[before];
    if (before != none && stamp_[before] == entry.stamp) throw duplicate_stamp(entry.stamp, frame);
    if (free_stamps_ == 0 && kept >= stamp_count_[slot])
        throw refusals::full("stamped pose", capacities_.stamps, "stamps");

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
            throw refusals::full("stamped pose", capacities_.stamps, "stamps");
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

// --- queries, from any thread ----------------------------------------------------------------------------------------

Pose SceneArrays::pose_at(Slot slot, const Moment& moment) const {
    if (stamp_count_.load(slot) == none) return pose_.load(slot);
    const Slot newest = newest_.load(slot);
    Slot after = none, at = newest;
    for (std::size_t steps = 0; at != none && stamp_.load(at) > moment.stamp && steps < capacities_.stamps; ++steps) {
        after = at;
        at = older_.load(at);
    }
    const bool clamps = moment.policy == StampPolicy::clamped;
    if (at == none && clamps && after != none) return stamp_pose_.load(after);
    if (at != none) {
        const StampedPose before{stamp_.load(at), stamp_pose_.load(at)};
        const bool is_past = clamps && after == none && moment.stamp > before.stamp;
        if (before.stamp == moment.stamp || is_past) return before.pose;
        if (after != none) return tmkit::pose_between(before, {stamp_.load(after), stamp_pose_.load(after)}, moment);
    }
    const std::optional<StampedPoses> known = history(slot);
    throw outside_stamps(moment.stamp, known ? tmkit::bounds_of(*known) : StampBounds{}, frame_names_.text(slot));
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

Pose SceneArrays::pose_between(Slot target, Slot reference, const Configuration& q, const Moment& moment) const {
    return pose_along(target, reference, [&](Slot slot) { return edge_from(slot, pose_at(slot, moment), q); });
}

Pose SceneArrays::pose(std::string_view target, std::optional<std::string_view> reference, const Configuration& q,
                       const Moment& moment) const {
    return lock_.read([&] {
        require_length(q);
        const Slot to = require_frame(target);
        return pose_between(to, reference_slot(reference), q, moment);
    });
}

Vector6 SceneArrays::twist_from_stamps(std::string_view target, std::optional<std::string_view> reference, double first,
                                       double second, const Configuration& q, StampPolicy policy) const {
    require_later(first, second, target);
    return lock_.read([&] {
        require_length(q);
        const View view(*this);
        const Slot to = require_frame(target), from = reference ? require_frame(*reference) : rules::root_of(view, to);
        const Pose before = pose_between(to, from, q, {first, policy}),
                   after = pose_between(to, from, q, {second, policy});
        rules::check_no_twist_on_way(view, to, from, true);
        return twist_between(before, after, second - first);
    });
}

}  // namespace tmkit
