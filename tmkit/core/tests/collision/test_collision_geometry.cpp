// Planes, point clouds and height fields in the narrow phase, for the sanitizers: all pairs of
// kinds, at random.
#include <doctest/doctest.h>

#include <thread>

#include "support/scenes.hpp"

using namespace tmkit;
using namespace tmkit::test;

namespace {

double uniform(Random& random, double lower, double upper) {
    return lower + (upper - lower) * random.uniform();
}

Pose random_pose(Random& random, double reach) {
    std::array<double, 4> turn{};
    for (double& part : turn) part = uniform(random, -1.0, 1.0);
    turn[3] += 1e-3;
    return Pose::checked({uniform(random, -reach, reach), uniform(random, -reach, reach),
                          uniform(random, -reach, reach)},
                         turn);
}

std::vector<double> numbers(Random& random, std::size_t count, double lower, double upper) {
    std::vector<double> result(count);
    for (double& value : result) value = uniform(random, lower, upper);
    return result;
}

Ref<const Shape> shape_of(int kind, Random& random) {
    switch (kind) {
        case 0: return Shape::primitive(ShapeKind::box, {0.2, 0.3, 0.4});
        case 1: return Shape::primitive(ShapeKind::cylinder, {0.1, 0.3});
        case 2: return Shape::plane();
        case 3: return Shape::point_cloud(numbers(random, 300, -0.3, 0.3), 0.01, "");
        case 4:
            return Shape::height_field(numbers(random, 35, 0.0, 0.3), 7, {0.6, 0.5}, std::nullopt,
                                       "");
        default:
            return Shape::mesh(numbers(random, 60, -0.2, 0.2),
                               {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}, "");
    }
}

EditableScene pair(Ref<const Shape> a, Ref<const Shape> b, Random& random) {
    AttachedShape first, second;
    first.shape = std::move(a);
    second.shape = std::move(b);
    first.pose = random_pose(random, 0.3);
    second.pose = random_pose(random, 0.3);
    EditableScene scene = with_frame(world_only(), "a", "world", {}, {first});
    return with_frame(scene, "b", "world", {}, {second}, joint_of_type(JointType::free, {0, 0, 1}));
}

}  // namespace

TEST_CASE("any two kinds of shapes are compared, and contact is a distance within the margin") {
    Random random(7);
    for (int round = 0; round < 10; ++round)
        for (int a = 0; a < 6; ++a)
            for (int b = 0; b < 6; ++b)
                for (const CollisionLevel level :
                     {CollisionLevel::exact, CollisionLevel::hull, CollisionLevel::box}) {
                    CollisionOptions options;
                    options.level = level;
                    options.margin = 0.01;
                    const CollisionWorld world(
                        pair(shape_of(a, random), shape_of(b, random), random), options);
                    const bool hit = world.in_collision(nullptr);
                    CHECK(hit == !world.contacts(nullptr).empty());
                    const auto nearest = world.nearest(nullptr);
                    CHECK(nearest.has_value() == !(a == 2 && b == 2));
                    if (nearest && std::abs(nearest->distance - 0.01) > 1e-4)
                        CHECK(hit == (nearest->distance < 0.01));
                }
}

TEST_CASE("threads share the trees of a cloud and a field") {
    Random random(3);
    const auto cloud = shape_of(3, random), field = shape_of(4, random);
    const EditableScene scene = pair(cloud, field, random);
    std::vector<double> distances(4);
    std::vector<std::thread> threads;
    for (double& distance : distances)
        threads.emplace_back([&scene, &distance] {
            distance = CollisionWorld(scene, {}).nearest(nullptr)->distance;
        });
    for (std::thread& thread : threads) thread.join();
    for (const double distance : distances) CHECK(distance == distances[0]);
}
