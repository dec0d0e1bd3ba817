// Rigid transforms.
//
// A Pose is a translation [m] and a unit quaternion stored x, y, z, w. Named `parent_from_child`,
// it maps coordinates of a point in the child to coordinates in the parent, and `a_from_b *
// b_from_c` is `a_from_c`.
//
// Invariants: all seven numbers are finite and | |q|^2 - 1 | is within a few units in the last
// place. The checked constructor normalises its argument, but keeps the bits of a unit quaternion,
// so written numbers read back exactly. A product corrects the norm to first order, so chains of
// any length do not drift.
//
// Six-vectors are [rho, theta], linear part first; T = exp(xi) with the usual left Jacobian on rho.
//
// The adjoint moves an error from one tangent space to another:
// T exp(xi) = exp(Ad(T) xi) T. The Jacobians are the derivatives of exp by its argument:
//
//     exp(xi + d) = exp(J_l(xi) d) exp(xi) = exp(xi) exp(J_r(xi) d)     to first order in d,
//     J_r(xi) = J_l(-xi);
//
// their inverses are those of log. The left Jacobian is [[J, Q], [0, J]] with J the Jacobian of
// rotations and Q as in Barfoot and Furgale, "Associating uncertainty with three-dimensional poses
// for use in estimation problems", 2014.
//
// Invariant: all coefficients are exact to a few units in the last place for every angle. Below one
// radian, where the closed forms cancel, they are Taylor series. The inverses exist for angles
// below 2 pi; log returns angles up to pi.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>

#include "tmkit/elementary.hpp"

namespace tmkit {

using Vector3 = std::array<double, 3>;
using Vector4 = std::array<double, 4>;
using Vector6 = std::array<double, 6>;
using Matrix3 = std::array<double, 9>;   // row-major
using Matrix4 = std::array<double, 16>;  // row-major
using Matrix6 = std::array<double, 36>;  // row-major

inline Vector3 operator+(const Vector3& a, const Vector3& b) {
    return {a[0] + b[0], a[1] + b[1], a[2] + b[2]};
}
inline Vector3 operator-(const Vector3& a, const Vector3& b) {
    return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}
inline Vector3 operator*(double s, const Vector3& a) { return {s * a[0], s * a[1], s * a[2]}; }
inline double dot(const Vector3& a, const Vector3& b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
inline Vector3 cross(const Vector3& a, const Vector3& b) {
    return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
inline double norm(const Vector3& a) { return std::sqrt(dot(a, a)); }

inline constexpr Matrix3 identity3{1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0};

template <std::size_t N>
std::array<double, N> operator+(std::array<double, N> a, const std::array<double, N>& b) {
    for (std::size_t i = 0; i < N; ++i) a[i] += b[i];
    return a;
}
template <std::size_t N> std::array<double, N> operator*(double factor, std::array<double, N> a) {
    for (double& number : a) number *= factor;
    return a;
}
inline Matrix3 operator*(const Matrix3& a, const Matrix3& b) {
    Matrix3 c;
    for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 3; ++j)
            c[3 * i + j] = a[3 * i] * b[j] + a[3 * i + 1] * b[3 + j] + a[3 * i + 2] * b[6 + j];
    return c;
}
inline Matrix3 multiply_transposed(const Matrix3& a, const Matrix3& b) {  // a b^T
    Matrix3 c;
    for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 3; ++j)
            c[3 * i + j] =
                a[3 * i] * b[3 * j] + a[3 * i + 1] * b[3 * j + 1] + a[3 * i + 2] * b[3 * j + 2];
    return c;
}
inline Matrix3 transpose(const Matrix3& m) {
    return {m[0], m[3], m[6], m[1], m[4], m[7], m[2], m[5], m[8]};
}

struct Pose {
    Vector3 translation{0.0, 0.0, 0.0};
    Vector4 quat_xyzw{0.0, 0.0, 0.0, 1.0};

