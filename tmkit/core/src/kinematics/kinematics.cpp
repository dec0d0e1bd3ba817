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

Vector6 Kinematics::velocity(std::int32_t frame, const Vector3& point) const {
    Vector6 sum{};
    for (std::int32_t at = frame; at >= 0; at = layout_->parent[at]) {
        if (layout_->q_index[at] < 0) continue;
        const Vector6 unit =
            joint_twist(layout_->type[at], layout_->axis[at], layout_->multiplier[at], pose(at), point);
        for (std::size_t i = 0; i < 6; ++i) sum[i] += qd_[static_cast<std::size_t>(layout_->q_index[at])] * unit[i];
    }
    return sum;
}

Vector6 Kinematics::twist(std::string_view frame, std::string_view reference, std::string_view axes) const {
    const std::int32_t moving = number(frame), still = number(reference), turned = number(axes);
    if (layout_->root[moving] != layout_->root[still])
        scene_.pose(frame, reference, q_.data());  // throws with the reason
    if (layout_->root[moving] != layout_->root[turned]) scene_.pose(frame, axes, q_.data());
    if (scene_.twist_on_way(scene_.record(frame).id, scene_.record(reference).id)) {
        const BodyId body = scene_.record(frame).body, other = scene_.record(reference).body;
        const double none = 0.0;  // without joints there are velocities, too: of free edges, which do not move
        const auto mixed = related_twist(scene_, frame, body, other, axes, q_.data(), qd_.empty() ? &none : qd_.data());
        if (!mixed) scene_.require_no_twist_on_way(frame, reference);  // throws with the reason
        return *mixed;
    }
    const Vector3 point = pose(moving).translation;
    const Vector6 a = velocity(moving, point), b = velocity(still, point);
    const Pose axes_from_root = pose(turned).inverse();
    const Vector3 linear = axes_from_root.rotate({a[0] - b[0], a[1] - b[1], a[2] - b[2]});
    const Vector3 angular = axes_from_root.rotate({a[3] - b[3], a[4] - b[4], a[5] - b[5]});
    return {linear[0], linear[1], linear[2], angular[0], angular[1], angular[2]};
}

}  // namespace tmkit
