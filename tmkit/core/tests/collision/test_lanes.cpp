// Eight places at once: what is said of them is what is said of each alone.
#include "collision/lanes.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "support/scenes.hpp"
#include "tmkit/collision_world.hpp"
#include "tmkit/random.hpp"

using namespace tmkit;
using namespace tmkit::test;

namespace tmkit::lanes {
extern const Kernels plain_kernels, avx2_kernels;
}

namespace {

template <class T> bool same_bits(const T& a, const T& b) { return std::memcmp(&a, &b, sizeof(T)) == 0; }

lanes::Floats random_floats(Random& random, double size) {
    lanes::Floats made{};
    for (int i = 0; i < lanes::width; ++i) made[i] = static_cast<float>(random.uniform(-size, size));
    return made;
}

}  // namespace

#if defined(__x86_64__)
TEST_CASE("every processor finds the same to the last bit") {
    if (!__builtin_cpu_supports("avx2")) return;
    Random random(1, 0);
    const lanes::Kernels &plain = lanes::plain_kernels, &wide = lanes::avx2_kernels;
    std::vector<float> points;
    for (int i = 0; i < 60; ++i) points.push_back(static_cast<float>(random.uniform(-0.1, 0.1)));
    int overlaps = 0, aparts = 0;
    for (int round = 0; round < 200; ++round) {
        std::array<lanes::Link, 3> links{};
        std::array<lanes::Joint, 3> joints{};
        std::array<lanes::Solid, 2> solids{};
        for (int i = 0; i < 3; ++i) {
            links[i] = {
                i - 1, i == 1, {1, 0, 0, 0, 0.6f, -0.8f, 0, 0.8f, 0.6f}, {0.1f, 0.05f * static_cast<float>(i), 0.2f}};
            joints[i] = {random_floats(random, 3.0), random_floats(random, 0.05)};
        }
        for (int i = 0; i < 2; ++i)
            solids[i] = {i + 1,
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
                         0.001f};
        std::array<std::array<lanes::Pose, 3>, 2> poses{};
        std::array<std::array<lanes::Twist, 4>, 2> twists{};
        std::array<std::array<lanes::Item, 2>, 2> items{};
        std::array<std::array<float, 6>, 2> boxes{};
        std::array<std::array<std::int32_t, lanes::width>, 2> found{};
        std::array<lanes::Overlap, 2> overlap{};
        std::array<unsigned, 2> apart{}, inside{};
        const lanes::Floats half = random_floats(random, 0.1);
        const auto angle = static_cast<float>(random.uniform(-3.0, 3.0));
        const std::array<float, 3> direction{std::cos(angle), 0.0f, std::sin(angle)};
        for (int k = 0; k < 2; ++k) {
            const lanes::Kernels& kernels = k == 0 ? plain : wide;
            kernels.place(links.data(), links.size(), joints.data(), poses[k].data(), twists[k].data());
            for (int i = 0; i < 2; ++i) kernels.put(solids[i], poses[k].data(), twists[k].data(), half, items[k][i]);
            kernels.enclose(items[k][0], boxes[k].data());
            overlap[k] = kernels.overlap(items[k][0], items[k][1], twists[k][1], 0.001f);
            inside[k] = kernels.inside(items[k][0], items[k][1], 0.001f);
            apart[k] =
                kernels.apart(items[k][0], items[k][1], twists[k][1], direction.data(), 0.001f, 0xFFu >> round % 3);
            kernels.nearest(points.data(), 20, 3, &joints[0].value, found[k].data());
        }
        CHECK(same_bits(poses[0], poses[1]));
        CHECK(same_bits(twists[0], twists[1]));
        CHECK(same_bits(items[0], items[1]));
        CHECK(same_bits(boxes[0], boxes[1]));
        CHECK(same_bits(overlap[0], overlap[1]));
        CHECK(inside[0] == inside[1]);
        CHECK(apart[0] == apart[1]);
        CHECK(found[0] == found[1]);
        overlaps += overlap[0].swept != 0;
        aparts += apart[0] != 0;
    }
    CHECK(overlaps > 50);
    CHECK(aparts > 30);
}
#endif

TEST_CASE("configurations looked at together are in collision where each alone is, near the root and far from it") {
    Random random(2, 0);
    int hits = 0, count = 0;
    for (const double away : {0.0, 3000.0})
        for (const double margin : {0.0, 0.02, -0.005}) {
            EditableScene scene = arm_among_boxes({away, -away, 0.0});
            AttachedShape ramp;
            ramp.shape = Shape::plane();
            scene =
                with_frame(scene, "ramp", "world", {{away, 0.3 - away, 0.0}, quaternion_about({1, 0, 0}, 0.9)}, {ramp});
            scene = with_frame(scene, "hinge", "world", {{away, -away, -1.4}, {0, 0, 0, 1}}, {ramp},
                               joint_of_type(JointType::revolute, {1, 0, 0}, -0.5, 0.5));
            const CollisionWorld world(scene.allow_collision("ramp", "j0", "mounted"), with_margin(margin));
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
                    for (double& value : q[i]) value = random.uniform(-2.5, 2.5) + (i % 3 == 0 ? 4.0 * pi : 0.0);
                    q[i].back() *= 0.1;
                    rows[i] = q[i].data();
                }
                view.look_ahead(rows.data(), used, scratch);
                world.in_collisions(rows.data(), used, in_collision.data());
                for (int i = 0; i < used; ++i) {
                    const bool expected = static_cast<bool>(view.find_collision(rows[i], other));
                    CHECK(static_cast<bool>(view.find_ahead(rows[i], i, scratch)) == expected);
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
}

TEST_CASE("far from the root, what nearly touches in one place says nothing wrong of another") {
    Random random(3, 0);
    int hits = 0;
    for (int round = 0; round < 200; ++round) {
        const double angle = random.uniform(0.0, 3.0);
        const AttachedShape ball = attached(ShapeKind::sphere, {0.05});
        const Vector3 at{3000.0 + random.uniform(0.0, 1.0), -3000.0, random.uniform(0.0, 1.0)};
        EditableScene scene =
            with_frame(EditableScene().add_root("world"), "base", "world", {at, quaternion_about({0, 0, 1}, angle)});
        for (const char* name : {"left", "right"})
            scene = with_frame(scene, name, "base", {{0.0, name[0] == 'r' ? 0.06 : 0.0, 0.0}, {0, 0, 0, 1}}, {ball},
                               joint_of_type(JointType::prismatic, {1, 0, 0}));
        const CollisionWorld world(scene, with_margin(0.0));
        std::array<std::vector<double>, CollisionView::together> q;
        std::array<const double*, CollisionView::together> rows{};
        std::array<bool, CollisionView::together> found{};
        for (std::size_t i = 0; i < q.size(); ++i) {
            const double apart = 0.1 + (i == 0 ? 1e-3 : random.uniform(-3e-4, 3e-4));  // the boxes overlap
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
