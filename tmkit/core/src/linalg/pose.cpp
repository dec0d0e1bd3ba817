#include "tmkit/pose.hpp"

#include <algorithm>

#include "tmkit/error.hpp"

namespace tmkit {
namespace {

// Below this angle the closed forms lose digits, and their Taylor series to second order is exact
// to double precision.
constexpr double small_angle = 1e-4;

void require_finite(std::span<const double> values, const char* what) {
    if (!std::ranges::all_of(values, [](double v) { return std::isfinite(v); }))
        throw Error(ErrorKind::scene, "{} must be finite numbers, not {}", what, values);
}

// (1 - cos a) / a^2 and (a - sin a) / a^3, the coefficients of the left Jacobian of rotations.
std::array<double, 2> jacobian_coefficients(double angle) {
    const double squared = angle * angle;
    if (angle < small_angle) return {0.5 - squared / 24.0, 1.0 / 6.0 - squared / 120.0};
    const double half_sine = sine(0.5 * angle);  // 1 - cos a = 2 sin^2(a/2), which does not cancel
    return {2.0 * half_sine * half_sine / squared, (angle - sine(angle)) / (squared * angle)};
}

Vector3 rotation_vector(Vector4 q) {
    if (q[3] < 0.0)
        for (double& component : q) component = -component;
    const Vector3 v{q[0], q[1], q[2]};
    const double sine = norm(v);
    const double scale = sine < small_angle
                             ? 2.0 / q[3] - 2.0 * sine * sine / (3.0 * q[3] * q[3] * q[3])
                             : 2.0 * arctangent(sine, q[3]) / sine;
    return scale * v;
}

Vector4 quaternion_of(const Vector3& theta) {
    const double angle = norm(theta);
    const auto [sine, cosine] = sine_cosine(0.5 * angle);
    const double scale = angle < small_angle ? 0.5 - angle * angle / 48.0 : sine / angle;
    return {scale * theta[0], scale * theta[1], scale * theta[2], cosine};
}

}  // namespace

void require_in_range(const Pose& pose, const char* what) {
    require_in_range(pose.translation, what);
    require_in_range(pose.quat_xyzw, what);
}

Pose Pose::checked(const Vector3& translation, const Vector4& quat_xyzw) {
    require_finite(translation, "translation");
    require_finite(quat_xyzw, "quat_xyzw");
    Vector4 q = quat_xyzw;
    const auto squared_norm = [&q] {
        return q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3];
    };
    double squared = squared_norm();
    if (squared < 1e-18)
        throw Error(ErrorKind::scene,
                    "quat_xyzw is zero, which is no rotation; the identity is [0, 0, 0, 1]");
    if (!std::isfinite(squared)) {  // the squares overflow, the numbers do not
        const double largest =
            std::max({std::abs(q[0]), std::abs(q[1]), std::abs(q[2]), std::abs(q[3])});
        for (double& component : q) component /= largest;
        squared = squared_norm();
    }
    if (std::abs(squared - 1.0) > 4e-15) {
        const double length = std::sqrt(squared);
        for (double& component : q) component /= length;
    }
    return {translation, q};
}

Pose Pose::from_rotation_matrix(const Vector3& translation, const Matrix3& m) {
    require_finite(m, "rotation");
    double defect = 0.0;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
            double product = 0.0;
            for (int k = 0; k < 3; ++k) product += m[3 * i + k] * m[3 * j + k];
            defect = std::max(defect, std::abs(product - (i == j)));
        }
    if (defect > 1e-6)
        throw Error(ErrorKind::scene,
                    "rotation is not orthonormal: R R^T differs from the identity by {}, at most "
                    "1e-6 is accepted",
                    defect);
    const Vector3 x{m[0], m[3], m[6]}, y{m[1], m[4], m[7]}, z{m[2], m[5], m[8]};
    if (dot(cross(x, y), z) < 0.0)
        throw Error(ErrorKind::scene,
                    "rotation is left-handed: its determinant is -1, a rotation has +1");
    // Shepperd's method: divide by the largest of the four candidates.
    const std::array<double, 4> four{m[0] - m[4] - m[8], m[4] - m[0] - m[8], m[8] - m[0] - m[4],
                                     m[0] + m[4] + m[8]};
    const auto largest =
        static_cast<std::size_t>(std::max_element(four.begin(), four.end()) - four.begin());
    Vector4 q{};
    const double d = std::sqrt(1.0 + four[largest]);
    q[largest] = 0.5 * d;
    const double s = 0.5 / d;
    if (largest == 3) {
        q[0] = s * (m[7] - m[5]);
        q[1] = s * (m[2] - m[6]);
        q[2] = s * (m[3] - m[1]);
    } else {
        const std::size_t i = largest, j = (i + 1) % 3, k = (i + 2) % 3;
        q[3] = s * (m[3 * k + j] - m[3 * j + k]);
        q[j] = s * (m[3 * j + i] + m[3 * i + j]);
        q[k] = s * (m[3 * k + i] + m[3 * i + k]);
    }
    return checked(translation, q);
}

