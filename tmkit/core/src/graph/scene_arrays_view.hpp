// View of arrays for the rules of scenes (scene_rules.hpp), and the path between two of their
// frames, with its errors (noise_path.hpp).
#pragma once

#include <span>

#include "graph/scene_rules.hpp"
#include "tmkit/scene_arrays.hpp"

namespace tmkit {

// For the writer, except parents, bodies, ids, names, stamps and twists, which queries of any
// thread read.
class SceneArrays::View {
public:
    using Frame = Slot;
    using Body = Slot;
    static constexpr Slot none = SceneArrays::none, no_body = SceneArrays::none;
    std::size_t most_steps() const { return a_.capacities_.frames; }

    explicit View(const SceneArrays& arrays, const Configuration& q = std::nullopt)
        : a_(arrays), q_(q) {}

    Slot frame_with(FrameId id) const {
        std::int32_t current_slot = 0;
        while (a_.id_[a_.sequence_[current_slot]] != id) ++current_slot;
        return a_.sequence_[current_slot];
    }
    Slot parent(Slot frame) const { return a_.parent_.load(frame); }
    Slot body(Slot frame) const { return a_.body_.load(frame); }
    FrameId id(Slot frame) const { return a_.id_.load(frame); }
    std::string name(Slot frame) const { return a_.frame_names_.text(frame); }
    std::string body_name(Slot body) const {
        return body == none ? std::string() : a_.body_names_.text(body);
    }
    JointType joint_type(Slot frame) const { return a_.type_[frame]; }
    bool is_stated(Slot frame) const { return a_.stated_.load(frame) != 0; }
    const Pose& pose(Slot frame) const { return a_.pose_[frame]; }
    bool is_uncertain(Slot frame) const { return a_.noise_at(frame) != nullptr; }
    bool has_stamps(Slot frame) const { return a_.stamp_count_.load(frame) != none; }
    Slot leader(Slot frame) const { return a_.leader_[frame]; }
    const JointNumbers& joint_numbers(Slot frame) const { return a_.numbers_[frame]; }
    std::vector<std::string> joint_names() const { return a_.joint_names(); }
    std::string joint_name(Slot frame) const { return a_.joint_names_.text(frame); }
    void each_joint(auto&& visit) const {
        for (std::int32_t i = 0; i < a_.counts_[frame_count]; ++i)
            if (is_actuated(a_.type_[a_.sequence_[i]])) visit(a_.sequence_[i]);
    }
    Slot twist_reference(Slot frame) const { return a_.twist_reference_.load(frame); }
    const Vector6& twist_vector(Slot frame) const { return a_.twist_vector_[frame]; }
    bool waits(Slot frame) const {
        return a_.details_[frame] && is_observation(a_.details_[frame]->classes);
    }
    Slot find_top(Slot body, auto&& test) const {
        Slot top = body == none ? none : a_.tops_.first(body);
        for (std::size_t steps = 0; top != none && !test(top); top = a_.tops_.next(top))
            if (++steps > most_steps()) return none;
        return top;
    }
    void each_below(Slot top, auto&& visit) const {
        for (Slot current_slot = top; current_slot != none;
             current_slot = a_.next_in_subtree(current_slot, top))
            visit(current_slot);
    }
    void each_body(auto&& visit) const {
        for (std::size_t body = 0; body < a_.capacities_.bodies; ++body)
            visit(static_cast<Slot>(body));
    }
    std::size_t twist_count() const {
        return static_cast<std::size_t>(a_.counts_.load(SceneArrays::twist_count));
    }
    void each_twist(auto&& visit) const {
        const std::int32_t count = a_.counts_.load(SceneArrays::twist_count);
        for (std::int32_t i = 0; i < count; ++i) {
            const Slot frame = a_.twists_.load(i);
            visit(frame, twist_reference(frame));
        }
    }
    Pose relative(Slot target, Slot reference) const {
        return a_.pose_between(target, reference, q_);
    }

    // For motions: see scene_relations.cpp.
    Path path(Slot target, Slot reference) const;
    JointRule rule(Slot frame) const {
        return {static_cast<std::size_t>(a_.entry_[frame]), a_.multiplier_[frame],
                a_.offset_[frame]};
    }
    Pose edge(Slot frame, const JointRule&) const { return a_.edge(frame, q_); }
    const Vector3& axis(Slot frame) const { return a_.axis_[frame]; }
    const EdgeNoise* twist_noise(Slot frame) const { return a_.twist_noise_[frame].get(); }

private:
    const SceneArrays& a_;
    const Configuration q_;
};

class SceneArrays::Path {
public:
    Path(const SceneArrays& arrays, const Configuration& q, std::span<const Slot> to,
         std::span<const Slot> from)
        : arrays_(arrays), q_(q), sides_{to, from} {}
    std::size_t count(bool up) const { return sides_[up].size(); }
    Slot edge(bool up, std::size_t i) const { return sides_[up][i]; }
    Pose pose_of(Slot edge) const { return arrays_.edge(edge, q_); }
    const EdgeNoise* noise_of(Slot edge) const { return arrays_.noise_at(edge); }

private:
    const SceneArrays& arrays_;
    const Configuration q_;
    std::span<const Slot> sides_[2];  // root first
};

inline SceneArrays::Path SceneArrays::View::path(Slot target, Slot reference) const {
    return a_.path(target, reference, q_);
}

// The product of a number of edges, downwards to a frame. The ascent is stored in pieces that fit
// the stack, the topmost piece first; longer chains are climbed again for each piece.
template <class EdgeOf>
Pose SceneArrays::pose_down(std::int32_t edges, Slot slot, EdgeOf&& edge_of) const {
    constexpr std::int32_t piece = 256;
    Slot path[piece];
    Pose result;
    while (edges > 0) {
        const std::int32_t noted = edges % piece ? edges % piece : piece;
        Slot current_slot = slot;
        for (std::int32_t below = edges - noted; below > 0 && current_slot != none; --below)
            current_slot = parent_.load(current_slot);
        std::int32_t count = 0;
        for (; count < noted && current_slot != none;
             ++count, current_slot = parent_.load(current_slot))
            path[count] = current_slot;
        while (count > 0) result = compose(result, edge_of(path[--count]));
        edges -= noted;
    }
    return result;
}

template <class EdgeOf>
Pose SceneArrays::path_pose(Slot target, Slot reference, EdgeOf&& edge_of) const {
    if (reference == none) return pose_down(depth(target), target, edge_of);
    const PathLengths lengths = path_lengths(target, reference);
    const Pose down = pose_down(lengths.target, target, edge_of);
    return lengths.reference == 0
               ? down
               : pose_down(lengths.reference, reference, edge_of).inverse() * down;
}

template <class Goes> void SceneArrays::drop_twists(Goes&& goes) {
    std::int32_t kept_count = 0;
    for (std::int32_t i = 0; i < counts_[twist_count]; ++i) {
        const Slot frame = twists_[i];
        if (!goes(frame)) {
            twists_.store(kept_count++, frame);
            continue;
        }
        twist_reference_.store(frame, none);
        twist_noise_[frame] = nullptr;
    }
    counts_.store(twist_count, kept_count);
}

}  // namespace tmkit
