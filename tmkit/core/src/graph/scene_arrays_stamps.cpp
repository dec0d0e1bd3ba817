// Stamped poses of the arrays: for each edge that keeps any, a list from the newest to the oldest, in one pool. The
// rules are those of stamped_poses.hpp.
#include <algorithm>

#include "tmkit/scene_arrays.hpp"
#include "tmkit/scene_errors.hpp"

namespace tmkit {

// --- rules -----------------------------------------------------------------------------------------------------------

SceneArrays::Slot SceneArrays::require_edge_for_stamps(std::string_view frame) const {
    const Slot slot = require_frame(frame);
    const Slot parent = parent_[slot];
    if (parent == none) throw refusals::root_without(frame, "pose");
    if (body_[parent] == body_[slot]) throw refusals::moves_on_body(frame, frame_names_.view(parent));
    return slot;
}

// What stays of a history under other bounds: the newest, as many as fit.
StampBounds SceneArrays::bounds_of(Slot slot, std::size_t capacity, double window) const {
    StampBounds bounds{0, capacity, window, 0.0, 0.0};
    const Slot newest = newest_[slot];
    if (newest == none) return bounds;
    bounds.newest = stamp_[newest];
    for (Slot at = newest; at != none && bounds.count < capacity && stamp_[at] >= bounds.newest - window;
         at = older_[at], ++bounds.count)
        bounds.oldest = stamp_[at];
    return bounds;
}

// --- edits -----------------------------------------------------------------------------------------------------------

void SceneArrays::add_stamped_pose(std::string_view frame, const StampedPose& entry,
                                   std::optional<std::size_t> capacity, std::optional<double> window) {
    const Writer writer(lock_);
    const Slot slot = require_edge_for_stamps(frame);
    const bool keeps = stamp_count_[slot] != none;
    const std::size_t most = capacity.value_or(keeps ? stamp_capacity_[slot] : StampedPoses::usual_capacity);
    const double seconds = window.value_or(keeps ? stamp_window_[slot] : StampedPoses::without_end);
    require_limits(most, seconds, frame);
    const StampBounds bounds = bounds_of(slot, most, seconds);
    require_admission(entry.stamp, bounds, frame);
    const double newest = bounds.count ? std::max(bounds.newest, entry.stamp) : entry.stamp;
    std::int32_t kept = 0;  // of those that are there, beside the new one
    Slot at = newest_[slot];
    for (std::size_t i = 0; i < bounds.count; ++i, at = older_[at]) {
        if (stamp_[at] == entry.stamp) throw duplicate_stamp(entry.stamp, frame);
        if (stamp_[at] >= newest - seconds && static_cast<std::size_t>(kept) + 1 < most) ++kept;
    }
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
    const Slot slot = stamps ? require_edge_for_stamps(frame) : require_frame(frame);
    if (stamps) {
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
    Slot last = none, at = newest_[slot];  // `last` is the oldest that stays
    for (std::int32_t i = 0; i < kept && at != none; ++i, at = older_[at]) last = at;
    if (last == none) newest_.store(slot, none);
    else older_.store(last, none);
    while (at != none) {
        const Slot next = older_[at];
        older_.store(at, free_stamp_);
        free_stamp_ = at;
        ++free_stamps_;
        at = next;
    }
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
    if (newer == none) newest_.store(slot, taken);
    else older_.store(newer, taken);
    stamp_count_.store(slot, stamp_count_[slot] + 1);
}

// --- queries, from any thread ----------------------------------------------------------------------------------------

// parent_from_frame of an edge at a moment, at joint value 0.
SceneArrays::Found SceneArrays::pose_at(Slot slot, const Moment& moment) const {
    if (stamp_count_.load(slot) == none) return {Trouble::nothing, pose_.load(slot)};
    Slot after = none, at = newest_.load(slot);
    for (std::size_t steps = 0; at != none && stamp_.load(at) > moment.stamp && steps < capacities_.stamps; ++steps) {
        after = at;
        at = older_.load(at);
    }
    const bool clamps = moment.policy == StampPolicy::clamped;
    if (at == none && clamps && after != none) return {Trouble::nothing, stamp_pose_.load(after)};
    if (at == none) return {Trouble::stamp, {}, slot};
    const StampedPose before{stamp_.load(at), stamp_pose_.load(at)};
    if (before.stamp == moment.stamp || (clamps && after == none && moment.stamp > before.stamp))
        return {Trouble::nothing, before.pose};
    if (after == none) return {Trouble::stamp, {}, slot};
    try {
        return {Trouble::nothing, tmkit::pose_between(before, {stamp_.load(after), stamp_pose_.load(after)}, moment)};
    } catch (const Error&) {  // numbers of two states, which are thrown away, or ones too large
        return {Trouble::numbers, {}, slot};
    }
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

Pose SceneArrays::pose(std::string_view target, std::optional<std::string_view> reference, const Configuration& q,
                       const Moment& moment) const {
    const Found found = lock_.read([&] { return find_pose(target, reference, q, &moment); });
    return pose_of(found, target, reference, q, &moment);
}

Vector6 SceneArrays::twist_from_stamps(std::string_view target, std::optional<std::string_view> reference, double first,
                                       double second, const Configuration& q, StampPolicy policy) const {
    require_later(first, second, target);
    const Moment moments[] = {{first, policy}, {second, policy}};
    struct Answer {
        std::array<Found, 2> found;
        std::string frame, body;  // of a twist edge that the stamps do not contain
    };
    const Answer answer = lock_.read([&] {
        Answer made{
            {find_pose(target, reference, q, &moments[0]), find_pose(target, reference, q, &moments[1])}, {}, {}};
        const Slot slot = frame_names_.find(target);
        const Slot moved = made.found[1].trouble == Trouble::nothing
                               ? unstamped_twist(slot, reference ? frame_names_.find(*reference) : root_of(slot))
                               : none;
        const Slot twist = moved == none ? none : twist_.load(moved),
                   body = twist == none ? none : twist_reference_.load(twist);
        if (body != none) {
            made.frame = frame_names_.text(moved);
            made.body = body_names_.text(body);
        }
        return made;
    });
    const Pose before = pose_of(answer.found[0], target, reference, q, &moments[0]),
               after = pose_of(answer.found[1], target, reference, q, &moments[1]);
    if (!answer.frame.empty())
        throw refusals::twist_left_out(target, reference ? std::string(*reference) : root(target), answer.frame,
                                       answer.body, true);
    return twist_between(before, after, second - first);
}

Error SceneArrays::outside_stamps(Slot slot, double stamp) const {
    StampBounds bounds;
    const std::string name = lock_.read([&] {
        const std::optional<StampedPoses> known = history(slot);
        bounds.count = known ? known->entries.size() : 0;
        if (bounds.count > 0) {
            bounds.oldest = known->oldest();
            bounds.newest = known->newest();
        }
        return frame_names_.text(slot);
    });
    return tmkit::outside_stamps(stamp, bounds, name);
}

}  // namespace tmkit
