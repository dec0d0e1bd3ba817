#include "tmkit/scene_records.hpp"

#include <cmath>

#include "tmkit/error.hpp"

namespace tmkit {
namespace {

// Symmetric, and by Sylvester's criterion with slack: all principal minors, since semi-definite is enough.
void require_positive_semidefinite(const Matrix3& m) {
    const double trace = m[0] + m[4] + m[8], slack = 1e-9 * std::abs(trace);
    if (std::abs(m[1] - m[3]) > slack || std::abs(m[2] - m[6]) > slack || std::abs(m[5] - m[7]) > slack)
        throw Error(ErrorKind::scene, "inertia matrix must be symmetric");
    const double xy = m[0] * m[4] - m[1] * m[1], xz = m[0] * m[8] - m[2] * m[2], yz = m[4] * m[8] - m[5] * m[5];
    const double determinant = m[0] * yz - m[1] * (m[1] * m[8] - m[5] * m[2]) + m[2] * (m[1] * m[5] - m[4] * m[2]);
    const double slack2 = slack * std::abs(trace), slack3 = slack2 * std::abs(trace);
    if (m[0] < -slack || m[4] < -slack || m[8] < -slack || xy < -slack2 || xz < -slack2 || yz < -slack2 ||
        determinant < -slack3)
        throw Error(ErrorKind::scene, "inertia matrix must be positive semi-definite");
}

}  // namespace

void Inertia::check() const {
    if (!(mass > 0.0) || !std::isfinite(mass))
        throw Error(ErrorKind::scene,
                    "mass must be positive and finite, not {}; leave the inertia out for a body without mass", mass);
    for (double value : center)
        if (!std::isfinite(value)) throw Error(ErrorKind::scene, "centre of mass must be finite");
    for (double value : matrix)
        if (!std::isfinite(value)) throw Error(ErrorKind::scene, "inertia matrix must be finite");
    require_positive_semidefinite(matrix);
}

Inertia Inertia::in_axes_of(const Pose& frame_from_axes) const {
    Inertia result{mass, frame_from_axes.apply(center), {}};
    const Matrix3 r = frame_from_axes.rotation();
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j)
            for (int k = 0; k < 3; ++k)
                for (int l = 0; l < 3; ++l) result.matrix[3 * i + j] += r[3 * i + k] * matrix[3 * k + l] * r[3 * j + l];
    require_in_range(result.center, "the centre of mass");
    require_in_range(result.matrix, "the inertia");
    return result;
}

bool FrameSpecification::same_content(const FrameSpecification& o) const {
    return name == o.name && parent == o.parent && pose == o.pose && joint.type == o.joint.type &&
           (!is_actuated(joint.type) || joint.same_content(o.joint)) && body == o.body && classes == o.classes &&
           shapes == o.shapes && inertia == o.inertia && attributes == o.attributes && twist == o.twist &&
           same_stamps(stamps, o.stamps) && same_noise(noise, o.noise);
}

}  // namespace tmkit
