// Eight configurations at once: the results are those of each alone.
#include "collision/lanes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "collision/support_table.hpp"
#include "support/scenes.hpp"
#include "tmkit/collision_world.hpp"
#include "tmkit/random.hpp"

using namespace tmkit;
using namespace tmkit::test;

namespace tmkit::lanes {
extern const Kernels plain_kernels, avx2_kernels;
}

namespace {

template <class T> bool same_bits(const T& a, const T& b) {
    return std::memcmp(&a, &b, sizeof(T)) == 0;
}

lanes::Floats random_floats(Random& random, double size) {
    lanes::Floats made{};
    for (int i = 0; i < lanes::width; ++i)
        made[i] = static_cast<float>(random.uniform(-size, size));
    return made;
}

}  // namespace

#if defined(__x86_64__)
TEST_CASE("every instruction set gives the same bits") {
    if (!__builtin_cpu_supports("avx2")) return;
    Random random(1, 0);
    const lanes::Kernels &plain = lanes::plain_kernels, &wide = lanes::avx2_kernels;
    std::vector<float> points;
    for (int i = 0; i < 60; ++i) points.push_back(static_cast<float>(random.uniform(-0.1, 0.1)));
    int overlaps = 0, aparts = 0;
    for (int round = 0; round < 200; ++round) {
        std::array<lanes::Link, 3> links{};
        std::array<lanes::Joint, 3> joints{};
        std::array<lanes::Geometry, 2> geometries{};
        for (int i = 0; i < 3; ++i) {
            links[i] = {i - 1,
                        i == 1,
                        {1, 0, 0, 0, 0.6f, -0.8f, 0, 0.8f, 0.6f},
                        {0.1f, 0.05f * static_cast<float>(i), 0.2f}};
            joints[i] = {random_floats(random, 3.0), random_floats(random, 0.05)};
        }
        for (int i = 0; i < 2; ++i)
            geometries[i] = {i + 1,
                             {0.6f, 0, 0.8f, 0, 1, 0, -0.8f, 0, 0.6f},
                             {0.05f, 0, 0},
                             {0.1f, 0.1f, 0.1f},
                             0.01f,
                             1e-6f,
                             i == 1,
                             2,
                             2,
                             {0.05f, -0.05f, 0.0f},
                             {0.04f, 0.03f, 0.0f},
                             points.data(),
                             20,
                             nullptr,
                             nullptr,
                             0,
                             0.001f};
        std::array<std::array<lanes::Pose, 3>, 2> poses{};
        std::array<std::array<lanes::Twist, 4>, 2> twists{};
        std::array<std::array<lanes::PlacedGeometry, 2>, 2> shapes{};
        std::array<std::array<float, 6>, 2> boxes{};
        std::array<std::int32_t, 2> found{};
        const std::array<double, 3> point{random.uniform(-3.0, 3.0), 0.02, -0.01};
        std::array<lanes::Overlap, 2> overlap{};
        std::array<lanes::Vector, 2> normals{};
        std::array<unsigned, 2> apart{}, inside{};
        std::array<std::uint64_t, 2> meeting{};
        std::array<std::size_t, 2> beside_count{};
        std::array<std::array<std::int32_t, 3>, 2> beside{};
        const lanes::Floats half = random_floats(random, 0.1);
        const auto angle = static_cast<float>(random.uniform(-3.0, 3.0));
        const std::array<float, 3> direction{std::cos(angle), 0.0f, std::sin(angle)};
        for (int k = 0; k < 2; ++k) {
            const lanes::Kernels& kernels = k == 0 ? plain : wide;
            lanes::Twist* moving = round % 4 ? twists[k].data() : nullptr;
            const lanes::Twist* common = moving ? moving + 1 : nullptr;
            kernels.place(links.data(), links.size(), joints.data(), poses[k].data(), moving);
            for (int i = 0; i < 2; ++i)
                kernels.place_geometry(geometries[i], poses[k].data(), moving, half, shapes[k][i]);
            kernels.enclose(shapes[k][0], boxes[k].data());
            lanes::Boxes group{};
            for (int i = 0; i < lanes::width; ++i)
                for (int axis = 0; axis < 3; ++axis) {
                    group.lower[axis][i] = boxes[k][std::size_t(axis)] + 0.1f * joints[0].value[i];
                    group.upper[axis][i] = group.lower[axis][i] + 0.05f;
                }
            const std::array<lanes::Boxes, 2> groups{group, group};
            meeting[k] = kernels.overlapping_boxes(boxes[k].data(), 0.01f, groups.data(), 2);
            const std::array<lanes::Pair, 2> pairs{{{0, 1}, {1, 0}}};
            beside_count[k] = kernels.overlapping_pairs(shapes[k].data(), pairs.data(), 2, 0.01f,
                                                        beside[k].data());
            overlap[k] = kernels.overlap(shapes[k][0], shapes[k][1], common, 0.001f, normals[k]);
            inside[k] = kernels.inside(shapes[k][0], shapes[k][1], 0.001f);
            const bool is_given = round % 8 < 4 || overlap[k].swept == 0;
            apart[k] = kernels.apart(shapes[k][0], shapes[k][1], common,
                                     is_given ? direction.data() : nullptr, &normals[k], 0.001f,
                                     0xFFu >> round % 3, is_given);
            found[k] = kernels.nearest(&joints[0].value, 2, 3, point.data());
        }
        CHECK(same_bits(poses[0], poses[1]));
        CHECK(same_bits(twists[0], twists[1]));
        CHECK(same_bits(shapes[0], shapes[1]));
        CHECK(same_bits(boxes[0], boxes[1]));
        CHECK(same_bits(overlap[0], overlap[1]));
        CHECK(same_bits(normals[0], normals[1]));
        CHECK(inside[0] == inside[1]);
        CHECK(meeting[0] == meeting[1]);
        CHECK((meeting[0] & 0xFF) == meeting[0] >> 8);
        CHECK(beside_count[0] == beside_count[1]);
        CHECK(beside[0] == beside[1]);
        CHECK((beside_count[0] == 2 || overlap[0].swept == 0));
        CHECK(apart[0] == apart[1]);
        CHECK(found[0] == found[1]);
        overlaps += overlap[0].swept != 0;
        aparts += apart[0] != 0;
    }
    CHECK(overlaps > 50);
    CHECK(aparts > 30);
}
#endif

