// How an error moves a pose: the retraction of a covariance.
//
// To first order every retraction is T exp(xi). Which one is taken decides the terms of second
// order, and with them whether an estimator is consistent (an error's size agrees with its
// covariance) where an orientation is known badly.
//
// Why exp alone is not. The log of a pose couples shift and turn: rho = V(theta)^-1 d for a shift
// d, so that d rho / d theta is -[rho]/2. Take measurements of position with noise sigma whose
// orientation is unknown. The residual rho is noise, of the size sigma, and Gauss and Newton's
// information J^T W J has the term [rho]^T [rho] / (4 sigma^2) for theta: about 1/2 per rad^2 and
// measurement, of an orientation that none of them contains. In the full second derivative the term
// -rho . d^2 rho / sigma^2 cancels it on average. Turns about different axes do the same to each
// other: with known roll and pitch and unknown yaw, [theta]/2 invents yaw.
//
// The retraction here applies what is known first, and the badly known turn last, in the axes of
// the child:
//
//     T (+) xi = T exp(xi - M xi) exp(M xi),      M = sum_i f(l_i) [C; A] u_i u_i^T [0, 1] / l_i
//
// with C = E[rho theta^T] and A = E[theta theta^T] of the covariance, (l_i, u_i) the eigenvalues
// and eigenvectors of A, and f = 0 for axes that are known to 13 degrees, 1 for those that are not
// to 14, and linear between. M xi is the regression of xi on the turns about badly known axes:
// those turns, and the shift that goes with them. A further turn about such an axis then leaves the
// known part as it is, so that there is no derivative to square:
//
//   * unknown orientation, C = 0: exp(xi - M xi) is the shift alone, which no turn changes. The
//   residual of a measured
//     pose is [R_Z^T (t - t_Z); log(R_Z^T R)], with its noise in the axes of the measured frame.
//   * known orientation: M = 0 and T (+) xi = T exp(xi), bit for bit. What is invented then is
//   small beside what is
//     known: about 1/2 per rad^2, and another at each e-fold of the measurements, beside 20 and
//     more.
//   * one turn with a lever, such as the error of a joint (rank 1): M xi is parallel to xi, and T
//   (+) xi = T exp(xi).
//   * other points of the same body: the retraction of Ad(a^-1) S Ad(a^-1)^T moves T a to (T (+)
//   xi) a.
//
// Where no axis is known, the residual theta of a measurement is mostly noise, as likely -theta as
// theta. The derivative of its log, 1 + [theta]/2 + ..., is then taken as the mean of both, which
// is free of the first power. So weak measurements of orientation add no more than they contain:
// the slope (a/2) cot(a/2) < 1 at the angle a instead of (a/2) / sin(a/2) > 1.
#pragma once

#include <optional>

#include "tmkit/covariance.hpp"

namespace tmkit {

class Retraction {
public:
    explicit Retraction(const Covariance& covariance);

    bool is_exponential() const { return !has_turn_; }
    // identity (+) xi
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
    std::optional<Residual> solved(const Pose& pose) const;

    Matrix6 turn_{};  // M
    bool has_turn_ = false, knows_no_axis_ = false;
};

}  // namespace tmkit
