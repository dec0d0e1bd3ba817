// A scene at a configuration: forward kinematics has run, and the poses are there to read.
#pragma once

#include <string_view>
#include <vector>

#include "tmkit/scene_graph.hpp"

namespace tmkit {

class Kinematics {
public:
    // q: scene.joint_count() values. O(n), and once for each version the cost of its layout.
    Kinematics(const SceneGraph& scene, std::vector<double> q);

    const SceneGraph& scene() const { return scene_; }
    const std::vector<double>& q() const { return q_; }
    const std::vector<Pose>& poses() const { return poses_; }  // root_from_frame, in insertion order
    const Pose& pose(std::string_view frame) const;
    // Pose of target relative to reference; throws Error(disconnected).
    Pose pose(std::string_view target, std::string_view reference) const;
    // 6 x joint_count, row-major: see Layout::jacobian.
    std::vector<double> jacobian(std::string_view frame) const;

private:
    SceneGraph scene_;
    std::vector<double> q_;
    std::vector<Pose> poses_;
};

}  // namespace tmkit
