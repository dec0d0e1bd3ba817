// Many threads on one version: readers, editors and releases at once. Run under the thread
// sanitizer.
#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/editable_scene.hpp"
#include "tmkit/kinematics.hpp"
#include "tmkit/scene_edit.hpp"
#include "tmkit/scene_graph.hpp"

using tmkit::FrameSpecification;
using tmkit::JointType;
using tmkit::Pose;
using SceneGraph = tmkit::test::EditableScene;
using tmkit::Shape;
using tmkit::ShapeKind;

namespace {

constexpr int thread_count = 4;

SceneGraph world_with_things() {
    SceneGraph scene = SceneGraph().add_root("world");
    std::string parent = "world";
    for (int i = 0; i < 5; ++i) {
        FrameSpecification link;
        link.name = "link" + std::to_string(i);
        link.parent = parent;
        link.pose.translation = {0, 0, 0.3};
        link.joint.type = JointType::revolute;
        scene = scene.add_frame(link);
        parent = link.name;
    }
    const auto box = Shape::primitive(ShapeKind::box, {1, 1, 1});
    for (int i = 0; i < 20; ++i) {
        FrameSpecification thing;
        thing.name = "thing" + std::to_string(i);
        thing.parent = "world";
        thing.pose.translation = {1.0 * i, 0, 0};
        thing.joint.type = JointType::free;
        thing.shapes = {tmkit::AttachedShape{box, {}}};
        scene = scene.add_frame(thing);
    }
    return scene;
}

template <class Work> void at_once(Work&& work) {
    std::atomic<int> ready{0};
    std::vector<std::thread> threads;
    for (int number = 0; number < thread_count; ++number)
        threads.emplace_back([&, number] {
            ++ready;
            while (ready < thread_count) {}
            work(number);
        });
    for (std::thread& thread : threads) thread.join();
}

struct Nothing : tmkit::CollisionStructure {};

}  // namespace

TEST_CASE("readers and editors share a version") {
    const SceneGraph scene = world_with_things();
    const std::uint64_t hash = scene.content_hash();
    const double q[] = {0.1, 0.2, 0.3, 0.4, 0.5};
    std::atomic<int> failures{0};
    at_once([&](int number) {
        std::mt19937 random(static_cast<unsigned>(number));
        SceneGraph mine = scene;
        for (int step = 0; step < 300; ++step) {
            const std::string thing = "thing" + std::to_string(random() % 20),
                              link = "link" + std::to_string(random() % 5);
            mine = (random() % 2 ? scene : mine).reparent_keeping_pose(thing, link, q);
            const tmkit::Kinematics all(mine, {q, q + 5});
            if (all.pose(thing).distance(scene.pose(thing, "world", q))[0] > 1e-9) ++failures;
            if (scene.record(scene.record(thing).parent).name->text != "world") ++failures;
        }
        if (!mine.defects().empty()) ++failures;
    });
    CHECK(failures == 0);
    CHECK(scene.content_hash() == hash);
}

TEST_CASE("versions are released by other threads than their creators") {
    std::vector<SceneGraph> box(8, world_with_things());
    std::mutex guard;
    std::atomic<int> failures{0};
    at_once([&](int number) {
        std::mt19937 random(static_cast<unsigned>(number));
        for (int step = 0; step < 300; ++step) {
            SceneGraph scene;
            {
                const std::lock_guard lock(guard);
                scene = box[random() % box.size()];
            }
            Pose pose;
            pose.translation = {0.001 * step, 0, 0};
            scene = scene.set_pose("thing" + std::to_string(random() % 20), pose);
            if (scene.layout().size() != scene.size()) ++failures;
            const std::lock_guard lock(guard);
            std::swap(box[random() % box.size()], scene);
        }
    });
    CHECK(failures == 0);
    for (const SceneGraph& scene : box) CHECK(scene.defects().empty());
}

TEST_CASE("a layout is made once by several threads") {
    for (int round = 0; round < 100; ++round) {
        const SceneGraph fresh = world_with_things();
        std::vector<const tmkit::Layout*> seen(thread_count);
        at_once([&](int number) {
            const SceneGraph copy = number % 2 ? SceneGraph(fresh) : fresh;
            seen[static_cast<std::size_t>(number)] = number % 2 ? &fresh.layout() : &copy.layout();
            if (copy.layout().size() != fresh.size())
                seen[static_cast<std::size_t>(number)] = nullptr;
        });
        CHECK(seen[1] == &fresh.layout());
        CHECK(seen[3] == &fresh.layout());
        CHECK(seen[0] != nullptr);
    }
}

TEST_CASE("a collision structure is made once") {
    const auto shape = Shape::primitive(ShapeKind::sphere, {1.0});
    std::atomic<int> built{0};
    at_once([&](int) {
        for (const auto level : {tmkit::CollisionLevel::exact, tmkit::CollisionLevel::box})
            shape->collision_structure(level, [&](const Shape&) {
                ++built;
                return std::make_unique<Nothing>();
            });
    });
    CHECK(built == 2);
}

TEST_CASE("many edits in place, from one version, with readers and releases of it") {
    const SceneGraph scene = world_with_things();
    const std::uint64_t hash = scene.content_hash();
    const double q[] = {0.1, 0.2, 0.3, 0.4, 0.5};
    std::vector<SceneGraph> finished(thread_count, scene);
    std::mutex guard;
    std::atomic<int> failures{0};
    at_once([&](int number) {
        std::mt19937 random(static_cast<unsigned>(number));
        for (int round = 0; round < 20; ++round) {
            SceneGraph start;
            {
                const std::lock_guard lock(guard);
                start = finished[random() % finished.size()];  // a version of another thread
            }
            tmkit::SceneEdit edit(start);
            start = SceneGraph();  // the edit may now be the only owner of some nodes, or not
            for (int step = 0; step < 40; ++step) {
                const std::string thing = "thing" + std::to_string(random() % 20),
                                  link = "link" + std::to_string(random() % 5);
                if (random() % 3)
                    edit.reparent_keeping_pose(thing, random() % 2 ? link : "world", q);
                else edit.set_classes(thing, {std::to_string(random() % 5)});
                if (random() % 10 == 0 && edit.scene().layout().size() != scene.size()) ++failures;
            }
            if (std::abs(edit.scene().pose("thing3", "world", q).translation[0] - 3.0) > 1e-9)
                ++failures;
            const std::lock_guard lock(guard);
            finished[random() % finished.size()] = edit.scene();
        }
    });
    CHECK(failures == 0);
    for (const SceneGraph& version : finished) CHECK(version.defects().empty());
    CHECK(scene.content_hash() == hash);
}
