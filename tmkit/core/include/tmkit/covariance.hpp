// Covariances of poses, by blocks.
//
// An uncertain pose is T = mean * exp(xi) with xi = [rho, theta] of mean zero in the tangent space
// at the mean, in the axes of the child (the right, local tangent; linear part first). Its
// covariance is the symmetric positive semi-definite matrix
//
//     S = [[ linear, cross ], [ cross^T, angular ]]          [m^2, m rad, rad^2]
//
// Singular covariances are valid: that of an exact pose is zero.
//
// A transform T maps a tangent vector by the adjoint Ad(T) = [[R, [t]R], [0, R]]. By blocks,
// Ad(T) S Ad(T)^T is three rotations of 3 x 3 blocks and a few cross products, half the work of
// 6 x 6 products. Sources: Sewtz et al., "Representing Uncertain Spatial Transformations in Robotic
// Applications in a Structured Framework Leveraging Lie Algebra", equations 1 to 7; Sola, Deray and
// Atchuthan, "A micro Lie theory for state estimation in robotics".
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "tmkit/pose.hpp"

namespace tmkit {

inline Matrix3 cross_columns(const Vector3& t, const Matrix3& m) {  // [t] m
    Matrix3 c;
    for (std::size_t j = 0; j < 3; ++j) {
        c[j] = t[1] * m[6 + j] - t[2] * m[3 + j];
        c[3 + j] = t[2] * m[j] - t[0] * m[6 + j];
        c[6 + j] = t[0] * m[3 + j] - t[1] * m[j];
    }
    return c;
}

// Nine numbers as pairs, the width of registers on every CPU; the tenth number is unused.
struct PairedRow {
    using Pair = double __attribute__((vector_size(16)));
    Pair pairs[5];
    static PairedRow of(double a, double b, double c, double d, double e, double f, double g,
                        double h, double i) {
        return {{Pair{a, b}, Pair{c, d}, Pair{e, f}, Pair{g, h}, Pair{i, 0.0}}};
    }
    double operator[](std::size_t i) const { return pairs[i / 2][i % 2]; }
};
inline PairedRow combine(const PairedRow* rows, const double* weights) {
    PairedRow sum;
    for (std::size_t k = 0; k < 5; ++k)
        sum.pairs[k] = weights[0] * rows[0].pairs[k] + weights[1] * rows[1].pairs[k] +
                       weights[2] * rows[2].pairs[k];
    return sum;
}

struct Covariance {
    // Linear and angular are exactly symmetric.
    Matrix3 linear{}, cross{}, angular{};

    // Throws Error(scene), naming `what` and the defect, if the matrix has a non-finite number, is
    // not symmetric within 1e-9 of its largest entry, or has an eigenvalue below -1e-9 of the
    // largest. The message lists all eigenvalues in that case.
    static Covariance checked(const Matrix6& matrix, std::string_view what);
    // Of a checked matrix: the mean of it and its transpose.
    static Covariance of_blocks(const Matrix6& matrix);
    static Covariance of_columns(std::span<const Vector6> columns);  // sum of column column^T

    Matrix6 matrix() const;
    bool is_zero() const { return *this == Covariance{}; }
    bool operator==(const Covariance&) const = default;

    Covariance& operator+=(const Covariance& other) {
        for (std::size_t i = 0; i < 9; ++i) {
            linear[i] += other.linear[i];
            cross[i] += other.cross[i];
            angular[i] += other.angular[i];
        }
        return *this;
    }

    // Return columns whose squares sum to this covariance, as many as its rank: eigenvectors times
    // the square roots of the eigenvalues, the greatest first. Eigenvalues below 1e-14 of the
    // greatest count as zero; variances of very different scale are scaled first.
    std::vector<Vector6> root() const;

