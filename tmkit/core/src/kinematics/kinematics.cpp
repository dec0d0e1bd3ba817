#include "tmkit/kinematics.hpp"

#include "tmkit/scene_relations.hpp"

namespace tmkit {

namespace {

// The layout is built on the version that was asked, before the copy, so that the next question finds it there.
const SceneGraph& laid_out(const SceneGraph& scene) {
    scene.layout();
    return scene;
}

}  // namespace

Kinematics::Kinematics(const SceneGraph& scene, std::vector<double> q, std::vector<double> qd)
    : scene_(laid_out(scene)), layout_(&scene_.layout()), q_(std::move(q)), qd_(std::move(qd)),
      moving_(layout_->moving.size()) {
    layout_->forward_moving(q_.data(), moving_.data());
}

Pose Kinematics::pose(std::string_view target, std::string_view reference) const {
    return scene_.pose(target, reference, q_.data());  // one evaluation order, so the same bits as the scene's answer
}

std::vector<double> Kinematics::jacobian(std::string_view frame, const Vector3& point,
                                         std::optional<std::string_view> axes) const {
    std::vector<double> rows(6 * layout_->joint_count());
    const std::int32_t index = number(frame);
    layout_->jacobian(index, pose(index).apply(point), [this](std::int32_t at) -> const Pose& { return pose(at); },
                      rows.data());
    if (!axes) return rows;
    const std::int32_t turned = number(*axes);
    if (layout_->root[turned] != layout_->root[index]) scene_.pose(frame, *axes, q_.data());  // throws with the reason
    const Pose axes_from_root = pose(turned).inverse();
    const std::size_t columns = layout_->joint_count();
    for (std::size_t half = 0; half < 6; half += 3)
        for (std::size_t column = 0; column < columns; ++column) {
            double* first = rows.data() + half * columns + column;
            const Vector3 turned_column = axes_from_root.rotate({first[0], first[columns], first[2 * columns]});
            for (std::size_t i = 0; i < 3; ++i) first[i * columns] = turned_column[i];
        }
    return rows;
}

Vector6 Kinematics::twist(std::string_view frame, std::string_view reference, std::string_view axes) const {
    const FrameRecord &moving = scene_.record(frame), &still = scene_.record(reference), &turned = scene_.record(axes);
    for (const FrameRecord* end : {&still, &turned})
        if (scene_.root_of(end->id) != scene_.root_of(moving.id)) scene_.pose(moving, *end, nullptr);  // throws
    const double none = 0.0;  // without joints there are velocities, too: of free edges, which do not move
    const double* qd = qd_.empty() ? &none : qd_.data();
    const auto twist = related_twist(scene_, &moving, moving.body, still.body, turned, q_.data(), qd);
    if (!twist) scene_.require_no_twist_on_way(frame, reference);  // throws with the reason
    return *twist;
}

}  // namespace tmkit
