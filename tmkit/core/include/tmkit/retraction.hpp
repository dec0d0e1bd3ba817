// Retraction of a covariance: the motion of a pose by an error.
//
// To first order every retraction is T exp(xi). The choice decides the terms of second order. With
// them it decides whether an estimator is consistent (an error's size agrees with its covariance)
// for a badly known orientation.
//
// Inconsistency of exp alone. The log of a pose couples shift and turn: rho = V(theta)^-1 d for a
// shift d, so d rho / d theta is -[rho]/2. Take measurements of position with noise sigma and
// unknown orientation. The residual rho is noise, of the size sigma, and the Gauss-Newton
// information J^T W J has the term [rho]^T [rho] / (4 sigma^2) for theta: about 1/2 per rad^2 and
// measurement, of an orientation that none of them contains. In the full second derivative the term
// -rho . d^2 rho / sigma^2 cancels it on average. Turns about different axes have the same effect
// on each other: with known roll and pitch and unknown yaw, [theta]/2 adds false information on
// yaw.
//
// The retraction here applies the well-known part first, and the badly known turn last, in the axes
// of the child:
//
//     T (+) xi = T exp(xi - M xi) exp(M xi),      M = sum_i f(l_i) [C; A] u_i u_i^T [0, 1] / l_i
//
// with C = E[rho theta^T] and A = E[theta theta^T] of the covariance, (l_i, u_i) the eigenvalues
// and eigenvectors of A. f is 0 for axes known to 13 degrees, 1 for those not known to 14, and
// linear between. M xi is the regression of xi on the turns about badly known axes: those turns,
// and the correlated shift. A further turn about such an axis leaves the well-known part unchanged,
// and has no derivative to square:
//
//   * unknown orientation, C = 0: exp(xi - M xi) is the shift alone, which no turn changes. The
//     residual of a measured pose is [R_Z^T (t - t_Z); log(R_Z^T R)], with its noise in the axes of
//     the measured frame.
//   * known orientation: M = 0 and T (+) xi = T exp(xi), bit for bit. The false information is then
//     small beside the real: about 1/2 per rad^2, and another 1/2 at each e-fold of the
//     measurements, beside 20 and more.
//   * one turn with a lever, such as the error of a joint (rank 1): M xi is parallel to xi, and
//     T (+) xi = T exp(xi).
//   * other points of the same body: the retraction of Ad(a^-1) S Ad(a^-1)^T moves T a to
//     (T (+) xi) a.
//
// If no axis is known, the residual theta of a measurement is mostly noise, as likely -theta as
// theta. The derivative of its log, 1 + [theta]/2 + ..., is then taken as the mean of both, which
// has no term of first order. Weak measurements of orientation then add only the information that
// they contain: the slope (a/2) cot(a/2) < 1 at the angle a instead of (a/2) / sin(a/2) > 1.
#pragma once

#include <optional>

#include "tmkit/covariance.hpp"

namespace tmkit {

class Retraction {
public:
    explicit Retraction(const Covariance& covariance);

    bool is_exponential() const { return !has_turn_; }
    // Identity (+) xi.
    Pose pose(const Vector6& xi) const;
    // (identity (+) (xi + d)) = (identity (+) xi) exp(J d) to first order in d.
    Matrix6 jacobian(const Vector6& xi) const;

    // The error xi with identity (+) xi = pose, and its derivative by the right error of the pose.
    struct Residual {
        Vector6 error;
        Matrix6 derivative;
    };
    Residual residual(const Pose& pose) const;

private:
    Matrix6 known_jacobian(const Vector6& xi, const Vector6& turn) const;
    std::optional<Residual> solve(const Pose& pose) const;

    Matrix6 turn_{};  // M
    bool has_turn_ = false, knows_no_axis_ = false;
};

}  // namespace tmkit
