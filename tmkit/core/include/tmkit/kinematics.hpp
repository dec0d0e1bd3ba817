// A scene at a configuration, with all poses computed.
//
// Only frames below a joint have poses here; those of still frames are in the layout (layout.hpp),
// at every configuration. Queries cover every frame, with the bits of SceneGraph::pose.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tmkit/scene_graph.hpp"

namespace tmkit {

class Kinematics {
public:
    // q: scene.joint_count() values. qd: velocities of all joints, or empty. O(moving frames), and
    // once for each version the cost of its layout.
    Kinematics(const SceneGraph& scene, std::vector<double> q, std::vector<double> qd = {});

    const SceneGraph& scene() const { return scene_; }
    const std::vector<double>& q() const { return q_; }
    const std::vector<double>& qd() const { return qd_; }
    std::size_t size() const { return layout_->size(); }
    // root_from_frame by frame number, in insertion order.
    const Pose& pose(std::int32_t frame) const {
        const std::int32_t slot = layout_->slot[frame];
        return slot < 0 ? layout_->still[frame] : moving_[slot];
    }
    const Pose& pose(std::string_view frame) const { return pose(number(frame)); }
    // Pose of target relative to reference; throws Error(disconnected).
    Pose pose(std::string_view target, std::string_view reference) const;
    // 6 x joint_count, row-major: see Layout::jacobian. The point is in coordinates of `frame`, by
    // default its origin. The rows are in the axes of `axes`, by default of the root.
    std::vector<double> jacobian(std::string_view frame, const Vector3& point = {0.0, 0.0, 0.0},
                                 std::optional<std::string_view> axes = {}) const;

    // The twist [linear, angular] of `frame`, at its origin, relative to the body of `reference`,
    // in the axes of `axes`. It is that of the joints at velocities qd, one a joint, and of twist
    // edges on the path. O(depth), with twist edges as `related_twist`. Throws Error(disconnected),
    // or Error(scene) if twist edges cover an edge of the path but do not determine its motion.
    Vector6 twist(std::string_view frame, std::string_view reference, std::string_view axes) const;

private:
    std::int32_t number(std::string_view frame) const {
        return layout_->index_of(scene_.record(frame).id);
    }

    SceneGraph scene_;
    const Layout* layout_;  // owned by scene_
    std::vector<double> q_, qd_;
    std::vector<Pose> moving_;
};

}  // namespace tmkit
