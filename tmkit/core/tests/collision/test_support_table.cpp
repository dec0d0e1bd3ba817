// Farthest points of hulls: as by a scan of all corners, and as by coal's hill climbing.
#include "collision/support_table.hpp"

#include <coal/narrowphase/gjk.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "collision/convex_hull.hpp"
#include "tmkit/random.hpp"

using namespace tmkit;

namespace {

coal::Vec3s random_vector(Random& random, double size) {
    return {random.uniform(-size, size), random.uniform(-size, size), random.uniform(-size, size)};
}

// The hull of random points: in a box, on a ball, on a thin disc, or on a grid, with many equally
// far points.
std::shared_ptr<TabledHull> random_hull(Random& random, int kind, int count) {
    std::vector<double> points;
    for (int i = 0; i < count; ++i) {
        coal::Vec3s point = random_vector(random, 1.0);
        if (kind == 1) point.normalize();
        if (kind == 2) point = coal::Vec3s(point[0], point[1], 1e-3 * point[2]);
        if (kind == 3) point = point.array().round();
        point += coal::Vec3s(0.3, -0.2, 5.0);  // far from the origin of its axes
        points.insert(points.end(), point.data(), point.data() + 3);
    }
    const Hull hull = convex_hull(points.data(), points.size() / 3, 254);
    auto corners = std::make_shared<std::vector<coal::Vec3s>>();
    for (const std::int32_t vertex : hull.vertices)
        corners->emplace_back(&points[3 * std::size_t(vertex)]);
    auto triangles = std::make_shared<std::vector<coal::Triangle>>();
    for (const auto& [a, b, c] : hull.triangles) triangles->emplace_back(a, b, c);
    return std::make_shared<TabledHull>(corners, triangles);
}

// At random, and along and beside the edges of cells.
coal::Vec3s random_direction(Random& random, int number) {
    coal::Vec3s direction = random_vector(random, 1.0);
    if (number % 4 == 1) direction = (8.0 * direction).array().round() / 8.0;
    if (number % 4 == 2) direction[number / 4 % 3] = 0.0;
    if (number % 4 == 3)
        direction = coal::Vec3s::Unit(number / 4 % 3) * (number % 8 == 3 ? 1.0 : -1.0);
    if (number % 5 == 1) direction += random_vector(random, 1e-15);
    return direction * std::pow(10.0, random.uniform(-6.0, 6.0));
}

}  // namespace

TEST_CASE("a table of farthest corners agrees with a scan of all") {
    Random random(5, 0);
    for (int round = 0; round < 60; ++round) {
        const int counts[] = {4, 8, 20, 60, 200, 1500};
        const auto hull =
            random_hull(random, round % 4, std::max(counts[round % 6], round % 4 == 3 ? 60 : 0));
        const std::vector<coal::Vec3s>& corners = *hull->points;
        for (int i = 0; i < 2000; ++i) {
            const coal::Vec3s direction = random_direction(random, i);
            double most = -1e300;
            for (const coal::Vec3s& corner : corners) most = std::max(most, corner.dot(direction));
            const double found = hull->table.farthest(direction).dot(direction);
            REQUIRE(found <= most);
            REQUIRE(found >= most - 1e-14 * direction.norm());
        }
        CHECK_NOTHROW(hull->table.farthest(coal::Vec3s::Zero()));
    }
}

TEST_CASE("the difference of hulls and boxes agrees with coal") {
    Random random(6, 0);
    coal::Box box(1.0, 0.4, 0.2);
    coal::Cylinder cylinder(0.3, 1.0);
    coal::support_func_guess_t hint = coal::support_func_guess_t::Zero();
    for (int round = 0; round < 40; ++round) {
        const auto hull = random_hull(random, round % 4, 100), other = random_hull(random, 1, 40);
        const coal::ShapeBase* partners[] = {&box, &cylinder, other.get()};
        for (const coal::ShapeBase* partner : partners) {
            coal::Transform3s pose_a, pose_b;
            const Eigen::AngleAxisd turn(random.uniform(0.0, 3.0),
                                         random_vector(random, 1.0).normalized());
            pose_a.setRotation(turn.toRotationMatrix());
            pose_b.setTranslation(random_vector(random, 3.0));
            const bool swapped = round % 2;
            TabledDifference ours;
            coal::details::MinkowskiDiff theirs;
            ours.set_shapes(swapped ? *partner : *hull, swapped ? *hull : *partner, pose_a, pose_b);
            theirs.set(swapped ? partner : hull.get(), swapped ? hull.get() : partner, pose_a,
                       pose_b);
            for (int i = 0; i < 200; ++i) {
                const coal::Vec3s direction = random_vector(random, 1.0).normalized();
                coal::Vec3s a, b, c, d;
                ours.support(direction, a, b, hint);
                theirs.support(direction, c, d, hint);
                CHECK((a - b).dot(direction) ==
                      doctest::Approx((c - d).dot(direction)).epsilon(1e-12));
            }
        }
    }
}
