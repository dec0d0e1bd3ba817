#include "tmkit/lie.hpp"

namespace tmkit {

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
    // sum over k of (-x)^k / (2k+2)!, / (2k+3)!, / (2k+4)! and (k+1) / (2k+5)!; ten terms are exact for x <= 1, fewer
    // below.
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
    const Matrix3 once = tr + rt + trt, twice = t * tr + rt * t + -3.0 * trt, thrice = trt * t + t * trt;
    return {identity3 + c.first * t + c.second * tt, 0.5 * r + c.second * once + c.third * twice + c.fourth * thrice};
}

Matrix3 inverse_rotation_jacobian(const Vector3& theta) {
    const double angle = norm(theta), half = 0.5 * angle;
    // (1 - (a/2) cot(a/2)) / a^2; its error counts times a^2, so that the closed form is good down to small angles.
    const auto [sine, cosine] = sine_cosine(half);
    const double c = angle < 1e-3 ? 1.0 / 12.0 + angle * angle / 720.0 : (1.0 - half * cosine / sine) / (angle * angle);
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
