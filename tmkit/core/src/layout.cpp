#include "tmkit/layout.hpp"

#include <algorithm>

namespace tmkit {

std::int32_t Layout::index_of(FrameId id) const {
    return static_cast<std::int32_t>(std::lower_bound(ids.begin(), ids.end(), id) - ids.begin());
}

void Layout::forward(const double* q, Pose* poses) const {
    for (const std::int32_t frame : order)
        poses[frame] = parent[frame] < 0 ? pose[frame] : poses[parent[frame]] * edge(frame, q);
}

void Layout::jacobian(std::int32_t frame, const Pose* poses, double* rows) const {
    const std::size_t columns = joint_count();
    std::fill(rows, rows + 6 * columns, 0.0);
    const Vector3 point = poses[frame].translation;
    for (std::int32_t at = frame; at >= 0; at = parent[at]) {
        if (q_index[at] < 0) continue;
        // The joint's motion leaves its own axis where it is, so the axis may be read from the moved frame.
        const Vector3 direction = multiplier[at] * poses[at].rotate(axis[at]);
        Vector3 linear = direction, angular{0.0, 0.0, 0.0};
        if (type[at] != JointType::prismatic) {
            linear = cross(direction, point - poses[at].translation);
            angular = direction;
        }
        const auto column = static_cast<std::size_t>(q_index[at]);
        for (std::size_t i = 0; i < 3; ++i) {
            rows[i * columns + column] += linear[i];
            rows[(i + 3) * columns + column] += angular[i];
        }
    }
}

std::vector<std::int32_t> Layout::subtree(std::int32_t frame) const {
    std::vector<std::int32_t> found{frame};
    for (std::size_t next = 0; next < found.size(); ++next)
        found.insert(found.end(), child.begin() + first_child[found[next]], child.begin() + first_child[found[next] + 1]);
    return found;
}

}  // namespace tmkit
