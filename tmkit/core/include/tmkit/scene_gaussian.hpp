// Uncertainty of poses in a scene: queries over the noise of its edges (noise.hpp).
//
// The error of a relative pose is the sum of the errors on the path, each carried into the target's
// tangent. If no source is used by two edges of the path, the common case, their covariances are
// carried down and added, one step an edge. Edges that share sources are summed source by source
// first, so common errors cancel. To first order; the inverse and the exact parts of a path are
// exact.
//
// Costs: O(path log n) and, for the shared part, O(columns). A scene without noise has no cost.
#pragma once

#include "tmkit/scene_graph.hpp"

namespace tmkit {

// Return reference_from_target at q, which may be null if no joint is on the path. Throws as
// SceneGraph::pose.
GaussianPose gaussian_pose(const SceneGraph& scene, std::string_view target,
                           std::string_view reference, const double* q);

// The error of reference_from_target, source by source, in the target's tangent.
NoiseSum path_noise(const SceneGraph& scene, const FrameRecord& reference,
                    const FrameRecord& target, const double* q);

// Sample poses from the sources, with each edge perturbed separately: exact beyond first order.
// Same seed, same poses.
std::vector<Pose> sample_poses(const SceneGraph& scene, std::string_view target,
                               std::string_view reference, const double* q, std::size_t count,
                               std::uint64_t seed);

}  // namespace tmkit
