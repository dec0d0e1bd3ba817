// Turning joint axes onto z, so that inner loops know only one axis.
#pragma once

#include "tmkit/pose.hpp"

namespace tmkit {

// The rotation that takes z to the unit vector `axis` (half a turn about x for the opposite one).
inline Pose from_z_to(const Vector3& axis) {
    const double c = axis[2];
    if (c < -1.0 + 1e-12) return {{0.0, 0.0, 0.0}, {1.0, 0.0, 0.0, 0.0}};
    const double w = std::sqrt(0.5 * (1.0 + c));
    return {{0.0, 0.0, 0.0}, {-0.5 * axis[1] / w, 0.5 * axis[0] / w, 0.0, w}};
}

}  // namespace tmkit