Pose Pose::from_rpy(const Vector3& translation, const Vector3& rpy) {
    require_finite(rpy, "rpy");
    const Vector4 roll = quaternion_about({1, 0, 0}, rpy[0]);
    const Vector4 pitch = quaternion_about({0, 1, 0}, rpy[1]);
    const Vector4 yaw = quaternion_about({0, 0, 1}, rpy[2]);
    return checked(translation, multiply_quaternions(yaw, multiply_quaternions(pitch, roll)));
}

Pose Pose::exp(const Vector6& xi) {
    require_finite(xi, "xi");
    const Vector3 rho{xi[0], xi[1], xi[2]}, theta{xi[3], xi[4], xi[5]};
    const auto [a, b] = jacobian_coefficients(norm(theta));
    const Vector3 once = cross(theta, rho);
    return checked(rho + a * once + b * cross(theta, once), quaternion_of(theta));
}

Vector6 Pose::log() const {
    const Vector3 theta = rotation_vector(quat_xyzw);
    const double angle = norm(theta);
    // V^-1 = I - [theta]/2 + c [theta]^2 with c = (1 - (a/2) cot(a/2)) / a^2.
    const double half = 0.5 * angle;
    const auto [sine, cosine] = sine_cosine(half);
    const double c = angle < small_angle ? 1.0 / 12.0 + angle * angle / 720.0
                                         : (1.0 - half * cosine / sine) / (angle * angle);
    const Vector3 once = cross(theta, translation);
    const Vector3 rho = translation - 0.5 * once + c * cross(theta, once);
    return {rho[0], rho[1], rho[2], theta[0], theta[1], theta[2]};
}

Matrix3 Pose::rotation() const {
    const auto [x, y, z, w] = quat_xyzw;
    return {1 - 2 * (y * y + z * z), 2 * (x * y - z * w),     2 * (x * z + y * w),
            2 * (x * y + z * w),     1 - 2 * (x * x + z * z), 2 * (y * z - x * w),
            2 * (x * z - y * w),     2 * (y * z + x * w),     1 - 2 * (x * x + y * y)};
}

Matrix4 Pose::matrix() const {
    const Matrix3 r = rotation();
    return {r[0], r[1], r[2], translation[0], r[3], r[4], r[5], translation[1],
            r[6], r[7], r[8], translation[2], 0.0,  0.0,  0.0,  1.0};
}

Pose Pose::interpolate(const Pose& other, double fraction) const {
    const Vector4 inverse{-quat_xyzw[0], -quat_xyzw[1], -quat_xyzw[2], quat_xyzw[3]};
    const Vector3 theta = rotation_vector(multiply_quaternions(inverse, other.quat_xyzw));
    require_finite({&fraction, 1}, "fraction");
    return checked(translation + fraction * (other.translation - translation),
                   multiply_quaternions(quat_xyzw, quaternion_of(fraction * theta)));
}

std::array<double, 2> Pose::distance(const Pose& other) const {
    const Vector4 inverse{-quat_xyzw[0], -quat_xyzw[1], -quat_xyzw[2], quat_xyzw[3]};
    return {norm(translation - other.translation),
            norm(rotation_vector(multiply_quaternions(inverse, other.quat_xyzw)))};
}

// --- errors

