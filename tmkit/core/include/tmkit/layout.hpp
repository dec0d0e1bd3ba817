// Arrays of one version of a scene, for sweeps over all frames.
//
// The tree serves single queries and edits. Sweeps over all frames (forward kinematics, Jacobians,
// collision, whole subtrees) need arrays. A Layout holds them for one version: built on first use,
// immutable, shared. Frames are numbered by insertion order; `moving` and `LayoutTree::order` list
// the numbers, parents before children.
//
// Folding. A frame with no joint between it and its root is *still*: its pose is computed once,
// with the layout, and is the same at every configuration. Only the `moving` frames are swept.
// Poses are multiplied down from the root in both cases, so folding changes no bit of any result.
//
// Updates. The layout of a version a few changed frames away from one with a layout is computed
// from that. Columns are copied, frames that were added, removed or changed are updated, and still
// poses are recomputed below them only. Data of joints and bodies are shared if only parents and
// poses changed. An updated layout equals one computed anew, array by array and bit for bit
// (scene_graph_layout.cpp).
//
// The order by levels and the lists of children are computed on first use, since sweeps over
// configurations do not need them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "tmkit/joint.hpp"
#include "tmkit/reference.hpp"

namespace tmkit {

using FrameId = std::uint32_t;
using BodyId = std::uint32_t;
inline constexpr FrameId no_frame = 0;  // ids start at 1

// Data that moves do not change; one value a frame, except joint_frame.
struct LayoutFrames : Shared {
    std::vector<FrameId> ids;  // ascending
    std::vector<BodyId> body;
    std::vector<JointType> type;
    std::vector<Vector3> axis;
    // Entry of the configuration that moves this joint, -1 if none.
    std::vector<std::int32_t> q_index;
    // Joint value = multiplier * q[q_index] + offset (1 and 0 unless mimic).
    std::vector<double> multiplier, offset;
    std::vector<std::int32_t> joint_frame;  // by configuration entry: frame number of its joint

    // By frame.
    auto columns() { return std::tie(ids, body, type, axis, q_index, multiplier, offset); }
    auto columns() const { return std::tie(ids, body, type, axis, q_index, multiplier, offset); }
};

// Children of each frame, and the order by levels.
struct LayoutTree : Shared {
    explicit LayoutTree(const std::vector<std::int32_t>& parent);
    // Tree after tree, level by level, each group of children in insertion order.
    std::vector<std::int32_t> order;
    std::vector<std::int32_t> first_child;  // n + 1 offsets into `child`
    std::vector<std::int32_t> child;  // frame numbers, by parent, each group in insertion order
    bool operator==(const LayoutTree& other) const {
        return order == other.order && first_child == other.first_child && child == other.child;
    }
};

struct Layout : Shared {
    explicit Layout(Ref<const LayoutFrames> shared_frames)
        : frames(std::move(shared_frames)), ids(frames->ids), body(frames->body),
          type(frames->type), axis(frames->axis), q_index(frames->q_index),
          multiplier(frames->multiplier), offset(frames->offset), joint_frame(frames->joint_frame) {
    }
    Layout(const Layout&) = delete;
    Layout& operator=(const Layout&) = delete;

    Ref<const LayoutFrames> frames;
    const std::vector<FrameId>& ids;
    const std::vector<BodyId>& body;
    const std::vector<JointType>& type;
    const std::vector<Vector3>& axis;
    const std::vector<std::int32_t>& q_index;
    const std::vector<double>&multiplier, &offset;
    const std::vector<std::int32_t>& joint_frame;

    std::vector<std::int32_t> parent;  // frame number of the parent, -1 for a root
    std::vector<Pose> pose;            // parent_from_frame at joint value 0
    std::vector<std::int32_t> root;    // frame number of the root of its tree
    // Frames below a joint, each in insertion order, after its ancestors.
    std::vector<std::int32_t> moving;
    std::vector<std::int32_t> slot;  // by frame: its index in `moving`, -1 if it is still
    std::vector<Pose> still;         // root_from_frame of still frames, undefined for others

    std::size_t size() const { return ids.size(); }
    std::size_t joint_count() const { return joint_frame.size(); }

    const LayoutTree& tree() const {
        return tree_.get([this] { return make_ref<const LayoutTree>(parent); });
    }

    // Return the number of the frame with this id, which must exist. O(log n), O(1) if none was
    // removed.
    std::int32_t index_of(FrameId id) const;

    // parent_from_frame at configuration q.
    Pose edge(std::int32_t frame, const double* q) const {
        if (q_index[frame] < 0) return pose[frame];
        return apply_joint(pose[frame], type[frame], axis[frame],
                           multiplier[frame] * q[q_index[frame]] + offset[frame]);
    }

    // Compute root_from_frame of every frame. O(n).
    void forward(const double* q, Pose* poses) const;
    // Compute root_from_frame of the moving frames, in the order of `moving`.
    void forward_moving(const double* q, Pose* poses) const;

    // The 6 x n_joints Jacobian (row-major; rows linear, angular) of a point of a frame, in root
    // axes. `point` is in root coordinates, at the configuration of pose_of(frame number). O(depth
    // + n_joints).
    template <class PoseOf>
    void jacobian(std::int32_t frame, const Vector3& point, PoseOf&& pose_of, double* rows) const {
        const std::size_t columns = joint_count();
        std::fill(rows, rows + 6 * columns, 0.0);
        for (std::int32_t ancestor = frame; ancestor >= 0; ancestor = parent[ancestor]) {
            if (q_index[ancestor] < 0) continue;
            const Vector6 twist = joint_twist(type[ancestor], axis[ancestor], multiplier[ancestor],
                                              pose_of(ancestor), point);
            for (std::size_t i = 0; i < 6; ++i)
                rows[i * columns + static_cast<std::size_t>(q_index[ancestor])] += twist[i];
        }
    }

    // Compute the data that depend on `parent`, `pose` and the joints. `stale_frames` marks the
    // frames whose own edge changed; `still` is valid except below them. O(n).
    void settle(std::vector<char> stale_frames);
    // Share the tree of a layout with the same parents, if that has one.
    void share_tree(const Layout& other) { tree_ = other.tree_; }

private:
    LazyRef<LayoutTree> tree_;
};

}  // namespace tmkit
