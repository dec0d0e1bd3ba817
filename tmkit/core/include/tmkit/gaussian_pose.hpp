// Uncertain poses beyond first order, and their left-hand form.
//
// First order (covariance.hpp) takes products of errors as zero. Composing two independent errors x1 and x2, carried to
// the tangent space of the product, log(exp(x1) exp(x2)) is x1 + x2 + [x1, x2]/2 + ...; its second moment to fourth
// order in the errors has the terms S1 S2 of Barfoot and Furgale, "Associating uncertainty with three-dimensional poses
// for use in estimation problems", 2014. They write left errors; as the Baker-Campbell-Hausdorff series is the same on
// the right, the formula is too, with Ad(T2^-1) xi1 and xi2 in the place of xi1 and Ad(T1) xi2.
//
// Invariants: where one of two errors is zero both orders agree to the last bit; the difference is of the order of the
// product of covariances.
//
// The sum of the terms is cut off, so with large or rank-deficient errors it need not be positive semi-definite. With
// A1 and A2 the means of the squared brackets, it is (1 + A2/12) S1 (1 + A2/12)^T + (1 + A1/12) S2 (1 + A1/12)^T + B/4
// but for the terms A2 S1 A2^T/144 and A1 S2 A1^T/144, which are of sixth order; where it has a negative eigenvalue,
// they complete it.
#pragma once

#include "tmkit/covariance.hpp"

namespace tmkit {

// What fourth order adds to S1 + S2, both in one tangent space.
Covariance fourth_order_terms(const Covariance& first, const Covariance& second);

// a_from_c of a_from_b and b_from_c with independent errors, to fourth order; always positive semi-definite.
GaussianPose composed_to_fourth_order(const GaussianPose& a, const GaussianPose& b);

}  // namespace tmkit