    // Check and normalise; throws Error(scene) for non-finite numbers or a quaternion of norm below
    // 1e-9.
    static Pose checked(const Vector3& translation, const Vector4& quat_xyzw);
    // Throws Error(scene), naming the defect, if the matrix is not orthonormal within 1e-6 or is
    // left-handed.
    static Pose from_rotation_matrix(const Vector3& translation, const Matrix3& rotation);
    // Fixed-axis roll, pitch, yaw as in URDF: R = Rz(yaw) Ry(pitch) Rx(roll).
    static Pose from_rpy(const Vector3& translation, const Vector3& rpy);
    static Pose exp(const Vector6& xi);

    Vector6 log() const;
    Matrix3 rotation() const;
    Matrix4 matrix() const;
    Pose inverse() const;
    Vector3 rotate(const Vector3& v) const;
    [[gnu::always_inline]] Vector3 apply(const Vector3& p) const { return rotate(p) + translation; }
    // Interpolate: translation linearly, rotation along the shorter great circle; fraction 0 gives
    // *this, 1 gives `other`.
    Pose interpolate(const Pose& other, double fraction) const;
    // Distance of the origins [m] and angle between the orientations [rad], 0 to pi.
    std::array<double, 2> distance(const Pose& other) const;

    friend bool operator==(const Pose&, const Pose&) = default;
};

[[gnu::always_inline]] inline Vector3 Pose::rotate(const Vector3& v) const {
    const Vector3 u{quat_xyzw[0], quat_xyzw[1], quat_xyzw[2]};
    const Vector3 t = 2.0 * cross(u, v);
    return v + quat_xyzw[3] * t + cross(u, t);
}

inline Vector4 multiply_quaternions(const Vector4& a, const Vector4& b) {
    return {a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1],
            a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0],
            a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3],
            a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2]};
}

// The product of unit quaternions, normalised by one step of Newton's method. Inlined, since a call
// costs more.
[[gnu::always_inline]] inline Vector4 compose_quaternions(const Vector4& a, const Vector4& b) {
    Vector4 q = multiply_quaternions(a, b);
    const double correction = 1.5 - 0.5 * (q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    for (double& component : q) component *= correction;
    return q;
}

// The product of poses for the innermost loops: inlined, where * may become a call.
[[gnu::always_inline]] inline Pose compose(const Pose& a, const Pose& b) {
    return {a.apply(b.translation), compose_quaternions(a.quat_xyzw, b.quat_xyzw)};
}

inline Pose operator*(const Pose& a, const Pose& b) { return compose(a, b); }

inline Pose Pose::inverse() const {
    const Vector4 q{-quat_xyzw[0], -quat_xyzw[1], -quat_xyzw[2], quat_xyzw[3]};
    Pose result{{0.0, 0.0, 0.0}, q};
    result.translation = -1.0 * result.rotate(translation);
    return result;
}

// Throws Error(overflow) unless the translation is finite; the quaternion of a product always is.
void require_in_range(const Pose& pose, const char* what);

// Rotation by `angle` [rad] about the unit vector `axis`.
inline Vector4 quaternion_about(const Vector3& axis, double angle) {
    const auto [s, c] = sine_cosine(0.5 * angle);
    return {s * axis[0], s * axis[1], s * axis[2], c};
}

Matrix6 adjoint(const Pose& pose);
Matrix6 left_jacobian(const Vector6& xi);
Matrix6 inverse_left_jacobian(const Vector6& xi);

inline Vector6 negative(const Vector6& xi) { return -1.0 * xi; }
inline Matrix6 right_jacobian(const Vector6& xi) { return left_jacobian(negative(xi)); }
inline Matrix6 inverse_right_jacobian(const Vector6& xi) {
    return inverse_left_jacobian(negative(xi));
}

// The rotation that takes z to the unit vector `axis` (half a turn about x for the opposite one).
inline Pose from_z_to(const Vector3& axis) {
    const double c = axis[2];
    if (c < -1.0 + 1e-12) return {{0.0, 0.0, 0.0}, {1.0, 0.0, 0.0, 0.0}};
    const double w = std::sqrt(0.5 * (1.0 + c));
    return {{0.0, 0.0, 0.0}, {-0.5 * axis[1] / w, 0.5 * axis[0] / w, 0.0, w}};
}

}  // namespace tmkit
