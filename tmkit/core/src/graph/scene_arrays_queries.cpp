// What any thread may ask: each answer is read under the sequence lock, and only then are names looked at and errors
// made.
#include <algorithm>
#include <utility>

#include "tmkit/scene_arrays.hpp"
#include "tmkit/scene_errors.hpp"

namespace tmkit {

// --- walks -----------------------------------------------------------------------------------------------------------
// A reader may see links of two states at once, so every walk ends after as many steps as there is room for frames.

// How many edges lie above a frame.
std::int32_t SceneArrays::depth(Slot slot) const {
    const auto most = static_cast<std::int32_t>(capacities_.frames);
    std::int32_t edges = 0;
    for (Slot at = parent_.load(slot); at != none && edges < most; at = parent_.load(at)) ++edges;
    return edges;
}

SceneArrays::Slot SceneArrays::root_of(Slot slot) const {
    std::size_t steps = 0;
    for (Slot above = parent_.load(slot); above != none && steps < capacities_.frames; ++steps) {
        slot = above;
        above = parent_.load(slot);
    }
    return slot;
}

SceneArrays::Ways SceneArrays::ways(Slot target, Slot reference) const {
    Ways found;
    const std::int32_t above_target = depth(target), above_reference = depth(reference);
    const auto climb = [this](Slot& at, std::int32_t& edges) {
        at = parent_.load(at);
        ++edges;
    };
    while (target != none && found.target < above_target - above_reference) climb(target, found.target);
    while (reference != none && found.reference < above_reference - above_target) climb(reference, found.reference);
    while (target != reference && target != none && reference != none &&
           static_cast<std::size_t>(found.target) < capacities_.frames) {
        climb(target, found.target);
        climb(reference, found.reference);
    }
    found.meet = target == reference && target != none;
    return found;
}

Pose SceneArrays::edge(Slot slot, const Configuration& q) const { return edge_from(slot, pose_.load(slot), q); }

Pose SceneArrays::edge_from(Slot slot, const Pose& pose, const Configuration& q) const {
    const std::int32_t entry = entry_.load(slot);
    if (entry == none || (q && static_cast<std::size_t>(entry) >= q->size())) return pose;
    const double value = multiplier_.load(slot) * (q ? (*q)[entry] : q_.load(entry)) + offset_.load(slot);
    return moved(pose, type_.load(slot), axis_.load(slot), value);
}

// The product of so many edges, downwards to a frame. The way up is noted in pieces that fit the stack, the topmost
// piece first; chains longer than one piece are climbed again for each.
template <class EdgeOf>
Pose SceneArrays::pose_down(std::int32_t edges, Slot slot, EdgeOf&& edge_of) const {
    constexpr std::int32_t piece = 256;
    Slot path[piece];
    Pose result;
    while (edges > 0) {
        const std::int32_t noted = edges % piece ? edges % piece : piece;
        Slot at = slot;
        for (std::int32_t below = edges - noted; below > 0 && at != none; --below) at = parent_.load(at);
        std::int32_t count = 0;
        for (; count < noted && at != none; ++count, at = parent_.load(at)) path[count] = at;
        while (count > 0) result = composed(result, edge_of(path[--count]));
        edges -= noted;
    }
    return result;
}

Pose SceneArrays::pose_between(Slot target, Slot reference, const Configuration& q) const {
    const Ways found = ways(target, reference);
    if (!found.meet) throw disconnected(frame_names_.view(target), frame_names_.view(reference));
    const auto edge_of = [&](Slot slot) { return edge(slot, q); };
    const Pose down = pose_down(found.target, target, edge_of);
    return found.reference == 0 ? down : pose_down(found.reference, reference, edge_of).inverse() * down;
}

// --- poses -----------------------------------------------------------------------------------------------------------

SceneArrays::Found SceneArrays::find_pose(std::string_view target, std::optional<std::string_view> reference,
                                          const Configuration& q, const Moment* moment) const {
    if (q && q->size() != joint_count()) return {Trouble::length, {}};
    const Slot to = frame_names_.find(target);
    if (to == none) return {Trouble::target, {}};
    Found at_moment;  // the first edge that has no pose then
    const auto edge_of = [&](Slot slot) {
        if (!moment) return edge(slot, q);
        const Found found = pose_at(slot, *moment);
        if (found.trouble != Trouble::nothing && at_moment.trouble == Trouble::nothing) at_moment = found;
        return edge_from(slot, found.pose, q);
    };
    if (!reference && !q && !moment) return {Trouble::nothing, root_pose_.load(to)};
    if (!reference) {
        at_moment.pose = pose_down(depth(to), to, edge_of);
        return at_moment;
    }
    const Slot from = frame_names_.find(*reference);
    if (from == none) return {Trouble::reference, {}};
    const Ways found = ways(to, from);
    if (!found.meet) return {Trouble::trees, {}};
    const Pose down = pose_down(found.target, to, edge_of);
    const Pose pose = found.reference == 0 ? down : pose_down(found.reference, from, edge_of).inverse() * down;
    return {at_moment.trouble, pose, at_moment.where};
}

Pose SceneArrays::pose(std::string_view target, std::optional<std::string_view> reference,
                       const Configuration& q) const {
    return pose_of(lock_.read([&] { return find_pose(target, reference, q, nullptr); }), target, reference, q, nullptr);
}

Pose SceneArrays::pose_of(const Found& found, std::string_view target, std::optional<std::string_view> reference,
                          const Configuration& q, const Moment* moment) const {
    switch (found.trouble) {
        case Trouble::nothing: break;
        case Trouble::target: throw unknown_frame(target);
        case Trouble::reference: throw unknown_frame(*reference);
        case Trouble::trees: throw disconnected(target, *reference);
        case Trouble::length: throw refusals::wrong_length(joint_count(), q->size());
        case Trouble::stamp: throw outside_stamps(found.where, moment->stamp);
        case Trouble::numbers: throw refusals::scene("the numbers of a stamped pose are too large to go between");
    }
    return found.pose;
}

Pose SceneArrays::local_pose(std::string_view frame) const {
    return read_frame(frame, [this](Slot slot) { return pose_.load(slot); });
}

std::size_t SceneArrays::write_poses(std::span<double> out) const {
    const std::size_t frames = lock_.read([&] {
        const std::size_t count = size();
        if (out.size() < 7 * count) return count;
        double* row = out.data();
        for (std::size_t i = 0; i < count; ++i, row += 7)
            root_pose_.load_into(sequence_.load(static_cast<std::int32_t>(i)), row);
        return count;
    });
    if (out.size() < 7 * frames)
        throw Error(ErrorKind::configuration, "there are {} frames, but room for the poses of {}", frames,
                    out.size() / 7)
            .with({{"expected", frames}, {"received", out.size() / 7}});
    return frames;
}

std::size_t SceneArrays::write_q(std::span<double> out) const {
    const std::size_t joints = lock_.read([&] {
        const std::size_t count = joint_count();
        for (std::size_t i = 0; i < count && i < out.size(); ++i) out[i] = q_.load(static_cast<std::int32_t>(i));
        return count;
    });
    if (out.size() < joints) throw refusals::wrong_length(joints, out.size());
    return joints;
}

void SceneArrays::jacobian(std::string_view frame, std::span<double> rows) const {
    const Trouble trouble = lock_.read([&] {
        const std::size_t columns = joint_count();
        if (rows.size() != 6 * columns) return Trouble::length;
        Slot at = frame_names_.find(frame);
        if (at == none) return Trouble::target;
        std::fill(rows.begin(), rows.end(), 0.0);
        const Vector3 point = root_pose_.load(at).translation;
        for (std::size_t steps = 0; at != none && steps < capacities_.frames; at = parent_.load(at), ++steps) {
            const std::int32_t entry = entry_.load(at);
            if (entry == none || static_cast<std::size_t>(entry) >= columns) continue;
            const Vector6 twist =
                joint_twist(type_.load(at), axis_.load(at), multiplier_.load(at), root_pose_.load(at), point);
            for (std::size_t i = 0; i < 6; ++i) rows[i * columns + static_cast<std::size_t>(entry)] += twist[i];
        }
        return Trouble::nothing;
    });
    if (trouble == Trouble::target) throw unknown_frame(frame);
    if (trouble == Trouble::length)
        throw Error(ErrorKind::configuration, "a Jacobian has 6 rows of {} numbers, but there is room for {}",
                    joint_count(), rows.size());
}

// --- names -----------------------------------------------------------------------------------------------------------

bool SceneArrays::contains(std::string_view frame) const {
    return lock_.read([&] { return frame_names_.find(frame) != none; });
}

std::optional<std::string> SceneArrays::parent(std::string_view frame) const {
    return read_frame(frame, [this](Slot slot) -> std::optional<std::string> {
        const Slot above = parent_.load(slot);
        if (above == none) return std::nullopt;
        return frame_names_.text(above);
    });
}

std::vector<std::string> SceneArrays::ancestors(std::string_view frame) const {
    return read_frame(frame, [this](Slot slot) {
        std::vector<std::string> names;
        Slot at = parent_.load(slot);
        for (std::size_t steps = 0; at != none && steps < capacities_.frames; at = parent_.load(at), ++steps)
            names.push_back(frame_names_.text(at));
        return names;
    });
}

std::string SceneArrays::root(std::string_view frame) const {
    return read_frame(frame, [this](Slot slot) { return frame_names_.text(root_of(slot)); });
}

std::vector<std::string> SceneArrays::children(std::string_view frame) const {
    return read_frame(frame, [this](Slot slot) {
        std::vector<std::pair<FrameId, Slot>> found;
        // While the writer changes the list it may lead round in a circle; then what is found is not used.
        for (Slot child = first_child_.load(slot); child != none && found.size() < size();
             child = next_sibling_.load(child))
            found.emplace_back(id_.load(child), child);
        std::sort(found.begin(), found.end());  // ids grow with insertion
        std::vector<std::string> names;
        names.reserve(found.size());
        for (const auto& [id, child] : found) names.push_back(frame_names_.text(child));
        return names;
    });
}

std::vector<std::string> SceneArrays::names_in(const NameTable& table, const Column<Slot>& slots, int counted) const {
    return lock_.read([&] {
        std::vector<std::string> names;
        const std::int32_t count = counts_.load(counted);
        names.reserve(static_cast<std::size_t>(count));
        for (std::int32_t i = 0; i < count; ++i) names.push_back(table.text(slots.load(i)));
        return names;
    });
}

std::vector<std::string> SceneArrays::frame_names() const { return names_in(frame_names_, sequence_, frame_count); }

std::vector<std::string> SceneArrays::joint_names() const { return names_in(joint_names_, entries_, entry_count); }

bool SceneArrays::is_allowed(std::string_view a, std::string_view b) const {
    Trouble trouble = Trouble::nothing;
    const bool allowed = lock_.read([&] {
        const Slot slot_a = frame_names_.find(a), slot_b = frame_names_.find(b);
        trouble = slot_a == none ? Trouble::target : slot_b == none ? Trouble::reference : Trouble::nothing;
        if (trouble != Trouble::nothing) return false;
        const std::array<FrameId, 2> ids = pair_of(slot_a, slot_b);
        return pairs_.find(pair_key(ids)) != none;
    });
    if (trouble != Trouble::nothing) throw unknown_frame(trouble == Trouble::target ? a : b);
    return allowed;
}

// --- errors ----------------------------------------------------------------------------------------------------------

void SceneArrays::require_length(const Configuration& q) const {
    if (q && q->size() != joint_count()) throw refusals::wrong_length(joint_count(), q->size());
}

Error SceneArrays::unknown_frame(std::string_view name) const {
    std::vector<std::string> candidates = frame_names();
    std::sort(candidates.begin(), candidates.end());  // of two that are equally near, the first is named
    return unknown_name("frame", name, candidates);
}

Error SceneArrays::disconnected(std::string_view target, std::string_view reference) const {
    const auto root = [this](std::string_view frame) {
        return lock_.read([&] {
            const Slot slot = frame_names_.find(frame);
            return slot == none ? std::string() : frame_names_.text(root_of(slot));
        });
    };
    return refusals::disconnected(target, reference, root(target), root(reference));
}

// --- for tests -------------------------------------------------------------------------------------------------------

// Of one frame: its name, joint, pose and body.
std::string SceneArrays::defects_of_frame(Slot slot) const {
    const std::string name(frame_names_.view(slot));
    const bool moves = is_actuated(type_[slot]);
    if (frame_names_.find(name) != slot) return "name table misses " + name;
    if (moves != (entry_[slot] != none)) return "entry of " + name + " is wrong";
    if (moves && joint_names_.find(joint_names_.view(slot)) != slot) return "joint table misses " + name;
    if (leader_[slot] != none && !is_actuated(type_[leader_[slot]])) return "leader of " + name + " is gone";
    const Pose local = edge(slot, std::nullopt);
    if (root_pose_[slot] != (parent_[slot] == none ? local : root_pose_[parent_[slot]] * local))
        return "pose of " + name + " is old";
    bool listed = false;
    for (Slot top = first_top_[body_[slot]]; top != none; top = next_top_[top]) listed |= top == slot;
    return listed != is_top(slot) ? "body of " + name + " misses a topmost frame" : "";
}

std::string SceneArrays::defects_of_order() const {
    std::vector<char> seen(capacities_.frames, 0);
    for (std::int32_t i = 0; i < counts_[frame_count]; ++i) {
        const Slot slot = order_[i];
        const std::string name(frame_names_.view(slot));
        if (std::exchange(seen[slot], 1)) return name + " is twice in the order";
        if (position_[slot] != i) return "position of " + name + " is wrong";
        if (parent_[slot] != none && !seen[parent_[slot]]) return name + " stands before its parent";
        if (std::string defect = defects_of_frame(slot); !defect.empty()) return defect;
    }
    FrameId before = no_frame;
    for (std::int32_t i = 0; i < counts_[frame_count]; before = id_[sequence_[i++]])
        if (!seen[sequence_[i]] || id_[sequence_[i]] <= before) return "the sequence is out of order";
    return {};
}

std::string SceneArrays::defects_of_children() const {
    const std::int32_t count = counts_[frame_count];
    for (std::int32_t i = 0; i < count; ++i) {
        std::size_t children = 0;
        const Slot slot = order_[i];
        for (Slot child = first_child_[slot]; child != none; child = next_sibling_[child], ++children)
            if (parent_[child] != slot) return "a child has another parent";
        for (std::int32_t j = 0; j < count; ++j) children -= parent_[sequence_[j]] == slot;
        if (children != 0) return "a frame has lost a child";
    }
    return free_frames_.size() + static_cast<std::size_t>(count) != capacities_.frames ? "a slot is lost" : "";
}

std::string SceneArrays::defects() const {
    const Writer writer(lock_);
    for (const auto part : {&SceneArrays::defects_of_order, &SceneArrays::defects_of_children,
                            &SceneArrays::defects_of_twists, &SceneArrays::defects_of_pools})
        if (std::string defect = (this->*part)(); !defect.empty()) return defect;
    return {};
}

std::string SceneArrays::defects_of_twists() const {
    for (std::int32_t i = 0; i < counts_[frame_count]; ++i) {
        const Slot slot = sequence_[i], twist = twist_[slot];
        if (twist == none) continue;
        const std::string name(frame_names_.view(slot));
        if (twist >= counts_[twist_count] || twist_frame_[twist] != slot || twist_on_[twist] != body_[slot])
            return "twist of " + name + " is wrong";
        if (body_names_.find(body_names_.view(twist_reference_[twist])) != twist_reference_[twist])
            return "reference of the twist of " + name + " is gone";
    }
    for (Slot twist = 0; twist < counts_[twist_count]; ++twist)
        if (twist_[twist_frame_[twist]] != twist) return "a twist has lost its frame";
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
        stamps += known->entries.size();
        known->check(name);
    }
    for (std::size_t group = 0; group < is_group_.size(); ++group) {
        groups += is_group_[group] != 0;
        members += members_.size(group_frames_[group]) + members_.size(group_groups_[group]);
    }
    for (std::size_t body = 0; body < capacities_.bodies; ++body)
        bodies += bare_[static_cast<Slot>(body)] || first_top_[body] != none;
    if (stamps + free_stamps_ != capacities_.stamps) return "a stamped pose is lost";
    if (members + members_.room() != capacities_.group_members) return "a member of a group is lost";
    if (groups + free_groups_.size() != capacities_.groups) return "a group is lost";
    if (bodies + free_bodies_.size() != capacities_.bodies) return "a body is lost";
    return {};
}

}  // namespace tmkit
