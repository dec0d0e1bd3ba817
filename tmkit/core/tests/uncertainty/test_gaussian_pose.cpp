// Uncertain poses in the core: laws of their products, bit for bit if they hold so.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tmkit/covariance.hpp"
#include "tmkit/random.hpp"

using namespace tmkit;

namespace {

Vector6 random_six(Random& random, double size) {
    Vector6 xi;
    for (double& value : xi) value = size * (2.0 * random.uniform() - 1.0);
    return xi;
}

GaussianPose random_pose(Random& random, double size, int rank) {
    std::vector<Vector6> columns;
    for (int i = 0; i < rank; ++i) columns.push_back(random_six(random, size));
    return {Pose::exp(random_six(random, 1.5)), Covariance::of_columns(columns)};
}

double difference(const Matrix6& a, const Matrix6& b) {
    double greatest = 0.0;
    for (std::size_t i = 0; i < 36; ++i) greatest = std::max(greatest, std::abs(a[i] - b[i]));
    return greatest;
}

Matrix6 product(const Matrix6& a, const Matrix6& b) {
    Matrix6 c{};
    for (std::size_t i = 0; i < 6; ++i)
        for (std::size_t j = 0; j < 6; ++j)
            for (std::size_t k = 0; k < 6; ++k) c[6 * i + j] += a[6 * i + k] * b[6 * k + j];
    return c;
}

Matrix6 transposed6(const Matrix6& a) {
    Matrix6 c;
    for (std::size_t i = 0; i < 6; ++i)
        for (std::size_t j = 0; j < 6; ++j) c[6 * i + j] = a[6 * j + i];
    return c;
}

bool is_symmetric(const Covariance& c) {
    return transpose(c.linear) == c.linear && transpose(c.angular) == c.angular;
}

}  // namespace

TEST_CASE("rotated blocks have the bits of plain products") {
    Random random(1);
    for (int turn = 0; turn < 200; ++turn) {
        const GaussianPose g = random_pose(random, 0.1, turn % 7);
        const Matrix3 r = g.mean.rotation();
        const Covariance turned = g.covariance.rotate(r);
        CHECK(turned.cross == multiply_transposed(r * g.covariance.cross, r));
        const Matrix3 linear = multiply_transposed(r * g.covariance.linear, r);
        for (std::size_t i = 0; i < 3; ++i)
            for (std::size_t j = 0; j <= i; ++j)
                CHECK(turned.linear[3 * i + j] == linear[3 * i + j]);
        CHECK(is_symmetric(turned));
    }
}

TEST_CASE("carrying covariances over is multiplication with the adjoint") {
    Random random(2);
    for (int turn = 0; turn < 100; ++turn) {
        const GaussianPose g = random_pose(random, 0.1, 6);
        const Matrix6 ad = adjoint(g.mean), down = adjoint(g.mean.inverse()),
                      s = g.covariance.matrix();
        CHECK(difference(g.covariance.carry_up(g.mean).matrix(),
                         product(product(ad, s), transposed6(ad))) < 1e-14);
        CHECK(difference(g.covariance.carry_down(g.mean).matrix(),
                         product(product(down, s), transposed6(down))) < 1e-14);
    }
}

TEST_CASE("products are associative, inverses of inverses are the poses") {
    Random random(3);
    for (int turn = 0; turn < 100; ++turn) {
        const GaussianPose a = random_pose(random, 0.1, 6), b = random_pose(random, 0.1, 3),
                           c = random_pose(random, 0.1, 1);
        CHECK(difference(((a * b) * c).covariance.matrix(), (a * (b * c)).covariance.matrix()) <
              1e-13);
        CHECK(difference(a.inverse().inverse().covariance.matrix(), a.covariance.matrix()) < 1e-13);
        CHECK(is_symmetric((a * b).inverse().covariance));
    }
}

TEST_CASE("Jacobians and their inverses cancel at every angle") {
    Random random(4);
    Matrix6 identity{};
    for (std::size_t i = 0; i < 6; ++i) identity[7 * i] = 1.0;
    for (double angle :
         {0.0, 1e-9, 1e-4, 0.999e-3, 1e-3, 0.999, 1.0, 1.001, 3.0, 3.141592653589793}) {
        Vector6 xi = random_six(random, 1.0);
        const double length = norm({xi[3], xi[4], xi[5]});
        for (std::size_t i = 3; i < 6; ++i) xi[i] *= angle / length;
        CHECK(difference(product(left_jacobian(xi), inverse_left_jacobian(xi)), identity) < 1e-14);
        CHECK(difference(product(right_jacobian(xi), inverse_right_jacobian(xi)), identity) <
              1e-14);
        CHECK(difference(product(adjoint(Pose::exp(xi)), right_jacobian(xi)), left_jacobian(xi)) <
              1e-14);
    }
}

TEST_CASE(
    "fourth order adds nothing to exact poses, and keeps covariances positive semi-definite") {
    Random random(5);
    for (int turn = 0; turn < 200; ++turn) {
        const GaussianPose a = random_pose(random, 0.4, turn % 7),
                           b = random_pose(random, 0.4, turn / 7 % 7);
        const GaussianPose exact{b.mean, {}};
        CHECK(compose_to_fourth_order(a, exact) == a * exact);
        CHECK(compose_to_fourth_order(exact, a) == exact * a);
        const GaussianPose both = compose_to_fourth_order(a, b);
        CHECK(is_symmetric(both.covariance));
        CHECK_NOTHROW(Covariance::checked(both.covariance.matrix(), "covariance"));
    }
}
