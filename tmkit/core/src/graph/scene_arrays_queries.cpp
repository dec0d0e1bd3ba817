// What any thread may ask: each answer is read under the sequence lock, and only then are names looked at and errors
// made.
#include <algorithm>

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

}  // namespace tmkit
