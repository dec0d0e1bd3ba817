// Queries for any thread: each result is read under the sequence lock; names and errors are built
// afterwards.
#include <algorithm>

#include "scene_arrays_view.hpp"

namespace tmkit {

// --- walks
// A reader may get links of two states at once, so every walk ends after as many steps as the
// capacity of frames.

// The number of edges above a frame.
std::int32_t SceneArrays::depth(Slot slot) const {
    const auto most = static_cast<std::int32_t>(capacities_.frames);
    std::int32_t edges = 0;
    for (Slot current_slot = parent_.load(slot); current_slot != none && edges < most;
         current_slot = parent_.load(current_slot))
        ++edges;
    return edges;
}

SceneArrays::PathLengths SceneArrays::path_lengths(Slot to, Slot from) const {
    PathLengths result;
    Slot target = to, reference = from;
    const std::int32_t above_target = depth(target), above_reference = depth(reference);
    const auto climb = [this](Slot& current_slot, std::int32_t& edges) {
        current_slot = parent_.load(current_slot);
        ++edges;
    };
    while (target != none && result.target < above_target - above_reference)
        climb(target, result.target);
    while (reference != none && result.reference < above_reference - above_target)
        climb(reference, result.reference);
    while (target != reference && target != none && reference != none &&
           static_cast<std::size_t>(result.target) < capacities_.frames) {
        climb(target, result.target);
        climb(reference, result.reference);
    }
    if (target == reference && target != none) return result;
    const auto root = [this](Slot slot) {
        return frame_names_.text(rules::root_of(View(*this), slot));
    };
    throw errors::disconnected(frame_names_.text(to), frame_names_.text(from), root(to),
                               root(from));
}

Pose SceneArrays::edge(Slot slot, const Configuration& q) const {
    return edge_from(slot, pose_.load(slot), q);
}

Pose SceneArrays::edge_from(Slot slot, const Pose& pose, const Configuration& q) const {
    const std::int32_t entry = entry_.load(slot);
    if (entry == none || (q && static_cast<std::size_t>(entry) >= q->size())) return pose;
    const double value =
        multiplier_.load(slot) * (q ? (*q)[entry] : q_.load(entry)) + offset_.load(slot);
    return apply_joint(pose, type_.load(slot), axis_.load(slot), value);
}

Pose SceneArrays::pose_between(Slot target, Slot reference, const Configuration& q) const {
    return path_pose(target, reference, [&](Slot slot) { return edge(slot, q); });
}

// --- poses

Pose SceneArrays::pose(std::string_view target, std::optional<std::string_view> reference,
                       const Configuration& q) const {
    return lock_.read([&] {
        require_length(q);
        const Slot to = require_frame(target);
        return reference || q ? pose_between(to, reference_slot(reference), q)
                              : root_pose_.load(to);
    });
}

Pose SceneArrays::local_pose(std::string_view frame) const {
    return read_frame(frame, [this](Slot slot) { return pose_.load(slot); });
}

std::size_t SceneArrays::write_poses(std::span<double> out) const {
    return lock_.read([&] {
        const std::size_t count = size();
        if (out.size() < 7 * count)
            throw Error(ErrorKind::configuration,
                        "there are {} frames, but room for the poses of {}", count, out.size() / 7)
                .with({{"expected", count}, {"received", out.size() / 7}});
        double* row = out.data();
        for (std::size_t i = 0; i < count; ++i, row += 7)
            root_pose_.load_into(sequence_.load(static_cast<std::int32_t>(i)), row);
        return count;
    });
}

std::size_t SceneArrays::write_q(std::span<double> out) const {
    return lock_.read([&] {
        const std::size_t count = joint_count();
        if (out.size() < count) throw errors::wrong_length(count, out.size());
        for (std::size_t i = 0; i < count; ++i) out[i] = q_.load(static_cast<std::int32_t>(i));
        return count;
    });
}

void SceneArrays::jacobian(std::string_view frame, std::span<double> rows) const {
    lock_.read([&] {
        const std::size_t columns = joint_count();
        if (rows.size() != 6 * columns)
            throw Error(ErrorKind::configuration,
                        "a Jacobian has 6 rows of {} numbers, but there is room for {}", columns,
                        rows.size());
        const Slot slot = require_frame(frame);
        std::fill(rows.begin(), rows.end(), 0.0);
        const Vector3 point = root_pose_.load(slot).translation;
        rules::climb(View(*this), slot, [&](Slot current_slot) {
            const std::int32_t entry = entry_.load(current_slot);
            if (entry == none || static_cast<std::size_t>(entry) >= columns) return true;
            const Vector6 twist =
                joint_twist(type_.load(current_slot), axis_.load(current_slot),
                            multiplier_.load(current_slot), root_pose_.load(current_slot), point);
            for (std::size_t i = 0; i < 6; ++i)
                rows[i * columns + static_cast<std::size_t>(entry)] += twist[i];
            return true;
        });
        return slot;
    });
}

// --- names

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
        rules::climb(View(*this), parent_.load(slot), [&](Slot current_slot) {
            names.push_back(frame_names_.text(current_slot));
            return true;
        });
        return names;
    });
}

std::string SceneArrays::root(std::string_view frame) const {
    return read_frame(
        frame, [view = View(*this)](Slot slot) { return view.name(rules::root_of(view, slot)); });
}

std::vector<std::string> SceneArrays::children(std::string_view frame) const {
    return read_frame(frame, [this](Slot slot) {
        std::vector<std::pair<FrameId, Slot>> result;
        // A list that the writer changes may be circular; its result is then discarded.
        for (Slot child = children_.first(slot); child != none && result.size() < size();
             child = children_.next(child))
            result.emplace_back(id_.load(child), child);
        std::sort(result.begin(), result.end());  // ids grow with insertion
        std::vector<std::string> names;
        names.reserve(result.size());
        for (const auto& [id, child] : result) names.push_back(frame_names_.text(child));
        return names;
    });
}

std::vector<std::string> SceneArrays::names_in(const NameTable& table, const Column<Slot>& slots,
                                               int counted) const {
    return lock_.read([&] {
        std::vector<std::string> names;
        const std::int32_t count = counts_.load(counted);
        names.reserve(static_cast<std::size_t>(count));
        for (std::int32_t i = 0; i < count; ++i) names.push_back(table.text(slots.load(i)));
        return names;
    });
}

std::vector<std::string> SceneArrays::frame_names() const {
    return names_in(frame_names_, sequence_, frame_count);
}

std::vector<std::string> SceneArrays::joint_names() const {
    return names_in(joint_names_, entries_, entry_count);
}

bool SceneArrays::is_allowed(std::string_view a, std::string_view b) const {
    return lock_.read([&] {
        const Slot slot_a = require_frame(a);
        const std::array<FrameId, 2> ids = pair_of(slot_a, require_frame(b));
        return pairs_.find(pair_key(ids)) != none;
    });
}

// --- errors

void SceneArrays::require_length(const Configuration& q) const {
    if (q && q->size() != joint_count()) throw errors::wrong_length(joint_count(), q->size());
}

Error SceneArrays::unknown_frame(std::string_view name) const {
    std::vector<std::string> candidates = frame_names();
    // Of two equally near, the error names the first.
    std::sort(candidates.begin(), candidates.end());
    return unknown_name("frame", name, candidates);
}

}  // namespace tmkit
