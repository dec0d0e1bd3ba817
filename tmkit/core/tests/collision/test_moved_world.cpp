// Worlds of other versions, queried by many threads.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support/scenes.hpp"
#include "tmkit/collision_world.hpp"
#include "tmkit/rows.hpp"

using namespace tmkit;
using namespace tmkit::test;

namespace {

EditableScene arm_and_blocks() {
    EditableScene scene = with_arm(world_only());
    scene = with_box(scene, "table", {1.0, 1.0, 0.1}, {0.6, 0.0, 0.2});
    for (int i = 0; i < 12; ++i)
        scene = with_box(scene, "block" + std::to_string(i), {0.05, 0.05, 0.05},
                         {0.4, 0.07 * i - 0.4, 0.3});
    return scene;
}

// The same contacts at random configurations as in a new world, to the last bit.
int differences(const CollisionWorld& world, std::uint64_t seed) {
    const CollisionWorld anew(world.scene(), world.options());
    Random random(seed, 0);
    int found = 0;
    for (int i = 0; i < 20; ++i) {
        const std::vector<double> q = random_configuration(world.scene(), random);
        const std::vector<Contact> a = world.contacts(q.data()), b = anew.contacts(q.data());
        found +=
            world.in_collision(q.data()) != anew.in_collision(q.data()) || a.size() != b.size();
        for (std::size_t k = 0; k < std::min(a.size(), b.size()); ++k)
            found += a[k].frame_a != b[k].frame_a || a[k].frame_b != b[k].frame_b ||
                     a[k].distance != b[k].distance || a[k].point != b[k].point ||
                     a[k].normal != b[k].normal;
    }
    return found;
}

template <class Answer>
auto answers(const CollisionWorld& world, std::size_t count, int threads, Answer&& answer) {
    std::vector<decltype(answer(0))> made(count);
    for_each_row(count, threads, {},
                 [&](std::size_t row) { made[row] = answer(row * world.joint_count()); });
    return made;
}

}  // namespace

TEST_CASE("a moved world agrees with a new one, and shares structures for few changes") {
    const EditableScene scene = arm_and_blocks();
    CollisionOptions options;
    options.margin = 0.005;
    options.movable = {"block0", "block1"};
    const CollisionWorld world(scene, options);
    EditableScene version = scene;
    const std::vector<double> q(scene.joint_count(), 0.3);
    for (int i = 0; i < 12; ++i) {
        const std::string block = "block" + std::to_string(i);
        version = version.reparent_keeping_pose(block, i % 2 ? "tip" : "j3", q.data());
        const CollisionWorld moved = world.moved_to(version);
        CHECK(moved.shares_with(world) == (i < 8));
        CHECK(differences(moved, static_cast<std::uint64_t>(i)) == 0);
        CHECK(differences(moved.moved_to(scene), static_cast<std::uint64_t>(i)) == 0);
    }
    CHECK(differences(world, 99) == 0);
}

TEST_CASE("many threads build a shape's structure, a world and its moved worlds at once") {
    for (int round = 0; round < 10; ++round) {
        EditableScene scene = with_arm(world_only());
        std::vector<double> vertices;
        std::vector<std::int32_t> faces;
        Random random(static_cast<std::uint64_t>(round), 1);
        for (std::int32_t i = 0; i < 90; ++i) {
            for (int k = 0; k < 3; ++k) vertices.push_back(random.uniform(-0.2, 0.2));
            faces.push_back(i);
        }
        AttachedShape stone;
        stone.shape = Shape::mesh(vertices, faces, "");
        scene =
            with_frame(scene, "stone", "world", {{0.4, 0.0, 0.4}, {0.0, 0.0, 0.0, 1.0}}, {stone});
        const CollisionWorld shared(scene, {});
        const EditableScene held = scene.reparent("stone", "tip", Pose{});
        const CollisionWorld carrying = shared.moved_to(held);
        std::atomic<int> ready{0}, failures{0};
        std::vector<std::thread> threads;
        for (int number = 0; number < 4; ++number)
            threads.emplace_back([&, number] {
                ++ready;
                while (ready < 4) {}
                failures += differences(shared, 1) +
                            differences(carrying, static_cast<std::uint64_t>(number));
                failures += differences(shared.moved_to(held), 2) +
                            differences(CollisionWorld(held, {}), 3);
            });
        for (std::thread& thread : threads) thread.join();
        CHECK(failures == 0);
    }
}

TEST_CASE("results of rows do not depend on the number of threads") {
    const CollisionWorld world(arm_and_blocks(), {});
    Random random(5, 0);
    std::vector<double> rows;
    for (int i = 0; i < 500; ++i)
        for (const double value : random_configuration(world.scene(), random))
            rows.push_back(value);
    const auto collides = [&](std::size_t row) -> char { return world.in_collision(&rows[row]); };
    const auto distance = [&](std::size_t row) { return world.nearest(&rows[row])->distance; };
    const std::vector<char> alone = answers(world, 500, 1, collides);
    const std::vector<double> distances = answers(world, 200, 1, distance);
    for (const int threads : {2, 3, 8}) {
        CHECK(answers(world, 500, threads, collides) == alone);
        CHECK(answers(world, 200, threads, distance) == distances);
    }
}
