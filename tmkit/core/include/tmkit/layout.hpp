// A version of a scene laid out flat, for everything that visits all frames.
//
// The tree answers single questions and edits; sweeps over all frames (forward kinematics,
// Jacobians, collision, whole subtrees) want arrays. A Layout is those arrays for one version:
// built on first use, immutable, shared. Frames are numbered by insertion order; `moving` and
// `LayoutTree::order` list the numbers so that parents come before children.
//
// Folding. A frame with no joint between it and its root is *still*: its pose there is computed
// once, with the layout, and no configuration asks for it again. Only the `moving` frames are
// swept. Poses are multiplied down from the root in both cases, so folding changes no bit of any
// answer.
//
// Mending. A version a few changed frames away from one that was laid out gets its arrays from
// those: columns are copied, the frames that came, went or changed are put right, and still poses
// are computed again below them only. What joints and bodies say is shared when only parents and
// poses changed. Nothing depends on the way: a mended layout equals, array by array and bit for
// bit, the one made from scratch (scene_graph_layout.cpp).
//
// What sweeps over configurations do not need, the order by levels and the lists of children, is
// made when it is asked for.
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

// What moves leave as it is; one value for each frame, but for joint_frame.
struct LayoutFrames : Shared {
    std::vector<FrameId> ids;  // ascending
    std::vector<BodyId> body;
    std::vector<JointType> type;
    std::vector<Vector3> axis;
    std::vector<std::int32_t>
        q_index;  // entry of the configuration that moves this joint, -1 when none
    std::vector<double> multiplier,
        offset;  // joint value = multiplier * q[q_index] + offset (1 and 0 unless mimic)
    std::vector<std::int32_t> joint_frame;  // by configuration entry: frame number of its joint

    auto columns() {
        return std::tie(ids, body, type, axis, q_index, multiplier, offset);
    }  // by frame
    auto columns() const { return std::tie(ids, body, type, axis, q_index, multiplier, offset); }
};

// Who hangs off whom.
struct LayoutTree : Shared {
    explicit LayoutTree(const std::vector<std::int32_t>& parent);
    std::vector<std::int32_t>
        order;  // tree after tree, level by level, each group of children in insertion order
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
    std::vector<std::int32_t>
        moving;  // frames below a joint: each in insertion order, after its ancestors
    std::vector<std::int32_t> slot;  // by frame: its place in `moving`, -1 when it is still
    std::vector<Pose> still;         // root_from_frame of still frames, meaningless elsewhere

    std::size_t size() const { return ids.size(); }
    std::size_t joint_count() const { return joint_frame.size(); }

    const LayoutTree& tree() const {
        return tree_.get([this] { return make_ref<const LayoutTree>(parent); });
    }

    // The number of the frame with this id, which must exist. O(log n), O(1) where none was
    // removed.
    std::int32_t index_of(FrameId id) const;

    // parent_from_frame at configuration q.
    Pose edge(std::int32_t frame, const double* q) const {
        if (q_index[frame] < 0) return pose[frame];
        return moved(pose[frame], type[frame], axis[frame],
                     multiplier[frame] * q[q_index[frame]] + offset[frame]);
    }

    // root_from_frame of every frame. O(n).
    void forward(const double* q, Pose* poses) const;
    // root_from_frame of the moving frames, in the order of `moving`.
    void forward_moving(const double* q, Pose* poses) const;

    // The 6 x n_joints Jacobian (row-major; rows linear, angular) of a point of a frame, expressed
    // in its root; `point` in coordinates of the root, at the configuration that pose_of(frame
    // number) speaks of. O(depth + n_joints).
    template <class PoseOf>
    void jacobian(std::int32_t frame, const Vector3& point, PoseOf&& pose_of, double* rows) const {
        const std::size_t columns = joint_count();
        std::fill(rows, rows + 6 * columns, 0.0);
        for (std::int32_t at = frame; at >= 0; at = parent[at]) {
            if (q_index[at] < 0) continue;
            const Vector6 twist =
                joint_twist(type[at], axis[at], multiplier[at], pose_of(at), point);
            for (std::size_t i = 0; i < 6; ++i)
                rows[i * columns + static_cast<std::size_t>(q_index[at])] += twist[i];
        }
    }

    // Fill in what follows from `parent`, `pose` and the joints. `stale_frames` marks those whose
    // own edge changed; below the others `still` holds what is right. O(n).
    void settle(std::vector<char> stale_frames);
    // Take the tree of a layout with the same parents, if that has one.
    void share_tree(const Layout& other) { tree_ = other.tree_; }

private:
    LazyRef<LayoutTree> tree_;
};

}  // namespace tmkit
