// The edges between two frames and the errors on them.
#pragma once

#include <algorithm>
#include <array>
#include <tuple>
#include <vector>

#include "ascent.hpp"

namespace tmkit {

// The edges between two frames, and which of their sources are used more than once.
class Path {
public:
    Path(const SceneGraph& scene, const FrameRecord& reference, const FrameRecord& target)
        : to_(scene, target), from_(scene, reference) {
        std::tie(down_, up_) = below_common(to_, from_);
        std::size_t count = 0;
        const auto gather = [&](const FrameRecord& edge) {
            if (!edge.noise) return;
            for (const NoiseTerm& term : edge.noise->terms) {
                if (count < near_.size()) near_[count] = term.source.get();
                else far_.push_back(term.source.get());
                ++count;
            }
        };
        for_each_edge(gather);
        if (count <= near_.size()) {
            for (std::size_t i = 1; i < count; ++i)
                for (std::size_t j = 0; j < i; ++j)
                    if (near_[i] == near_[j]) shared_.push_back(near_[i]);
        } else {
            far_.insert(far_.end(), near_.begin(), near_.end());
            std::sort(far_.begin(), far_.end());
            for (std::size_t i = 1; i < far_.size(); ++i)
                if (far_[i] == far_[i - 1]) shared_.push_back(far_[i]);
        }
    }

    std::size_t down() const { return down_; }
    std::size_t up() const { return up_; }
    // Edge i below the common ancestor on the way to the target, and to the reference.
    const FrameRecord& to(std::size_t i) const { return *to_[down_ - 1 - i]; }
    const FrameRecord& from(std::size_t i) const { return *from_[up_ - 1 - i]; }
    bool any_shared() const { return !shared_.empty(); }
    bool is_shared(const EdgeNoise& noise) const {
        return std::any_of(noise.terms.begin(), noise.terms.end(), [&](const NoiseTerm& term) {
            return std::find(shared_.begin(), shared_.end(), term.source.get()) != shared_.end();
        });
    }
    template <class Visit>
    void for_each_edge(Visit&& visit) const {
        for (std::size_t i = 0; i < down_; ++i) visit(to(i));
        for (std::size_t i = 0; i < up_; ++i) visit(from(i));
    }

private:
    Ascent to_, from_;
    std::size_t down_ = 0, up_ = 0;
    std::array<const NoiseSource*, 24> near_;
    std::vector<const NoiseSource*> far_, shared_;
};

inline constexpr auto as_it_is = [](const Vector6& column) { return column; };

// Visits each edge of a path with its sign and the target's pose in the edge's child.
template <class Visit>
Pose for_each_error(const SceneGraph& scene, const Path& path, const double* q, Visit&& visit) {
    std::vector<Pose> down(path.down() + 1), up(path.up() + 1);
    for (std::size_t i = 0; i < path.down(); ++i) down[i + 1] = down[i] * edge_pose(scene, path.to(i), q);
    for (std::size_t i = 0; i < path.up(); ++i) up[i + 1] = up[i] * edge_pose(scene, path.from(i), q);
    const Pose& target = down.back();
    for (std::size_t i = 0; i < path.down(); ++i)
        if (const FrameRecord& edge = path.to(i); edge.noise) visit(edge, 1.0, down[i + 1].inverse() * target);
    for (std::size_t i = 0; i < path.up(); ++i)
        if (const FrameRecord& edge = path.from(i); edge.noise) visit(edge, -1.0, up[i + 1].inverse() * target);
    return path.up() == 0 ? target : up.back().inverse() * target;
}

}  // namespace tmkit
