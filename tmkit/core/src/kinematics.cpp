#include "tmkit/kinematics.hpp"

namespace tmkit {

namespace {

// The layout is built on the version that was asked, before the copy, so that the next question finds it there.
const SceneGraph& laid_out(const SceneGraph& scene) {
    scene.layout();
    return scene;
}

}  // namespace

Kinematics::Kinematics(const SceneGraph& scene, std::vector<double> q)
    : scene_(laid_out(scene)), q_(std::move(q)), poses_(scene_.size()) {
    scene_.layout().forward(q_.data(), poses_.data());
}

const Pose& Kinematics::pose(std::string_view frame) const {
    return poses_[scene_.layout().index_of(scene_.record(frame).id)];
}

Pose Kinematics::pose(std::string_view target, std::string_view reference) const {
    return scene_.pose(target, reference, q_.data());  // one evaluation order, so the same bits as the scene's answer
}

std::vector<double> Kinematics::jacobian(std::string_view frame) const {
    const Layout& layout = scene_.layout();
    std::vector<double> rows(6 * layout.joint_count());
    layout.jacobian(layout.index_of(scene_.record(frame).id), poses_.data(), rows.data());
    return rows;
}

}  // namespace tmkit