namespace {

Matrix3 hat(const Vector3& v) { return {0, -v[2], v[1], v[2], 0, -v[0], -v[1], v[0], 0}; }

// [[diagonal, corner], [0, diagonal]]
Matrix6 triangular(const Matrix3& diagonal, const Matrix3& corner) {
    Matrix6 whole{};
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
            whole[6 * i + j] = whole[6 * (i + 3) + j + 3] = diagonal[3 * i + j];
            whole[6 * i + j + 3] = corner[3 * i + j];
        }
    return whole;
}

// The coefficients of powers of hat(theta), as functions of the angle a:
//   first  = (1 - cos a) / a^2               second = (a - sin a) / a^3
//   third  = (a^2 + 2 cos a - 2) / (2 a^4)   fourth = (2 a - 3 sin a + a cos a) / (2 a^5)
struct Coefficients {
    double first, second, third, fourth;
};

Coefficients by_series(double squared) {
    // Sum over k of (-x)^k / (2k+2)!, / (2k+3)!, / (2k+4)! and (k+1) / (2k+5)!; ten terms are exact
    // for x <= 1, fewer below.
    Coefficients sum{0.0, 0.0, 0.0, 0.0};
    double power = 1.0, factorial = 2.0;
    for (int k = 0; k < 10 && std::abs(power) > 1e-17 * factorial; ++k) {
        double f = factorial;
        sum.first += power / f;
        f *= 2 * k + 3;
        sum.second += power / f;
        f *= 2 * k + 4;
        sum.third += power / f;
        f *= 2 * k + 5;
        sum.fourth += power * (k + 1) / f;
        power *= -squared;
        factorial *= (2 * k + 3) * (2 * k + 4);
    }
    return sum;
}

Coefficients coefficients(double angle) {
    const double squared = angle * angle;
    if (angle < 1.0) return by_series(squared);
    const auto [sine, cosine] = sine_cosine(angle);
    return {(1.0 - cosine) / squared, (angle - sine) / (squared * angle),
            (squared + 2.0 * cosine - 2.0) / (2.0 * squared * squared),
            (2.0 * angle - 3.0 * sine + angle * cosine) / (2.0 * squared * squared * angle)};
}

struct Blocks {
    Matrix3 jacobian, corner;
};

Blocks left_blocks(const Vector6& xi) {
    const Vector3 theta{xi[3], xi[4], xi[5]};
    const Matrix3 r = hat({xi[0], xi[1], xi[2]}), t = hat(theta);
    const Coefficients c = coefficients(norm(theta));
    const Matrix3 tt = t * t, tr = t * r, rt = r * t, trt = tr * t;
    const Matrix3 once = tr + rt + trt, twice = t * tr + rt * t + -3.0 * trt,
                  thrice = trt * t + t * trt;
    return {identity3 + c.first * t + c.second * tt,
            0.5 * r + c.second * once + c.third * twice + c.fourth * thrice};
}

Matrix3 inverse_rotation_jacobian(const Vector3& theta) {
    const double angle = norm(theta), half = 0.5 * angle;
    // (1 - (a/2) cot(a/2)) / a^2; its error is multiplied by a^2, so the closed form is precise
    // down to small angles.
    const auto [sine, cosine] = sine_cosine(half);
    const double c = angle < 1e-3 ? 1.0 / 12.0 + angle * angle / 720.0
                                  : (1.0 - half * cosine / sine) / (angle * angle);
    const Matrix3 t = hat(theta);
    return identity3 + -0.5 * t + c * (t * t);
}

}  // namespace

Matrix6 adjoint(const Pose& pose) {
    const Matrix3 rotation = pose.rotation();
    return triangular(rotation, hat(pose.translation) * rotation);
}

Matrix6 left_jacobian(const Vector6& xi) {
    const Blocks blocks = left_blocks(xi);
    return triangular(blocks.jacobian, blocks.corner);
}

Matrix6 inverse_left_jacobian(const Vector6& xi) {
    const Matrix3 inverse = inverse_rotation_jacobian({xi[3], xi[4], xi[5]});
    return triangular(inverse, -1.0 * (inverse * left_blocks(xi).corner * inverse));
}

}  // namespace tmkit