    // R S R^T for a rotation of both parts. The three blocks lie side by side, nine numbers a row,
    // and are processed in pairs. Every number is summed in the order of plain products, which
    // keeps their bits, in two thirds of the time.
    Covariance rotate(const Matrix3& r) const {
        PairedRow rows[3], half[3], columns[3], turned[3];
        for (std::size_t i = 0; i < 3; ++i) {
            const double *l = &linear[3 * i], *c = &cross[3 * i], *a = &angular[3 * i];
            rows[i] = PairedRow::of(l[0], l[1], l[2], c[0], c[1], c[2], a[0], a[1], a[2]);
        }
        // R S, block by block.
        for (std::size_t i = 0; i < 3; ++i) half[i] = combine(rows, &r[3 * i]);
        for (std::size_t k = 0; k < 3; ++k)  // columns k of the three blocks, in sequence
            columns[k] =
                PairedRow::of(half[0][k], half[1][k], half[2][k], half[0][3 + k], half[1][3 + k],
                              half[2][3 + k], half[0][6 + k], half[1][6 + k], half[2][6 + k]);
        // Columns j of R S R^T.
        for (std::size_t j = 0; j < 3; ++j) turned[j] = combine(columns, &r[3 * j]);
        Covariance result;
        for (std::size_t i = 0; i < 3; ++i)
            for (std::size_t j = 0; j < 3; ++j) {
                result.cross[3 * i + j] = turned[j][3 + i];
                if (j > i) continue;
                result.linear[3 * i + j] = result.linear[3 * j + i] = turned[j][i];
                result.angular[3 * i + j] = result.angular[3 * j + i] = turned[j][6 + i];
            }
        return result;
    }
    // [[1, [t]], [0, 1]] S [[1, [t]], [0, 1]]^T
    Covariance shift(const Vector3& t) const {
        Covariance result = *this;
        const Matrix3 moved = cross_columns(t, angular);
        for (std::size_t i = 0; i < 9; ++i) result.cross[i] += moved[i];
        const Matrix3 once = cross_columns(t, tmkit::transpose(cross)),
                      twice = cross_columns(t, tmkit::transpose(result.cross));
        for (std::size_t i = 0; i < 3; ++i)
            for (std::size_t j = 0; j <= i; ++j)
                result.linear[3 * j + i] = result.linear[3 * i + j] +=
                    once[3 * i + j] + twice[3 * j + i];
        return result;
    }
    // Ad(T) S Ad(T)^T: the same error in the parent's axes.
    Covariance carry_up(const Pose& parent_from_child) const {
        return rotate(parent_from_child.rotation()).shift(parent_from_child.translation);
    }
    // Ad(T^-1) S Ad(T^-1)^T: an error of the parent, in the child's axes.
    Covariance carry_down(const Pose& parent_from_child) const {
        return shift(-1.0 * parent_from_child.translation)
            .rotate(tmkit::transpose(parent_from_child.rotation()));
    }
};

// Ad(T) xi and Ad(T^-1) xi.
[[gnu::always_inline]] inline Vector6 carry_up(const Vector6& xi, const Pose& parent_from_child) {
    const Vector3 angular = parent_from_child.rotate({xi[3], xi[4], xi[5]});
    const Vector3 linear = parent_from_child.rotate({xi[0], xi[1], xi[2]}) +
                           cross(parent_from_child.translation, angular);
    return {linear[0], linear[1], linear[2], angular[0], angular[1], angular[2]};
}
inline Vector6 carry_down(const Vector6& xi, const Pose& parent_from_child) {
    const Vector3 theta{xi[3], xi[4], xi[5]};
    const Pose turn{{0.0, 0.0, 0.0},
                    {-parent_from_child.quat_xyzw[0], -parent_from_child.quat_xyzw[1],
                     -parent_from_child.quat_xyzw[2], parent_from_child.quat_xyzw[3]}};
    const Vector3 linear = turn.rotate(Vector3{xi[0], xi[1], xi[2]} -
                                       cross(parent_from_child.translation, theta)),
                  angular = turn.rotate(theta);
    return {linear[0], linear[1], linear[2], angular[0], angular[1], angular[2]};
}

// Compute the eigenvalues, ascending, and eigenvectors (row i of `vectors` belongs to values[i]) of
// a symmetric n x n matrix, by Jacobi's rotations: for small n, exact to the last places, the same
// on every CPU. O(n^3).
void symmetric_eigen(std::vector<double> matrix, std::size_t n, std::vector<double>& values,
                     std::vector<double>& vectors);

// Divisors of the rows of a covariance (n x n, row-major) for the comparison of its eigenvalues.
// They are ones for variances of similar scale. For variances more than ten orders apart (an
// unknown position of 1e9 m^2 beside a precise angle) they are standard deviations, since the small
// would vanish beside the great. A deviation below 1e-12 of the greatest, the size of rounding
// errors, gives zero.
std::vector<double> comparable_scales(const std::vector<double>& matrix, std::size_t n);

// --- uncertain poses

struct GaussianPose {
    Pose mean;
    Covariance covariance;

    // child_from_parent; exact.
    GaussianPose inverse() const { return {mean.inverse(), covariance.carry_up(mean)}; }
    bool operator==(const GaussianPose&) const = default;
};

// a_from_c of a_from_b and b_from_c with independent errors, to first order.
inline GaussianPose operator*(const GaussianPose& a, const GaussianPose& b) {
    GaussianPose result{a.mean * b.mean, a.covariance.carry_down(b.mean)};
    result.covariance += b.covariance;
    return result;
}

// Terms of fourth order to add to S1 + S2, both in one tangent space.
Covariance fourth_order_terms(const Covariance& first, const Covariance& second);

// a_from_c of a_from_b and b_from_c with independent errors, to fourth order; always positive
// semi-definite.
GaussianPose compose_to_fourth_order(const GaussianPose& a, const GaussianPose& b);

}  // namespace tmkit
