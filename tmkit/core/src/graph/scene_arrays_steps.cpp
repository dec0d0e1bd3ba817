// The steps that edits are made of: links, order, poses, bodies and pools. Each leaves the columns that it is about
// consistent among themselves; rules have been checked before.
#include "scene_arrays_view.hpp"

namespace tmkit {

// --- subtrees --------------------------------------------------------------------------------------------------------

// The subtree of `top`, parents first; none after the last.
SceneArrays::Slot SceneArrays::next_in_subtree(Slot at, Slot top) const {
    if (const Slot child = children_.first(at); child != none) return child;
    for (; at != top; at = parent_[at])
        if (const Slot next = children_.next(at); next != none) return next;
    return none;
}

std::int32_t SceneArrays::mark_subtree(Slot top) const {
    marks_.forget();
    std::int32_t count = 0;
    for (Slot at = top; at != none; at = next_in_subtree(at, top)) {
        marks_.mark(at);
        gathered_[count++] = at;
    }
    return count;
}

// --- order and poses -------------------------------------------------------------------------------------------------

// `moving` hangs under `parent` now. When that stands later in the order, the frames between the two are written anew:
// first those that stay, the parent last of them, then what hangs off the frame that moves, each in the order it was.
void SceneArrays::restore_order(Slot moving, Slot parent) {
    const std::int32_t begin = position_[moving], end = position_[parent] + 1;
    if (begin >= end) return;
    marks_.forget();
    marks_.mark(moving);
    gathered_[0] = moving;
    std::int32_t moved = 1, at = begin;
    const auto put = [this, &at](Slot slot) {
        order_[at] = slot;
        position_[slot] = at++;
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
    root_pose_.store(slot, refreshed(slot, value_of));
}

void SceneArrays::refresh_subtree(Slot top) {
    for (Slot at = top; at != none; at = next_in_subtree(at, top)) refresh(at);
}

// --- bodies ----------------------------------------------------------------------------------------------------------

SceneArrays::Slot SceneArrays::take_body(std::string_view name) {
    const Slot body = free_bodies_.take();
    body_names_.insert(body, name);
    return body;
}

void SceneArrays::leave_body(Slot slot) {
    const Slot body = body_[slot];
    const bool tops = is_top(slot), carries_inertia = inertia_frame_[body] == slot;
    if (tops) tops_.unlink(body, slot);
    if (carries_inertia && !tops) {  // the inertia stays with the body: say it again in the axes of the frame above
        inertia_[body] = inertia_[body].in_axes_of(Pose{} * pose_[slot]);
        inertia_frame_[body] = parent_[slot];
    } else if (carries_inertia) {  // no pose to the frames in other trees is known, so it cannot be theirs
        inertia_[body] = Inertia{};
        inertia_frame_[body] = none;
    }
    if (tops_.first(body) != none) return;
    body_names_.erase(body);
    free_bodies_.push_back(body);
}

// --- removal and pools -----------------------------------------------------------------------------------------------

// Takes the marked frames, which are gathered parents first, out of everything but the pool of shapes.
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

// The last pair takes the place of the one that goes.
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

}  // namespace tmkit
