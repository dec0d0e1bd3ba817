// Edges between two frames and their errors: one implementation for the persistent scene and for
// its arrays, which gives the same bits.
//
// A path has two sides, from the nearest common ancestor down to the target and to the reference
// (`up`). Its type has `count(up)`, the number of edges, `edge(up, i)`, and for an edge `pose_of`
// and `noise_of`, null if it is exact.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory_resource>
#include <tuple>
#include <vector>

#include "graph/ascent.hpp"

namespace tmkit {

// The path between two frames of a version at a configuration.
class Path {
public:
    Path(const SceneGraph& scene, const FrameRecord& reference, const FrameRecord& target,
         const double* q)
        : scene_(scene), q_(q), to_(scene, target), from_(scene, reference) {
        std::tie(down_, up_) = below_common(to_, from_);
    }
    std::size_t count(bool up) const { return up ? up_ : down_; }
    const FrameRecord& edge(bool up, std::size_t i) const {
        return up ? *from_[up_ - 1 - i] : *to_[down_ - 1 - i];
    }
    Pose pose_of(const FrameRecord& edge) const { return edge_pose(scene_, edge, q_); }
    const EdgeNoise* noise_of(const FrameRecord& edge) const { return edge.noise.get(); }

private:
    const SceneGraph& scene_;
    const double* q_;
    Ascent to_, from_;
    std::size_t down_ = 0, up_ = 0;
};

template <class EdgePath, class Visit> void for_each_edge(const EdgePath& path, Visit&& visit) {
    for (const bool up : {false, true})
        for (std::size_t i = 0; i < path.count(up); ++i) visit(path.edge(up, i), up);
}

// The sources that several edges of a path use. No heap allocation up to 32 sources.
class SharedSources {
public:
    template <class EdgePath> explicit SharedSources(const EdgePath& path) {
        sources_.reserve(32);
        for_each_edge(path, [&](const auto& edge, bool) {
            if (const EdgeNoise* noise = path.noise_of(edge))
                for (const NoiseTerm& term : noise->terms) sources_.push_back(term.source.get());
        });
        std::sort(sources_.begin(), sources_.end());
        std::size_t count = 0;
        for (std::size_t i = 1; i < sources_.size(); ++i)
            if (sources_[i] == sources_[i - 1]) sources_[count++] = sources_[i];
        sources_.resize(count);
    }
    bool any() const { return !sources_.empty(); }
    bool has_one_of(const EdgeNoise& noise) const {
        return std::any_of(noise.terms.begin(), noise.terms.end(), [&](const NoiseTerm& term) {
            return std::binary_search(sources_.begin(), sources_.end(), term.source.get());
        });
    }

private:
    alignas(void*) std::array<std::byte, 32 * sizeof(void*)> room_;
    std::pmr::monotonic_buffer_resource memory_{room_.data(), room_.size()};
    std::pmr::vector<const NoiseSource*> sources_{&memory_};
};

inline constexpr auto as_it_is = [](const Vector6& column) { return column; };

// Descent along one side of a path. Poses between errors are multiplied first, so an exact edge
// costs only a product of poses.
class Descent {
public:
    void step(const Pose& edge) {
        pose = pose * edge;
        if (uncertain_) pending_ = exact_since_ ? pending_ * edge : edge;
        exact_since_ = true;
    }
    void add(const Covariance& error) {
        settle();
        covariance_ += error;
        uncertain_ = true;
    }
    // The covariance of common_from_here, in the tangent here.
    const Covariance& settle() {
        if (uncertain_ && exact_since_) covariance_ = covariance_.carry_down(pending_);
        exact_since_ = false;
        return covariance_;
    }
    bool uncertain() const { return uncertain_; }

    Pose pose;

private:
    Covariance covariance_;
    Pose pending_;
    bool uncertain_ = false, exact_since_ = false;
};

// Visit each error of a path with its sign and the target's pose in the edge's child. Each side is
// traversed twice, without storage.
template <class EdgePath, class Visit> void for_each_error(const EdgePath& path, Visit&& visit) {
    Pose target, here[2];
    for (std::size_t i = 0; i < path.count(false); ++i)
        target = target * path.pose_of(path.edge(false, i));
    for_each_edge(path, [&](const auto& edge, bool up) {
        here[up] = here[up] * path.pose_of(edge);
        if (const EdgeNoise* noise = path.noise_of(edge))
            visit(*noise, up ? -1.0 : 1.0, here[up].inverse() * target);
    });
}

inline void add_error(NoiseSum& sum, const EdgeNoise& noise, double sign,
                      const Pose& child_from_target) {
    sum.add(noise, [&](Vector6 column) {
        column = carry_down(column, child_from_target);
        if (sign < 0.0)
            for (double& value : column) value = -value;
        return column;
    });
}

// Sum the error of reference_from_target, source by source, in the target's tangent, into an empty
// sum.
template <class EdgePath> void sum_errors(const EdgePath& path, NoiseSum& sum) {
    for_each_error(path, [&](const EdgeNoise& noise, double sign, const Pose& child_from_target) {
        add_error(sum, noise, sign, child_from_target);
    });
}

// reference_from_target; `common` is an empty sum for scratch.
template <class EdgePath> GaussianPose path_gaussian(const EdgePath& path, NoiseSum& common) {
    const SharedSources shared(path);
    Descent down, up;
    for_each_edge(path, [&](const auto& edge, bool is_up) {
        Descent& side = is_up ? up : down;
        side.step(path.pose_of(edge));
        const EdgeNoise* noise = path.noise_of(edge);
        if (noise && !(shared.any() && shared.has_one_of(*noise))) side.add(noise->covariance);
    });
    GaussianPose result{path.count(true) == 0 ? down.pose : up.pose.inverse() * down.pose,
                        down.settle()};
    if (up.uncertain()) result.covariance += up.settle().carry_down(result.mean);
    if (shared.any()) {
        for_each_error(path,
                       [&](const EdgeNoise& noise, double sign, const Pose& child_from_target) {
            if (shared.has_one_of(noise)) add_error(common, noise, sign, child_from_target);
        });
        result.covariance += common.covariance();
    }
    return result;
}

}  // namespace tmkit
