// What small errors of poses need beside exp and log: the adjoint and the Jacobians of the exponential.
//
// Six-vectors are [rho, theta], linear part first. The adjoint moves an error from one tangent space to another:
// T exp(xi) = exp(Ad(T) xi) T. The Jacobians say what exp does to a change of its argument:
//
//     exp(xi + d) = exp(J_l(xi) d) exp(xi) = exp(xi) exp(J_r(xi) d)     to first order in d, and J_r(xi) = J_l(-xi);
//
// their inverses do the same for log. The left Jacobian is [[J, Q], [0, J]] with J the Jacobian of rotations and Q as
// in Barfoot and Furgale, "Associating uncertainty with three-dimensional poses for use in estimation problems", 2014.
//
// Invariant: all coefficients are exact to a few units in the last place for every angle. Below one radian, where the
// closed forms cancel, they are Taylor series. The inverses exist for angles below 2 pi; log gives none above pi.
#pragma once

#include "tmkit/pose.hpp"

namespace tmkit {

using Matrix6 = std::array<double, 36>;  // row-major

Matrix6 adjoint(const Pose& pose);
Matrix6 left_jacobian(const Vector6& xi);
Matrix6 inverse_left_jacobian(const Vector6& xi);

inline Vector6 negative(const Vector6& xi) { return {-xi[0], -xi[1], -xi[2], -xi[3], -xi[4], -xi[5]}; }
inline Matrix6 right_jacobian(const Vector6& xi) { return left_jacobian(negative(xi)); }
inline Matrix6 inverse_right_jacobian(const Vector6& xi) { return inverse_left_jacobian(negative(xi)); }

}  // namespace tmkit