TEST_CASE("a table of farthest points agrees with all points in lanes") {
    Random random(4, 0);
    std::vector<coal::Vec3s> corners;
    std::vector<float> points;
    for (int i = 0; i < 300; ++i) {
        coal::Vec3s corner(random.uniform(-1.0, 1.0), random.uniform(-1.0, 1.0),
                           random.uniform(-1.0, 1.0));
        corners.push_back(0.1 * corner.normalized());
        for (int k = 0; k < 3; ++k) points.push_back(static_cast<float>(corners.back()[k]));
    }
    const SupportTable table(std::make_shared<const std::vector<coal::Vec3s>>(corners));
    lanes::Geometry ball{};
    ball.rotation[0] = ball.rotation[4] = ball.rotation[8] = 1.0f;
    std::fill_n(ball.half, 3, 0.1f);
    ball.points = points.data();
    ball.count = 300;
    lanes::Geometry quick = ball;
    quick.first = table.first();
    quick.farthest = table.corners();
    quick.side = table.side();
    int apart = 0, count = 0;
    for (int round = 0; round < 2000; ++round) {
        std::array<unsigned, 2> found{};
        std::array<lanes::Pose, 2> poses{};
        for (int i = 0; i < 2; ++i) {
            for (int k = 0; k < 3; ++k) (&poses[i].columns[k].x)[k] += 1.0f;
            poses[i].translation = {random_floats(random, 0.15), random_floats(random, 0.15),
                                    random_floats(random, 0.15)};
        }
        const unsigned wanted =
            1u << round % 8 | (round % 3 ? 0u : 1u << round % 5) | (round % 7 ? 0u : 0xFFu);
        const std::array<float, 3> given{0.6f, round % 2 ? 0.8f : -0.8f, 0.0f};
        const float* direction = round % 4 == 1 ? given.data() : nullptr;
        lanes::Vector normal{};
        for (int lane = 0; lane < lanes::width; ++lane) {
            const coal::Vec3s away(poses[0].translation.x[lane] - poses[1].translation.x[lane],
                                   poses[0].translation.y[lane] - poses[1].translation.y[lane],
                                   poses[0].translation.z[lane] - poses[1].translation.z[lane]);
            for (int k = 0; k < 3; ++k)
                (&normal.x)[k][lane] = static_cast<float>(away.normalized()[k]);
        }
        for (int i = 0; i < 2; ++i) {
            std::array<lanes::Geometry, 2> geometries{i == 0 ? ball : quick, i == 0 ? ball : quick};
            geometries[1].link = 1;
            std::array<lanes::PlacedGeometry, 2> shapes{};
            for (int k = 0; k < 2; ++k)
                lanes::kernels().place_geometry(geometries[k], poses.data(), nullptr,
                                                lanes::Floats{}, shapes[k]);
            found[i] = lanes::kernels().apart(shapes[0], shapes[1], nullptr, direction, &normal,
                                              1e-3f, wanted, true);
        }
        CHECK(found[0] == found[1]);
        apart += std::popcount(found[0]);
        count += std::popcount(wanted);
    }
    CHECK(apart > count / 10);
    CHECK(apart < count - count / 10);
}

TEST_CASE("near configurations are successive, and each is listed once") {
    Random random(5, 0);
    const EditableScene scene = arm_among_boxes({});
    const CollisionWorld world(scene, with_margin(0.0));
    const std::size_t columns = world.joint_count();
    for (const std::size_t count : {0, 1, 7, 100, 3000}) {
        std::vector<double> rows(count * columns);
        for (double& value : rows) value = random.uniform(-1.0, 1.0);
        for (std::size_t i = 0; i < rows.size(); i += columns)
            rows[i] = count == 100 ? 0.5 : rows[i];
        if (count == 7) rows.assign(rows.size(), 1e308), rows[1] = -1e308;
        const std::vector<std::uint32_t> order = world.order_by_nearness(rows.data(), count);
        std::vector<std::uint32_t> sorted = order;
        std::sort(sorted.begin(), sorted.end());
        double change = 0.0, before = 0.0;
        for (std::size_t i = 0; i < count; ++i) {
            REQUIRE(sorted[i] == i);
            if (i == 0 || count < 100) continue;
            for (std::size_t k = 0; k < 4; ++k) {
                change += std::abs(rows[order[i] * columns + k] - rows[order[i - 1] * columns + k]);
                before += std::abs(rows[i * columns + k] - rows[(i - 1) * columns + k]);
            }
        }
        CHECK(change <= 0.8 * before);
    }
}

