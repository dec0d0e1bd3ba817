// Rigid transforms: the group, the exponential and the limits of its closed forms, rejected
// arguments.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include "tmkit/error.hpp"
#include "tmkit/pose.hpp"

using tmkit::norm;
using tmkit::operator*;
using tmkit::operator-;
using tmkit::Pose;
using tmkit::Vector3;
using tmkit::Vector4;
using tmkit::Vector6;

namespace {

constexpr double pi = std::numbers::pi;

struct Source {
    std::mt19937 random{7};
    double number(double limit) {
        return std::uniform_real_distribution<double>(-limit, limit)(random);
    }
    Vector3 vector(double limit) { return {number(limit), number(limit), number(limit)}; }
    Pose pose() {
        return Pose::checked(vector(5.0), {number(1.0), number(1.0), number(1.0), number(1.0)});
    }
    // A twist whose rotation has the given angle.
    Vector6 twist(double angle) {
        Vector3 axis = vector(1.0);
        axis = (angle / norm(axis)) * axis;
        const Vector3 rho = vector(5.0);
        return {rho[0], rho[1], rho[2], axis[0], axis[1], axis[2]};
    }
};

double squared_norm(const Vector4& q) {
    return q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3];
}

bool near(const Pose& a, const Pose& b, double tolerance) {
    const auto [metres, radians] = a.distance(b);
    return metres <= tolerance && radians <= tolerance;
}

}  // namespace

TEST_CASE("poses are a group") {
    Source source;
    for (int i = 0; i < 1000; ++i) {
        const Pose a = source.pose(), b = source.pose(), c = source.pose();
        REQUIRE(near((a * b) * c, a * (b * c), 1e-13));
        REQUIRE(near(a * a.inverse(), Pose{}, 1e-13));
        REQUIRE(near(a.inverse() * a, Pose{}, 1e-13));
        REQUIRE((Pose{} * a).translation == a.translation);
        const Vector3 p = source.vector(3.0);
        REQUIRE(norm((a * b).apply(p) - a.apply(b.apply(p))) < 1e-13);
    }
}

TEST_CASE("a product of a million poses is a pose") {
    Source source;
    Pose product;
    for (int i = 0; i < 1'000'000; ++i) {
        product = product * Pose::checked({0, 0, 0}, {source.number(1.0), source.number(1.0),
                                                      source.number(1.0), 1.0});
        if (i % 1000 == 0) REQUIRE(std::abs(squared_norm(product.quat_xyzw) - 1.0) < 4e-15);
    }
    CHECK(Pose::checked(product.translation, product.quat_xyzw) == product);
}

TEST_CASE("log undoes exp at all angles up to pi") {
    Source source;
    for (const double angle :
         {0.0, 1e-300, 1e-15, 1e-8, 0.9999e-4, 1.0001e-4, 1e-3, 0.5, 1.5, 3.0, pi - 1e-6})
        for (int i = 0; i < 100; ++i) {
            const Vector6 xi = source.twist(angle);
            const Vector6 back = Pose::exp(xi).log();
            for (std::size_t k = 0; k < 6; ++k)
                REQUIRE(std::abs(back[k] - xi[k]) < (angle > 3.1 ? 1e-8 : 1e-13));
        }
    for (int i = 0; i < 1000; ++i) {
        const Pose pose = source.pose();
        REQUIRE(near(Pose::exp(pose.log()), pose, 1e-12));
    }
    const Pose half_turn = Pose::checked({1, 2, 3}, {0.6, 0.0, 0.8, 0.0});
    CHECK(near(Pose::exp(half_turn.log()), half_turn, 1e-14));
}

TEST_CASE("matrices read back") {
    Source source;
    for (int i = 0; i < 1000; ++i) {
        Pose pose = source.pose();
        if (i % 4 == 0)
            pose = Pose::from_rpy(pose.translation, {pi * (i % 3), pi / 2 * (i % 5), pi * (i % 2)});
        REQUIRE(near(Pose::from_rotation_matrix(pose.translation, pose.rotation()), pose, 1e-14));
    }
}

TEST_CASE("interpolation is uniform and takes the shorter arc") {
    Source source;
    for (int i = 0; i < 300; ++i) {
        const Pose a = source.pose(), b = source.pose();
        const auto [metres, radians] = a.distance(b);
        const auto [half_metres, half_radians] = a.distance(a.interpolate(b, 0.5));
        REQUIRE(half_metres == doctest::Approx(metres / 2));
        REQUIRE(half_radians == doctest::Approx(radians / 2).epsilon(1e-9));
        REQUIRE(a.interpolate(b, 0.0) == a);
        REQUIRE(near(a.interpolate(b, 1.0), b, 1e-13));
    }
}

TEST_CASE("matrices that are not rotations are rejected") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    CHECK_THROWS_AS(Pose::checked({0, 0, 0}, {0, 0, 0, 0}), tmkit::Error);
    CHECK_THROWS_AS(Pose::checked({0, nan, 0}, {0, 0, 0, 1}), tmkit::Error);
    CHECK_THROWS_AS(Pose::checked({0, 0, 0}, {0, 0, nan, 1}), tmkit::Error);
    CHECK_THROWS_AS(Pose::from_rotation_matrix({0, 0, 0}, {1, 0, 0, 0, 1, 0, 0, 0, -1}),
                    tmkit::Error);
    CHECK_THROWS_AS(Pose::from_rotation_matrix({0, 0, 0}, {1, 0, 0, 0, 1, 0, 0, 0, 1.001}),
                    tmkit::Error);
    const Pose huge = Pose::checked({0, 0, 0}, {0, 3e300, 0, 4e300});
    CHECK(huge.quat_xyzw[1] == doctest::Approx(0.6));
    const Pose tiny = Pose::checked({0, 0, 0}, {0, 3e-9, 0, 4e-9});
    CHECK(tiny.quat_xyzw[3] == doctest::Approx(0.8));
}
