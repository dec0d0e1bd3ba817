// A version of a scene laid out flat, for everything that visits all frames.
//
// The tree answers single questions and edits; sweeps over all frames (forward kinematics, Jacobians, collision, whole
// subtrees) want arrays. A Layout is those arrays for one version: built on first use in O(n log n), immutable, shared.
// Frames are numbered by insertion order; `order` lists the numbers so that parents come before their children.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tmkit/joint.hpp"
#include "tmkit/reference.hpp"

namespace tmkit {

using FrameId = std::uint32_t;
using BodyId = std::uint32_t;
inline constexpr FrameId no_frame = 0;  // ids start at 1

struct Layout : Shared {
    std::vector<FrameId> ids;               // by frame number, ascending
    std::vector<std::int32_t> parent;       // frame number of the parent, -1 for a root
    std::vector<std::int32_t> root;         // frame number of the root of its tree
    std::vector<std::int32_t> order;        // topological
    std::vector<BodyId> body;
    std::vector<JointType> type;
    std::vector<Vector3> axis;
    std::vector<std::int32_t> q_index;      // entry of the configuration that moves this joint, -1 when none
    std::vector<double> multiplier, offset; // joint value = multiplier * q[q_index] + offset (1 and 0 unless mimic)
    std::vector<Pose> pose;                 // parent_from_frame at joint value 0
    std::vector<std::int32_t> joint_frame;  // by configuration entry: frame number of its joint
    std::vector<std::int32_t> first_child;  // n + 1 offsets into `child`
    std::vector<std::int32_t> child;        // frame numbers, by parent, each group in insertion order

    std::size_t size() const { return ids.size(); }
    std::size_t joint_count() const { return joint_frame.size(); }

    // The number of the frame with this id, which must exist. O(log n).
    std::int32_t index_of(FrameId id) const;

    // parent_from_frame at configuration q.
    Pose edge(std::int32_t frame, const double* q) const {
        if (q_index[frame] < 0) return pose[frame];
        return moved(pose[frame], type[frame], axis[frame], multiplier[frame] * q[q_index[frame]] + offset[frame]);
    }

    // root_from_frame of every frame. O(n).
    void forward(const double* q, Pose* poses) const;

    // The 6 x n_joints Jacobian (row-major; rows linear, angular) of a frame's origin, expressed in its root, at poses
    // computed by forward. O(depth + n_joints).
    void jacobian(std::int32_t frame, const Pose* poses, double* rows) const;

    // The frame and all its descendants, parents first.
    std::vector<std::int32_t> subtree(std::int32_t frame) const;
};

}  // namespace tmkit
