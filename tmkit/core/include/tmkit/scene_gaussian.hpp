// How sure a scene is of the poses in it: queries over the noise of its edges (noise.hpp).
//
// The error of a relative pose is the sum of the errors on the path, each carried into the target's
// tangent. Where no source is used by two edges of the path, which is the common case, their
// covariances are carried down and added, one step an edge; edges that share sources are summed
// source by source first, so that what is common cancels as it should. To first order; the inverse
// and the exact parts of a path lose nothing.
//
// Costs: O(path log n) and, for the shared part, O(columns). A scene without noise pays nothing.
#pragma once

#include "tmkit/scene_graph.hpp"

namespace tmkit {

// reference_from_target at q, which may be null when no joint is on the path. Throws what
// SceneGraph::pose throws.
GaussianPose gaussian_pose(const SceneGraph& scene, std::string_view target,
                           std::string_view reference, const double* q);

// The error of reference_from_target, source by source, in the target's tangent.
NoiseSum path_noise(const SceneGraph& scene, const FrameRecord& reference,
                    const FrameRecord& target, const double* q);

// Poses drawn from the sources, each edge perturbed by itself: exact where first order is not. Same
// seed, same poses.
std::vector<Pose> sample_poses(const SceneGraph& scene, std::string_view target,
                               std::string_view reference, const double* q, std::size_t count,
                               std::uint64_t seed);

}  // namespace tmkit
