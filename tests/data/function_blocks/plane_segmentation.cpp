// The function block of kitchen_table.rsg in C++: RANSAC, then least squares until the points of a
// plane stay the same. Reads points from the standard input, and prints the transform and the
// number of points of each plane. The arguments are the number of clouds below each transform.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <random>
#include <utility>

#include "kitchen.hpp"

using Vector = std::array<double, 3>;
using Matrix = std::array<Vector, 3>;
using Points = std::vector<Vector>;

static Vector operator-(const Vector& a, const Vector& b) {
    return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}
static double dot(const Vector& a, const Vector& b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
static Vector cross(const Vector& a, const Vector& b) {
    return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
static Vector unit(const Vector& a) {
    const double length = std::sqrt(dot(a, a));
    return {a[0] / length, a[1] / length, a[2] / length};
}

struct Plane {
    Vector center;
    Vector normal;
    double distance(const Vector& point) const { return std::abs(dot(point - center, normal)); }
};

// The eigenvector of the smallest eigenvalue of a symmetric matrix, by Jacobi rotations.
static Vector smallest_eigenvector(Matrix a) {
    Matrix v{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
    for (int sweep = 0; sweep < 50; ++sweep) {
        for (const auto& [p, q] : {std::pair{0, 1}, std::pair{0, 2}, std::pair{1, 2}}) {
            if (std::abs(a[p][q]) < 1e-300) continue;
            const double angle = 0.5 * std::atan2(2.0 * a[p][q], a[q][q] - a[p][p]);
            const double c = std::cos(angle), s = std::sin(angle);
            for (int k = 0; k < 3; ++k) {
                const double x = a[k][p], y = a[k][q];
                a[k][p] = c * x - s * y;
                a[k][q] = s * x + c * y;
            }
            for (int k = 0; k < 3; ++k) {
                const double x = a[p][k], y = a[q][k];
                a[p][k] = c * x - s * y;
                a[q][k] = s * x + c * y;
                const double z = v[k][p], w = v[k][q];
                v[k][p] = c * z - s * w;
                v[k][q] = s * z + c * w;
            }
        }
    }
    int best = 0;
    for (int k = 1; k < 3; ++k) {
        if (a[k][k] < a[best][best]) best = k;
    }
    return {v[0][best], v[1][best], v[2][best]};
}

static Plane fit(const Points& points) {
    Vector center{};
    for (const auto& point : points) {
        for (int k = 0; k < 3; ++k) center[k] += point[k] / static_cast<double>(points.size());
    }
    Matrix covariance{};
    for (const auto& point : points) {
        const Vector d = point - center;
        for (int i = 0; i < 3; ++i) {
            for (int j = 0; j < 3; ++j) covariance[i][j] += d[i] * d[j];
        }
    }
    Vector normal = smallest_eigenvector(covariance);
    if (dot(normal, center) > 0.0) normal = {-normal[0], -normal[1], -normal[2]};
    return {center, normal};
}

class PlaneSegmentation : public kitchen::PlaneSegmentation {
public:
    explicit PlaneSegmentation(std::size_t clouds) : clouds_(clouds) {}

protected:
    kitchen::structures::Planes execute(const kitchen::structures::Cloud& input) override {
        kitchen::structures::Planes planes;
        Points rest = input.geometry->points;
        std::mt19937 random(0);
        while (rest.size() >= kLeast) {
            const Points inliers = best_plane(rest, random);
            if (inliers.size() < kLeast) break;
            planes.plane_pose.push_back(transform(inliers));
            const Plane plane = fit(inliers);
            rest.erase(std::remove_if(rest.begin(), rest.end(),
                                      [&](const Vector& p) { return plane.distance(p) <= kNear; }),
                       rest.end());
        }
        return planes;
    }

private:
    static constexpr double kNear = 0.01;  // largest distance of a point from its plane [m]
    static constexpr std::size_t kLeast = 300;

    static Points near(const Points& points, const Plane& plane) {
        Points inliers;
        for (const auto& point : points) {
            if (plane.distance(point) <= kNear) inliers.push_back(point);
        }
        return inliers;
    }

    static Points best_plane(const Points& points, std::mt19937& random) {
        Points best;
        for (int k = 0; k < 200; ++k) {
            Points corners;
            for (int n = 0; n < 3; ++n) corners.push_back(points[random() % points.size()]);
            const Vector& a = corners[0];
            const Vector normal = cross(corners[1] - a, corners[2] - a);
            if (dot(normal, normal) < 1e-12) continue;
            Points inliers = near(points, {a, unit(normal)});
            if (inliers.size() > best.size()) best = std::move(inliers);
        }
        for (int k = 0; k < 20 && !best.empty(); ++k) {
            Points refined = near(points, fit(best));
            if (refined == best) break;
            best = std::move(refined);
        }
        return best;
    }

    kitchen::structures::PlanePose transform(const Points& points) const {
        const auto [center, z] = fit(points);
        const Vector x = unit(cross(Vector{0.0, 1.0, 0.0}, z)), y = cross(z, x);
        kitchen::structures::PlanePose pose;
        pose.matrix = {x[0], y[0], z[0], center[0], x[1], y[1], z[1], center[1],
                       x[2], y[2], z[2], center[2], 0.0,  0.0,  0.0,  1.0};
        auto cloud = std::make_shared<kitchen::types::CloudType>();
        for (const auto& point : points) {
            const Vector d = point - center;
            cloud->points.push_back({dot(d, x), dot(d, y), dot(d, z)});
        }
        add_clouds(pose.plane, cloud);
        return pose;
    }

    // The cardinality of the clouds is 1 in one header and more in another.
    void add_clouds(kitchen::structures::Plane& plane, kitchen::types::CloudTypePtr cloud) const {
        plane.geometry = std::move(cloud);
    }
    void add_clouds(std::vector<kitchen::structures::Plane>& planes,
                    kitchen::types::CloudTypePtr cloud) const {
        planes.assign(clouds_, kitchen::structures::Plane{cloud});
    }

    std::size_t clouds_;
};

[[maybe_unused]] static std::size_t points_of(const kitchen::structures::Plane& plane) {
    return plane.geometry->points.size();
}
[[maybe_unused]] static std::size_t points_of(
    const std::vector<kitchen::structures::Plane>& planes) {
    std::size_t count = 0;
    for (const auto& plane : planes) count += points_of(plane);
    return count;
}

int main(int, char** arguments) {
    auto cloud = std::make_shared<kitchen::types::CloudType>();
    for (Vector point; std::cin >> point[0] >> point[1] >> point[2];) {
        cloud->points.push_back(point);
    }
    PlaneSegmentation block(std::strtoul(arguments[1], nullptr, 10));
    try {
        const auto planes = block.run(kitchen::structures::Cloud{std::move(cloud)});
        for (const auto& pose : planes.plane_pose) {
            for (double number : pose.matrix) std::printf("%.17g ", number);
            std::printf("%zu\n", points_of(pose.plane));
        }
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
