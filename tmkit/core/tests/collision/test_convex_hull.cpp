#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "collision/convex_hull.hpp"
#include "tmkit/random.hpp"

using namespace tmkit;

namespace {

double volume(const Hull& hull, const std::vector<double>& p) {
    double six = 0.0;
    const auto at = [&](std::int32_t corner) {
        const std::size_t i = 3 * static_cast<std::size_t>(hull.vertices[corner]);
        return Vector3{p[i], p[i + 1], p[i + 2]};
    };
    for (const auto& [a, b, c] : hull.triangles) six += dot(at(a), cross(at(b), at(c)));
    return six / 6.0;
}

// Every edge is shared by two faces in opposite directions, Euler's formula holds, and no point is
// outside.
void check_hull(const Hull& hull, const std::vector<double>& p, double extent) {
    std::map<std::pair<std::int32_t, std::int32_t>, int> edges;
    for (const auto& t : hull.triangles)
        for (int i = 0; i < 3; ++i) ++edges[{t[i], t[(i + 1) % 3]}];
    for (const auto& [edge, times] : edges) {
        CHECK(times == 1);
        CHECK(edges.count({edge.second, edge.first}) == 1);
    }
    CHECK(hull.vertices.size() + hull.triangles.size() == edges.size() / 2 + 2);
    for (const auto& t : hull.triangles) {
        Vector3 v[3];
        for (int i = 0; i < 3; ++i)
            for (int k = 0; k < 3; ++k)
                v[i][k] = p[3 * static_cast<std::size_t>(hull.vertices[t[i]]) + k];
        const Vector3 normal = cross(v[1] - v[0], v[2] - v[0]);
        // A sliver amplifies the rounding of its corners, so the height over the plane is measured
        // as a volume.
        for (std::size_t i = 0; i < p.size(); i += 3)
            CHECK(dot(normal, Vector3{p[i], p[i + 1], p[i + 2]} - v[0]) <
                  1e-6 * extent * extent * extent);
    }
}

}  // namespace

TEST_CASE("the hull of a lattice of points is its cube") {
    std::vector<double> p;
    for (int x = 0; x < 7; ++x)
        for (int y = 0; y < 7; ++y)
            for (int z = 0; z < 7; ++z)
                for (const int v : {x, y, z}) p.push_back(0.1 * v - 0.2);
    const Hull hull = convex_hull(p.data(), p.size() / 3);
    CHECK(hull.vertices.size() == 8);
    CHECK(hull.triangles.size() == 12);
    CHECK(volume(hull, p) == doctest::Approx(0.216));
    check_hull(hull, p, 0.6);
}

TEST_CASE(
    "hulls of random points, spheres, prisms and repeated points are closed, convex and hold every "
    "point") {
    Random random(8);
    for (int trial = 0; trial < 60; ++trial) {
        std::vector<double> p;
        const int count = 4 + static_cast<int>(random.below(200));
        for (int i = 0; i < count; ++i) {
            Vector3 v{random.uniform(-1, 1), random.uniform(-1, 1), random.uniform(-1, 1)};
            if (trial % 4 == 1) v = (1.0 / norm(v)) * v;
            if (trial % 4 == 2)
                v = {std::cos(0.1 * i), std::sin(0.1 * i), static_cast<double>(i % 2)};
            if (trial % 4 == 3)
                v = {std::round(2 * v[0]), std::round(2 * v[1]), std::round(2 * v[2])};
            for (const double x : v) p.push_back(x);
        }
        const Hull hull = convex_hull(p.data(), p.size() / 3);
        if (hull.triangles.empty()) continue;
        check_hull(hull, p, 2.0);
        CHECK(volume(hull, p) > 0.0);
    }
}

TEST_CASE("points without a volume have no hull") {
    const std::vector<double> same(30, 0.5);
    CHECK(convex_hull(same.data(), 10).triangles.empty());
    std::vector<double> line, plane;
    for (int i = 0; i < 10; ++i) {
        for (const double v : {0.3 * i, 0.1 * i, -0.2 * i}) line.push_back(v);
        for (const double v : {0.3 * i, 0.1 * i * i, 0.0}) plane.push_back(v);
    }
    CHECK(convex_hull(line.data(), 10).triangles.empty());
    CHECK(convex_hull(plane.data(), 10).triangles.empty());
    CHECK(convex_hull(plane.data(), 3).triangles.empty());
}

TEST_CASE("flat sides with many corners are triangulated in several fans") {
    std::vector<double> p;
    const int count = 1000;
    for (int i = 0; i < 2 * count; ++i)
        for (const double v : {std::cos(2 * 3.14159265358979 * i / count),
                               std::sin(2 * 3.14159265358979 * i / count), i < count ? 0.0 : 1.0})
            p.push_back(v);
    for (const std::size_t most : {std::size_t{20}, std::size_t{254}}) {
        const Hull hull = convex_hull(p.data(), p.size() / 3, most);
        CHECK(hull.vertices.size() == 2 * count);
        CHECK(hull.triangles.size() == 4 * count - 4);
        std::vector<std::size_t> degree(hull.vertices.size(), 0);
        for (const auto& t : hull.triangles)
            for (const std::int32_t corner : t) ++degree[corner];
        CHECK(*std::max_element(degree.begin(), degree.end()) <= most);
        check_hull(hull, p, 2.0);
        CHECK(volume(hull, p) == doctest::Approx(3.14159265).epsilon(1e-4));
    }
}
