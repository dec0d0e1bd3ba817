// Serial chains: folding of constant parts, forward kinematics, Jacobian.
#include <algorithm>
#include <cmath>

#include "tmkit/inverse_kinematics.hpp"

namespace tmkit {
namespace {

inline void add_rotated(const Matrix3& r, const Vector3& v, Vector3& sum) {
    for (int i = 0; i < 3; ++i)
        sum[i] += r[3 * i] * v[0] + r[3 * i + 1] * v[1] + r[3 * i + 2] * v[2];
}

// Move the frame (rotation, translation) along or about its own z.
inline void apply_motion(bool prismatic, double value, Matrix3& r, Vector3& t) {
    if (prismatic) {
        for (int i = 0; i < 3; ++i) t[i] += value * r[3 * i + 2];
        return;
    }
    const auto [s, c] = sine_cosine(value);
    for (int i = 0; i < 3; ++i) {
        const double x = r[3 * i], y = r[3 * i + 1];
        r[3 * i] = c * x + s * y;
        r[3 * i + 1] = c * y - s * x;
    }
}

std::vector<std::int32_t> path_up(const Layout& layout, std::int32_t frame) {
    std::vector<std::int32_t> path;
    for (; frame >= 0; frame = layout.parent[frame]) path.push_back(frame);
    return path;
}

// Walk along a chain with the frame (rotation, translation), from the identity to the tip; visit(i,
// r, t) gets the axis of segment i, the third column of r, and its origin t before the segment
// moves.
template <class Visit>
void walk(const std::vector<Chain::Segment>& segments, const double* x, Matrix3& rotation,
          Vector3& translation, Visit&& visit) {
    rotation = identity3;
    translation = {0.0, 0.0, 0.0};
    for (std::size_t i = 0; i < segments.size(); ++i) {
        const Chain::Segment& segment = segments[i];
        add_rotated(rotation, segment.translation, translation);
        Matrix3 next = rotation * segment.rotation;
        visit(i, next, translation);
        apply_motion(segment.prismatic, segment.multiplier * x[segment.column] + segment.offset,
                     next, translation);
        rotation = next;
    }
}

}  // namespace

Chain::Chain(const Layout& layout, std::int32_t tip, std::int32_t reference,
             const std::vector<std::int32_t>& entries, const double* q)
    : joints_(entries.size()) {
    std::vector<std::int32_t> column(layout.joint_count(), -1);
    for (std::size_t i = 0; i < entries.size(); ++i)
        column[entries[i]] = static_cast<std::int32_t>(i);
    std::vector<std::int32_t> down = path_up(layout, tip), up = path_up(layout, reference);
    while (!down.empty() && !up.empty() && down.back() == up.back()) {
        down.pop_back();
        up.pop_back();
    }
    Pose constant;
    const auto add_segment = [&](std::int32_t frame, double sign) {
        const Pose to_axis = from_z_to(layout.axis[frame]);
        const Pose before = constant * to_axis;
        segments_.push_back({before.rotation(), before.translation,
                             layout.type[frame] == JointType::prismatic,
                             column[layout.q_index[frame]], sign * layout.multiplier[frame],
                             sign * layout.offset[frame]});
        constant = to_axis.inverse();
    };
    const auto moves = [&](std::int32_t frame) {
        return layout.q_index[frame] >= 0 && column[layout.q_index[frame]] >= 0;
    };
    for (const std::int32_t frame : up) {
        if (moves(frame)) {
            add_segment(frame, -1.0);
            constant = constant * layout.pose[frame].inverse();
        } else {
            constant = constant * layout.edge(frame, q).inverse();
        }
    }
    for (auto frame = down.rbegin(); frame != down.rend(); ++frame) {
        constant = constant * (moves(*frame) ? layout.pose[*frame] : layout.edge(*frame, q));
        if (moves(*frame)) add_segment(*frame, 1.0);
    }
    if (segments_.size() > max_chain_joints)
        throw Error(ErrorKind::configuration,
                    "the chain has {} moving joints; at most {} are supported", segments_.size(),
                    max_chain_joints);
    last_rotation_ = constant.rotation();
    last_translation_ = constant.translation;
}

void Chain::forward(const double* x, Matrix3& rotation, Vector3& translation) const {
    walk(segments_, x, rotation, translation, [](std::size_t, const Matrix3&, const Vector3&) {});
    add_rotated(rotation, last_translation_, translation);
    rotation = rotation * last_rotation_;
}

void Chain::jacobian(const double* x, Matrix3& rotation, Vector3& translation,
                     Vector6* columns) const {
    std::array<Vector3, max_chain_joints> axis, origin;
    walk(segments_, x, rotation, translation,
         [&](std::size_t i, const Matrix3& r, const Vector3& t) {
        axis[i] = {r[2], r[5], r[8]};
        origin[i] = t;
    });
    add_rotated(rotation, last_translation_, translation);
    rotation = rotation * last_rotation_;
    for (std::size_t i = 0; i < joints_; ++i) columns[i] = Vector6{};
    for (std::size_t i = 0; i < segments_.size(); ++i) {
        const Segment& segment = segments_[i];
        const Vector3 turn = segment.multiplier * axis[i];
        Vector6& column = columns[segment.column];
        const Vector3 linear = segment.prismatic ? turn : cross(turn, translation - origin[i]);
        for (int k = 0; k < 3; ++k) column[k] += linear[k];
        if (!segment.prismatic)
            for (int k = 0; k < 3; ++k) column[3 + k] += turn[k];
    }
}

Pose Chain::pose(const double* x) const {
    Matrix3 rotation;
    Vector3 translation;
    forward(x, rotation, translation);
    return Pose::from_rotation_matrix(translation, rotation);
}

double Chain::reach(const std::vector<std::array<double, 2>>& limits) const {
    if (segments_.empty()) return 0.0;
    double reach = norm(last_translation_);
    for (std::size_t i = 0; i < segments_.size(); ++i) {
        const Segment& segment = segments_[i];
        if (i > 0) reach += norm(segment.translation);
        if (segment.prismatic) {
            const auto& [lower, upper] = limits[segment.column];
            reach += std::max(std::abs(segment.multiplier * lower + segment.offset),
                              std::abs(segment.multiplier * upper + segment.offset));
        }
    }
    return reach;
}

}  // namespace tmkit
