#include <algorithm>
#include <limits>

#include "graph/scene_arrays_view.hpp"
#include "uncertainty/noise_path.hpp"

namespace tmkit {

// --- checks of names

SceneArrays::Slot SceneArrays::require_frame(std::string_view name) const {
    const Slot slot = frame_names_.find(name);
    if (slot == none) throw unknown_frame(name);
    return slot;
}

void SceneArrays::require_new_name(std::string_view name) const {
    if (name.empty()) throw errors::empty_frame_name();
    if (frame_names_.find(name) != none) throw duplicate("frame", name);
}

void SceneArrays::require_fit(std::string_view text) const {
    if (frame_names_.fits(text)) return;
    const std::size_t most = capacities_.name_bytes;
    throw Error(ErrorKind::capacity,
                "'{}' has {} bytes, but only {} are kept for a name; construct SceneArrays with a "
                "larger capacity 'name_bytes'",
                text, text.size(), most)
        .with({{"kind", "name_bytes"}, {"capacity", most}});
}

// --- adding and removing

void SceneArrays::add_frame(const FrameSpecification& frame) {
    const Writer writer(lock_);
    add(frame, frame.parent.empty() ? none : require_frame(frame.parent));
}

// The body of a new frame, none if it is to be created.
SceneArrays::Slot SceneArrays::body_for(const FrameSpecification& frame, Slot parent) const {
    const Slot body = body_names_.find(frame.body.empty() ? frame.name : frame.body);
    if (body != none)
        rules::check_entry(View(*this), frame.name, body, !frame.body.empty(), parent,
                           frame.joint.type);
    return body;
}

void SceneArrays::require_room_for(const FrameSpecification& frame, bool with_body) const {
    require_fit(frame.name);
    if (with_body) require_fit(frame.body);
    if (next_id_ == std::numeric_limits<FrameId>::max())
        throw Error(ErrorKind::capacity,
                    "all ids of frames are used; create the scene again from its specifications")
            .with({{"kind", "ids"}, {"capacity", next_id_}});
    if (free_frames_.empty()) throw errors::full("frame", capacities_.frames, "capacity");
    require_noise_fits(frame.noise ? frame.noise->maps.size() : 0);
    if (with_body && free_bodies_.empty()) throw errors::full("body", capacities_.bodies, "bodies");
    if (frame.shapes.size() > shapes_.room())
        throw errors::full("attached shape", capacities_.shapes, "shapes");
}

void SceneArrays::add(const FrameSpecification& frame, Slot parent) {
    require_new_name(frame.name);
    if (parent == none && (frame.joint.type != JointType::fixed || frame.pose != Pose{}))
        throw errors::root_with_edge(frame.name);
    if (parent == none && frame.noise) throw errors::root_without(frame.name, "covariance");
    Slot body = body_for(frame, parent);
    const JointPlan plan =
        plan_joint(frame.joint, frame.joint.name.empty() ? frame.name : frame.joint.name, none);
    require_room_for(frame, body == none);
    Ref<FrameDetails> details = frame.classes.empty() ? nullptr : make_ref<FrameDetails>();
    if (details) details->classes = frame.classes;

    const Section section(lock_);
    const Slot slot = free_frames_.take();
    frame_names_.insert(slot, frame.name);
    id_.store(slot, next_id_++);
    pose_.store(slot, frame.pose);
    entry_.store(slot, none);
    details_[slot] = details;
    write_noise(slot, frame.noise.get());
    for (const AttachedShape& shape : frame.shapes) shapes_.append(first_shape_[slot], shape);
    parent_.store(slot, parent);
    if (parent != none) children_.link(parent, slot);
    if (body == none) body = take_body(frame.body.empty() ? frame.name : frame.body);
    bare_.store(body, 0);
    body_.store(slot, body);
    if (is_top(slot)) tops_.link(body, slot);
    const std::int32_t count = counts_[frame_count];
    order_[count] = slot;
    position_[slot] = count;
    sequence_.store(count, slot);
    counts_.store(frame_count, count + 1);
    write_joint(slot, plan);
    if (is_actuated(plan.type)) renew_entries();
    refresh(slot);
}

void SceneArrays::require_no_followers() const {
    if (followers_ == 0) return;
    std::string_view first;
    Slot leader = none;
    for (std::int32_t i = 0; i < counts_[frame_count]; ++i) {
        const Slot slot = order_[i];
        if (leader_[slot] == none || marks_.has(slot) || !marks_.has(leader_[slot])) continue;
        const std::string_view follower = joint_names_.view(slot);
        if (leader != none && first < follower) continue;
        first = follower;
        leader = leader_[slot];
    }
    if (leader != none) throw errors::is_followed(joint_names_.view(leader), first);
}

void SceneArrays::remove_frame(std::string_view name, bool with_subtree) {
    const Writer writer(lock_);
    const Slot top = require_frame(name);
    const std::int32_t leaving = mark_subtree(top);
    if (!with_subtree && leaving > 1) {
        Slot first = children_.first(top);
        for (Slot child = first; child != none; child = children_.next(child))
            if (id_[child] < id_[first]) first = child;
        throw errors::has_children(name, frame_names_.view(first));
    }
    require_no_followers();
    rules::check_twists_stay(View(*this), [this](Slot slot) { return marks_.has(slot); });
    {
        const Section section(lock_);
        if (parent_[top] != none) children_.unlink(parent_[top], top);
        remove_marked(leaving);
    }
    for (std::int32_t i = 0; i < leaving; ++i) {  // readers need not wait for this release
        const Slot slot = gathered_[i];
        shapes_.clear(first_shape_[slot]);
        details_[slot] = nullptr;
        write_noise(slot, nullptr);
    }
}

void SceneArrays::rename_frame(std::string_view name, std::string_view new_name) {
    const Writer writer(lock_);
    const Slot slot = require_frame(name);
    if (name == new_name) return;
    require_new_name(new_name);
    require_fit(new_name);
    const Section section(lock_);
    frame_names_.erase(slot);
    frame_names_.insert(slot, new_name);
}

// --- moving

void SceneArrays::move(Slot moving, Slot parent, const Pose& pose) {
    const rules::Move plan = rules::check_move(View(*this), moving, parent, pose);
    if (plan.nothing) return;
    const bool ends_twists = plan.cuts && counts_[twist_count] != 0;
    const auto ends = [this](Slot frame) { return marks_.has(frame); };
    if (ends_twists) {
        marks_.forget();
        rules::each_twist_across(View(*this), moving,
                                 [this](Slot frame, Slot) { marks_.mark(frame); });
        mark_redundant_twists(moving, parent, pose, type_[moving]);
    }

    const Section section(lock_);
    pose_.store(moving, pose);
    if (ends_twists) drop_twists(ends);
    if (parent_[moving] != parent) {
        drop_stamps(moving, none);  // a history belongs to an edge
        change_parent(moving, parent, plan.joins);
    }
    refresh_subtree(moving);
}

// Mark the twist edges that become redundant when a frame is attached to another.
void SceneArrays::mark_redundant_twists(Slot moving, Slot parent, const Pose& pose,
                                        JointType type) {
    rules::join_twists(View(*this), twist_rules_, body_ways_, moving, parent, pose, type,
                       [this](Slot frame) { return marks_.has(frame); },
                       [this](Slot frame) { marks_.mark(frame); });
}

void SceneArrays::change_parent(Slot moving, Slot parent, bool joins_parts) {
    if (joins_parts) tops_.unlink(body_[moving], moving);  // its body now has one root fewer
    if (parent_[moving] != none) children_.unlink(parent_[moving], moving);
    parent_.store(moving, parent);
    children_.link(parent, moving);
    restore_order(moving, parent);
}

void SceneArrays::attach(std::string_view root, std::string_view parent, const Pose& pose,
                         const Joint& joint) {
    const Writer writer(lock_);
    const Slot moving = require_frame(root), target = require_frame(parent);
    const bool joins_parts = rules::check_attachment(View(*this), moving, target, joint.type);
    marks_.forget();
    mark_redundant_twists(moving, target, pose, joint.type);
    const JointPlan plan =
        plan_joint(joint, joint.name.empty() ? root : std::string_view(joint.name), moving);

    const Section section(lock_);
    pose_.store(moving, pose);
    drop_twists([this](Slot frame) { return marks_.has(frame); });
    change_parent(moving, target, joins_parts);
    write_joint(moving, plan);
    if (is_actuated(plan.type)) renew_entries();
    refresh_after_joint(moving);
}

void SceneArrays::reparent(std::string_view frame, std::string_view parent,
                           const Pose& parent_from_frame, const Ref<const EdgeNoise>& noise) {
    const Writer writer(lock_);
    const Slot moving = require_frame(frame), target = require_frame(parent);
    require_noise_fits(noise ? noise->maps.size() : 0);
    move(moving, target, parent_from_frame);
    state_motion(moving);
    write_noise(moving, noise.get());
}

void SceneArrays::reparent_keeping_pose(std::string_view frame, std::string_view parent,
                                        const Configuration& q, const Ref<const EdgeNoise>& slip) {
    const Writer writer(lock_);
    require_length(q);
    const Slot moving = require_frame(frame), target = require_frame(parent);
    const bool stays = parent_[moving] == target;
    if (stays && !slip) return state_motion(moving);
    const View view(*this, q);
    // Throws the error.
    if (!stays && rules::is_below(view, moving, target)) return move(moving, target, pose_[moving]);
    require_noise_fits(slip ? slip->maps.size() : 0);
    Pose pose = stays ? pose_[moving] : pose_between(moving, target, q);
    // The new edge must give this pose at the joint's present value.
    if (!stays && entry_[moving] != none) {
        const double value =
            multiplier_[moving] * (q ? (*q)[entry_[moving]] : q_[entry_[moving]]) + offset_[moving];
        pose = pose * joint_motion(type_[moving], axis_[moving], value).inverse();
    }
    if (noise_.empty()) {
        move(moving, target, pose);
        return state_motion(moving);
    }
    noise_sum_.clear();
    if (!stays) sum_errors(path(moving, target, q), noise_sum_);
    else if (const EdgeNoise* edge_noise = noise_at(moving)) noise_sum_.add(*edge_noise, as_it_is);
    if (slip) noise_sum_.add(*slip, as_it_is);
    require_noise_fits(noise_sum_.columns().size());
    require_in_range(noise_sum_.covariance().matrix(), "a covariance");
    if (!stays) move(moving, target, pose);
    state_motion(moving);
    noise_sum_.write_edge(*noise_[moving]);
}

void SceneArrays::set_pose(std::string_view frame, const Pose& parent_from_frame) {
    const Writer writer(lock_);
    const Slot moving = require_frame(frame);
    if (parent_[moving] == none) throw errors::root_without(frame, "pose");
    move(moving, parent_[moving], parent_from_frame);
}

void SceneArrays::forward(std::span<const double> q) {
    const Writer writer(lock_);
    require_length(q);
    const auto value_of = [&q](std::int32_t entry) { return q[entry]; };
    const std::span<const Slot> frames(order_.data(),
                                       static_cast<std::size_t>(counts_[frame_count]));
    for (const Slot slot : frames)
        if (moves_[slot]) root_pose_.prepare(slot, pose_from_parent(slot, value_of));
    const Section section(lock_);
    for (std::size_t i = 0; i < q.size(); ++i) q_.store(static_cast<std::int32_t>(i), q[i]);
    for (const Slot slot : frames)
        if (moves_[slot]) root_pose_.show(slot);
}

// --- content of frames

// Data of a frame besides shapes are shared and never changed in place: other classes make a new
// record.
template <class Change> void SceneArrays::change_details(std::string_view frame, Change&& change) {
    const Writer writer(lock_);
    Ref<const FrameDetails>& details = details_[require_frame(frame)];
    FrameDetails changed = details ? *details : FrameDetails{};
    change(changed);
    changed.shapes.clear();  // in pools, as the following
    changed.twist.reset();
    changed.stamps = nullptr;
    details =
        changed.empty() ? nullptr : Ref<const FrameDetails>(new FrameDetails(std::move(changed)));
}

void SceneArrays::set_classes(std::string_view frame, std::vector<std::string> classes) {
    change_details(frame, [&](FrameDetails& changed) {
        rules::check_classes(View(*this), require_frame(frame), classes);
        changed.classes = std::move(classes);
    });
}

void SceneArrays::set_attributes(std::string_view frame, Attributes attributes) {
    std::sort(attributes.begin(), attributes.end());
    change_details(frame,
                   [&](FrameDetails& changed) { changed.attributes = std::move(attributes); });
}

void SceneArrays::set_shapes(std::string_view frame, std::span<const AttachedShape> shapes) {
    const Writer writer(lock_);
    const Slot slot = require_frame(frame);
    if (shapes.size() > shapes_.room() + shapes_.size(first_shape_[slot]))
        throw errors::full("attached shape", capacities_.shapes, "shapes");
    shapes_.clear(first_shape_[slot]);
    for (const AttachedShape& shape : shapes) shapes_.append(first_shape_[slot], shape);
}

void SceneArrays::add_shape(std::string_view frame, const AttachedShape& shape) {
    const Writer writer(lock_);
    const Slot slot = require_frame(frame);
    if (shapes_.room() == 0) throw errors::full("attached shape", capacities_.shapes, "shapes");
    shapes_.append(first_shape_[slot], shape);
}

void SceneArrays::set_inertia(std::string_view frame, const std::optional<Inertia>& inertia) {
    const Writer writer(lock_);
    const Slot slot = require_frame(frame);
    if (inertia) inertia->check_stored();
    const Slot body = body_[slot];
    inertia_frame_[body] = inertia ? slot : none;
    inertia_[body] = inertia.value_or(Inertia{});
}

std::array<FrameId, 2> SceneArrays::pair_of(Slot a, Slot b) const {
    const FrameId id_a = id_.load(a), id_b = id_.load(b);
    return {std::min(id_a, id_b), std::max(id_a, id_b)};
}

void SceneArrays::allow_collision(std::string_view a, std::string_view b, std::string_view reason) {
    const Writer writer(lock_);
    const Slot slot_a = require_frame(a);
    const std::array<FrameId, 2> ids = pair_of(slot_a, require_frame(b));
    if (ids[0] == ids[1]) throw errors::collides_with_itself(a);
    require_fit(reason);
    Slot pair = pairs_.find(pair_key(ids));
    if (pair == none) {
        if (static_cast<std::size_t>(pair_count_) == capacities_.allowed_pairs)
            throw errors::full("allowed pair", capacities_.allowed_pairs, "allowed_pairs");
        const Section section(lock_);
        pair = pair_count_++;
        pair_ids_[pair] = ids;
        pair_frames_[pair] = {slot_a, frame_names_.find(b)};
        pairs_.insert(pair, pair_key(ids));
    }
    reasons_.set(pair, reason);
}

void SceneArrays::forbid_collision(std::string_view a, std::string_view b) {
    const Writer writer(lock_);
    const Slot slot_a = require_frame(a);
    const std::array<FrameId, 2> ids = pair_of(slot_a, require_frame(b));
    const Slot pair = pairs_.find(pair_key(ids));
    if (pair == none) return;
    const Section section(lock_);
    drop_pair(pair);
}

}  // namespace tmkit
