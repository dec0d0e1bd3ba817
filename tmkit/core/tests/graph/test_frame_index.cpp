// The index by parent and class, which all versions of a scene share: any version may be queried
// after any other, from any thread, with the result of a scan of all its frames.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/editable_scene.hpp"
#include "tmkit/scene_edit.hpp"

using tmkit::FrameId;
using tmkit::FrameRecord;
using tmkit::FrameSpecification;
using tmkit::Pose;
using tmkit::SceneEdit;
using SceneGraph = tmkit::test::EditableScene;

namespace {

std::vector<FrameId> children_by_scan(const SceneGraph& scene, FrameId parent) {
    std::vector<FrameId> found;
    scene.for_each_frame([&](const FrameRecord& frame) {
        if (frame.parent == parent) found.push_back(frame.id);
    });
    return found;
}

std::vector<FrameId> of_class_by_scan(const SceneGraph& scene, const std::string& name) {
    std::vector<FrameId> found;
    scene.for_each_frame([&](const FrameRecord& frame) {
        if (frame.details &&
            std::count(frame.details->classes.begin(), frame.details->classes.end(), name))
            found.push_back(frame.id);
    });
    return found;
}

bool agrees(const SceneGraph& scene) {
    bool same = scene.roots() == children_by_scan(scene, tmkit::no_frame);
    for (const char* name : {"a", "b", "none"})
        same = same && scene.frames_of_class(name) == of_class_by_scan(scene, name);
    scene.for_each_frame([&](const FrameRecord& frame) {
        same = same && scene.children(frame.id) == children_by_scan(scene, frame.id);
        std::vector<FrameId> below = scene.subtree(frame.id);
        same = same && below.front() == frame.id;
        std::sort(below.begin(), below.end());
        scene.for_each_frame([&](const FrameRecord& other) {
            same = same && std::binary_search(below.begin(), below.end(), other.id) ==
                               scene.is_ancestor(frame.id, other.id);
        });
    });
    return same;
}

// Versions that branch from each other by random edits, some of them with a builder.
std::vector<SceneGraph> random_versions(std::mt19937& random, int count) {
    std::vector<SceneGraph> versions{SceneGraph().add_root("world")};
    const auto pick = [&](std::size_t n) {
        return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
    };
    for (int made = 0; made < count; ++made) {
        const SceneGraph& from =
            versions[versions.size() - 1 - pick(std::min<std::size_t>(versions.size(), 4))];
        SceneEdit edit(from);
        for (std::size_t steps = 1 + pick(3); steps > 0; --steps) {
            const std::vector<std::string> names = edit.scene().frame_names();
            const std::string &a = names[pick(names.size())], &b = names[pick(names.size())];
            const std::string fresh = "f" + std::to_string(made) + "." + std::to_string(steps);
            FrameSpecification frame;
            frame.name = fresh;
            frame.parent = a;
            if (pick(2) == 0) frame.classes = {"a"};
            try {
                switch (pick(7)) {
                    case 0:
                    case 1: edit.add_frame(frame); break;
                    case 2: edit.reparent(a, b, Pose{}); break;
                    case 3:
                        if (names.size() > 8) edit.remove_frame(a, pick(2) == 0);
                        break;
                    case 4:
                        edit.set_classes(a, pick(2) == 0 ? std::vector<std::string>{"b", "a", "b"}
                                                         : std::vector<std::string>{});
                        break;
                    case 5: edit.add_root(fresh); break;
                    default: edit.attach(a, b, Pose{}, tmkit::Joint{}); break;
                }
            } catch (const tmkit::Error&) {}
            // The index holds maps that the builder changes next.
            if (pick(3) == 0) static_cast<void>(edit.scene().roots());
        }
        versions.push_back(std::move(edit).take());
    }
    return versions;
}

}  // namespace

TEST_CASE("any version may be queried after any other") {
    for (unsigned seed = 0; seed < 20; ++seed) {
        std::mt19937 random(seed);
        const std::vector<SceneGraph> versions = random_versions(random, 60);
        for (int queries = 0; queries < 120; ++queries) {
            const SceneGraph& scene = versions[std::uniform_int_distribution<std::size_t>(
                0, versions.size() - 1)(random)];
            CHECK(agrees(scene));
            CHECK(scene.defects().empty());
        }
    }
}

TEST_CASE("equality of versions is that of copies that share nothing") {
    std::mt19937 random(7);
    for (int round = 0; round < 5; ++round) {
        const std::vector<SceneGraph> versions = random_versions(random, 40);
        std::vector<SceneGraph> copies;
        for (const SceneGraph& scene : versions) {
            std::vector<FrameSpecification> frames;
            for (const std::string& name : scene.frame_names())
                frames.push_back(scene.specification(name));
            copies.push_back(SceneGraph::from_frames(frames));
        }
        for (std::size_t i = 0; i < versions.size(); ++i)
            for (std::size_t j = 0; j < versions.size(); ++j) {
                CHECK(versions[i].same_content(versions[j]) ==
                      (copies[i].content_bytes() == copies[j].content_bytes()));
                CHECK(copies[i].same_content(versions[j]) == versions[i].same_content(versions[j]));
            }
    }
}

TEST_CASE("several threads query several versions") {
    std::mt19937 random(3);
    const std::vector<SceneGraph> versions = random_versions(random, 30);
    std::vector<char> fine(4, 1);
    std::vector<std::thread> threads;
    for (std::size_t thread = 0; thread < fine.size(); ++thread)
        threads.emplace_back([&, thread] {
            for (std::size_t i = 0; i < versions.size(); ++i)
                if (!agrees(versions[(i * (thread + 1)) % versions.size()])) fine[thread] = 0;
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(std::all_of(fine.begin(), fine.end(), [](char is_fine) { return is_fine == 1; }));
}