TEST_CASE(
    "configurations looked at together are in collision where each alone is, near the root and far "
    "from it") {
    Random random(2, 0);
    int hits = 0, deep = 0, count = 0;
    for (const double away : {0.0, 3000.0})
        for (const double margin : {0.0, 0.02, -0.005}) {
            EditableScene scene = arm_among_boxes({away, -away, 0.0});
            AttachedShape ramp;
            ramp.shape = Shape::plane();
            scene = with_frame(scene, "ramp", "world",
                               {{away, 0.3 - away, 0.0}, quaternion_about({1, 0, 0}, 0.9)}, {ramp});
            scene = with_frame(scene, "hinge", "world", {{away, -away, -1.4}, {0, 0, 0, 1}}, {ramp},
                               joint_of_type(JointType::revolute, {1, 0, 0}, -0.5, 0.5));
            const CollisionWorld world(scene.allow_collision("ramp", "j0", "mounted"),
                                       with_margin(margin));
            const std::vector<double> zero(scene.joint_count(), 0.0);
            const CollisionView view(world, all_entries(scene), zero.data());
            CollisionView::Scratch scratch = view.scratch(), other = view.scratch();
            for (int round = 0; round < 60; ++round) {
                std::array<std::vector<double>, CollisionView::together> q;
                std::array<const double*, CollisionView::together> rows{};
                std::array<bool, CollisionView::together> in_collision{};
                const int used = 1 + round % static_cast<int>(CollisionView::together);
                for (int i = 0; i < used; ++i) {
                    q[i] = zero;
                    for (double& value : q[i])
                        value = random.uniform(-2.5, 2.5) + (i % 3 == 0 ? 4.0 * pi : 0.0);
                    q[i].back() *= 0.1;
                    rows[i] = q[i].data();
                }
                view.check_batch(rows.data(), used, scratch);
                world.in_collisions(rows.data(), used, in_collision.data());
                std::array<FramePair, CollisionView::together> overlaps{};
                view.find_deep(rows.data(), used, overlaps.data(), other);
                for (int i = 0; i < used; ++i) {
                    const bool expected = static_cast<bool>(view.find_collision(rows[i], other));
                    if (overlaps[i]) CHECK(expected);
                    deep += static_cast<bool>(overlaps[i]);
                    CHECK(static_cast<bool>(view.find_in_batch(rows[i], i, scratch)) == expected);
                    std::int64_t checks = 0;
                    view.find_unproved(zero.data(), rows[0], scratch, checks);
                    CHECK(in_collision[i] == world.in_collision(rows[i]));
                    hits += expected;
                    ++count;
                }
            }
        }
    CHECK(hits > count / 10);
    CHECK(hits < count - count / 10);
    CHECK(deep > hits / 10);
}

TEST_CASE("far from the root, near contact in one lane does not affect another") {
    Random random(3, 0);
    int hits = 0;
    for (int round = 0; round < 200; ++round) {
        const double angle = random.uniform(0.0, 3.0);
        const AttachedShape ball = attached(ShapeKind::sphere, {0.05});
        const Vector3 at{3000.0 + random.uniform(0.0, 1.0), -3000.0, random.uniform(0.0, 1.0)};
        EditableScene scene = with_frame(EditableScene().add_root("world"), "base", "world",
                                         {at, quaternion_about({0, 0, 1}, angle)});
        for (const char* name : {"left", "right"})
            scene = with_frame(scene, name, "base",
                               {{0.0, name[0] == 'r' ? 0.06 : 0.0, 0.0}, {0, 0, 0, 1}}, {ball},
                               joint_of_type(JointType::prismatic, {1, 0, 0}));
        const CollisionWorld world(scene, with_margin(0.0));
        std::array<std::vector<double>, CollisionView::together> q;
        std::array<const double*, CollisionView::together> rows{};
        std::array<bool, CollisionView::together> found{};
        for (std::size_t i = 0; i < q.size(); ++i) {
            // The boxes overlap.
            const double apart = 0.1 + (i == 0 ? 1e-3 : random.uniform(-3e-4, 3e-4));
            q[i] = {0.0, std::sqrt(apart * apart - 0.06 * 0.06)};
            rows[i] = q[i].data();
        }
        world.in_collisions(rows.data(), static_cast<int>(q.size()), found.data());
        for (std::size_t i = 0; i < q.size(); ++i) {
            CHECK(found[i] == world.in_collision(rows[i]));
            hits += found[i];
        }
    }
    CHECK(hits > 300);
}
