#include "tmkit/gaussian_pose.hpp"

namespace tmkit {
namespace {

Matrix3 sum(const Matrix3& a, const Matrix3& b) {
    Matrix3 c;
    for (std::size_t i = 0; i < 9; ++i) c[i] = a[i] + b[i];
    return c;
}

// <<A>> = A - tr(A) 1: the mean of hat(x) hat(y) for E[x y^T] = A^T.
Matrix3 folded(const Matrix3& a) {
    Matrix3 c = a;
    const double trace = a[0] + a[4] + a[8];
    for (std::size_t i = 0; i < 9; i += 4) c[i] -= trace;
    return c;
}

// <<A, B>> = <<A>> <<B>> + <<B A>>
Matrix3 folded(const Matrix3& a, const Matrix3& b) { return sum(multiply(folded(a), folded(b)), folded(multiply(b, a))); }

// Adds factor (A S + S A^T) for A = [[diagonal, corner], [0, diagonal]].
void add_both_sides(Covariance& result, double factor, const Matrix3& diagonal, const Matrix3& corner, const Covariance& s) {
    const Matrix3 linear = sum(multiply(diagonal, s.linear), multiply(corner, transposed(s.cross)));
    const Matrix3 cross = sum(sum(multiply(diagonal, s.cross), multiply(corner, s.angular)),
                              multiply(s.cross, transposed(diagonal)));
    const Matrix3 angular = multiply(diagonal, s.angular);
    for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 3; ++j) {
            result.linear[3 * i + j] += factor * (linear[3 * i + j] + linear[3 * j + i]);
            result.cross[3 * i + j] += factor * cross[3 * i + j];
            result.angular[3 * i + j] += factor * (angular[3 * i + j] + angular[3 * j + i]);
        }
}

void add_commutator(Covariance& result, const Covariance& of, const Covariance& s) {
    add_both_sides(result, 1.0 / 12.0, folded(of.angular), folded(sum(of.cross, transposed(of.cross))), s);
}

}  // namespace

Covariance fourth_order_terms(const Covariance& a, const Covariance& b) {
    Covariance result;
    if (a.is_zero() || b.is_zero()) return result;
    add_commutator(result, a, b);
    add_commutator(result, b, a);
    const Matrix3 at = transposed(a.cross), bt = transposed(b.cross);
    const Matrix3 linear = sum(sum(folded(a.angular, b.linear), folded(at, b.cross)), sum(folded(a.cross, bt), folded(a.linear, b.angular)));
    const Matrix3 cross = sum(folded(a.angular, bt), folded(at, b.angular));
    const Matrix3 angular = folded(a.angular, b.angular);
    for (std::size_t i = 0; i < 9; ++i) {
        result.linear[i] += 0.25 * linear[i];
        result.cross[i] += 0.25 * cross[i];
        result.angular[i] += 0.25 * angular[i];
    }
    return result;
}

GaussianPose composed_to_fourth_order(const GaussianPose& a, const GaussianPose& b) {
    GaussianPose result{a.mean * b.mean, a.covariance.carried_down(b.mean)};
    const Covariance more = fourth_order_terms(result.covariance, b.covariance);
    result.covariance += b.covariance;
    result.covariance += more;
    return result;
}

}  // namespace tmkit
