// A scene at a configuration: forward kinematics has run, and the poses are there to read.
//
// Only frames below a joint have poses of their own here; those of still frames are the layout's
// (layout.hpp), whatever the configuration. Every frame is answered for, with the bits that
// SceneGraph::pose gives.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tmkit/scene_graph.hpp"

namespace tmkit {

class Kinematics {
public:
    // q: scene.joint_count() values. O(moving frames), and once for each version the cost of its
    // layout. qd: as many velocities of the joints, or none.
    Kinematics(const SceneGraph& scene, std::vector<double> q, std::vector<double> qd = {});

    const SceneGraph& scene() const { return scene_; }
    const std::vector<double>& q() const { return q_; }
    const std::vector<double>& qd() const { return qd_; }
    std::size_t size() const { return layout_->size(); }
    // root_from_frame by frame number, in insertion order
    const Pose& pose(std::int32_t frame) const {
        const std::int32_t slot = layout_->slot[frame];
        return slot < 0 ? layout_->still[frame] : moving_[slot];
    }
    const Pose& pose(std::string_view frame) const { return pose(number(frame)); }
    // Pose of target relative to reference; throws Error(disconnected).
    Pose pose(std::string_view target, std::string_view reference) const;
    // 6 x joint_count, row-major: see Layout::jacobian. The point is in coordinates of `frame`, its
    // origin when left out; the rows are in the axes of `axes`, of the root when left out.
    std::vector<double> jacobian(std::string_view frame, const Vector3& point = {0.0, 0.0, 0.0},
                                 std::optional<std::string_view> axes = {}) const;

    // [linear, angular] of `frame`, at its origin, relative to the body of `reference`, in the axes
    // of `axes`: as the joints move at velocities qd, of which there must be as many as joints, and
    // by twist edges where these lead over edges on the way. O(depth), with twist edges as
    // `related_twist`. Throws Error(disconnected), or Error(scene) where twist edges lead over an
    // edge on the way, but do not say how that moves.
    Vector6 twist(std::string_view frame, std::string_view reference, std::string_view axes) const;

private:
    std::int32_t number(std::string_view frame) const {
        return layout_->index_of(scene_.record(frame).id);
    }

    SceneGraph scene_;
    const Layout* layout_;  // of scene_, which keeps it
    std::vector<double> q_, qd_;
    std::vector<Pose> moving_;
};

}  // namespace tmkit
