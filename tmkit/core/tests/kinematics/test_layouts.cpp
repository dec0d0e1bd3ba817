// Layouts: updated after any few changes, they equal new ones array by array; unchanged data are
// shared.
#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/editable_scene.hpp"
#include "tmkit/kinematics.hpp"
#include "tmkit/scene_edit.hpp"

using tmkit::FrameSpecification;
using tmkit::Joint;
using tmkit::JointType;
using tmkit::Kinematics;
using tmkit::Layout;
using tmkit::Pose;
using tmkit::SceneEdit;
using SceneGraph = tmkit::test::EditableScene;

namespace {

const Pose place = Pose::from_rpy({0.3, -0.2, 0.1}, {0.4, 0.5, -0.6});

FrameSpecification frame(const std::string& name, const std::string& parent,
                         JointType type = JointType::fixed) {
    FrameSpecification specification;
    specification.name = name;
    specification.parent = parent;
    specification.pose = place;
    specification.joint.type = type;
    specification.joint.axis = {0.0, 0.6, 0.8};
    return specification;
}

// World - shoulder (revolute) - elbow (prismatic) - hand; world - table - cup (free) - lid.
SceneGraph laid_out() {
    const SceneGraph scene = SceneGraph()
                                 .add_root("world")
                                 .add_frame(frame("shoulder", "world", JointType::revolute))
                                 .add_frame(frame("table", "world"))
                                 .add_frame(frame("elbow", "shoulder", JointType::prismatic))
                                 .add_frame(frame("hand", "elbow"))
                                 .add_frame(frame("cup", "table", JointType::free))
                                 .add_frame(frame("lid", "cup"));
    scene.layout();
    return scene;
}

// Bits of all poses at a configuration that differs for every joint.
std::vector<double> poses_of(const SceneGraph& scene) {
    std::vector<double> q(scene.joint_count()), numbers;
    for (std::size_t i = 0; i < q.size(); ++i) q[i] = 0.3 * static_cast<double>(i) - 1.1;
    const Kinematics at(scene, q);
    for (std::size_t i = 0; i < at.size(); ++i) {
        const Pose& pose = at.pose(static_cast<std::int32_t>(i));
        numbers.insert(numbers.end(), pose.translation.begin(), pose.translation.end());
        numbers.insert(numbers.end(), pose.quat_xyzw.begin(), pose.quat_xyzw.end());
    }
    return numbers;
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

SceneGraph rebuilt(const SceneGraph& scene) {
    std::vector<FrameSpecification> frames;
    for (const std::string& name : scene.frame_names()) frames.push_back(scene.specification(name));
    return SceneGraph::from_frames(frames);
}

// One random edit; throws the error of the scene.
void edit_somehow(SceneEdit& edit, std::mt19937& random, const std::string& fresh) {
    const std::vector<std::string> names = edit.scene().frame_names(),
                                   joints = edit.scene().joint_names();
    const auto choose = [&] { return names[random() % names.size()]; };
    Joint joint;
    joint.type = JointType(random() % 5);
    joint.axis = random() % 2 ? tmkit::Vector3{1.0, 0.0, 0.0} : tmkit::Vector3{0.0, 0.6, 0.8};
    if (random() % 4 == 0 && !joints.empty() && tmkit::is_actuated(joint.type)) {
        joint.mimic = joints[random() % joints.size()];
        joint.mimic_multiplier = -0.5;
        joint.mimic_offset = 0.25;
    }
    switch (random() % 9) {
        case 0:
        case 1:
        case 2: {
            FrameSpecification made = frame(fresh, choose());
            made.joint = joint;
            return edit.add_frame(made);
        }
        case 3: return edit.remove_frame(choose(), random() % 2);
        case 4: return edit.rename_frame(choose(), fresh);
        case 5: return edit.set_joint(choose(), joint);
        case 6:
            return edit.set_pose(
                choose(),
                Pose::from_rpy({0.001 * static_cast<double>(random() % 100), 0, 0}, {0, 0.1, 0}));
        case 7: return edit.add_root(fresh);
        default: return edit.reparent(choose(), choose(), place);
    }
}

}  // namespace

TEST_CASE("a layout updated after any changes equals a new one") {
    std::mt19937 random(7);
    std::vector<SceneGraph> versions{laid_out()};
    std::vector<std::vector<double>> poses{poses_of(versions[0])};
    int fresh = 0;
    for (int round = 0; round < 1500; ++round) {
        const std::size_t from = random() % versions.size();
        SceneEdit edit(versions[from]);
        for (auto changes = random() % 9; changes-- > 0 && edit.scene().size() > 0;) {
            try {
                edit_somehow(edit, random, "f" + std::to_string(fresh++));
            } catch (const tmkit::Error&) {}
        }
        const SceneGraph next = std::move(edit).take();
        if (next.size() == 0 || next.size() > 40) continue;
        REQUIRE(next.defects() == "");  // which compares the layout with a new one
        REQUIRE(same_bits(poses_of(next), poses_of(rebuilt(next))));
        const std::size_t place_of_it =
            versions.size() < 50 ? versions.size() : random() % versions.size();
        if (place_of_it == versions.size()) {
            versions.emplace_back();
            poses.emplace_back();
        }
        versions[place_of_it] = next;
        poses[place_of_it] = poses_of(next);
    }
    for (std::size_t i = 0; i < versions.size(); ++i) {
        REQUIRE(versions[i].defects() == "");
        REQUIRE(same_bits(poses_of(versions[i]), poses[i]));
    }
}

TEST_CASE("a joint that is added or removed between others shifts the entries after it") {
    const SceneGraph scene = laid_out();
    Joint turning;
    turning.type = JointType::continuous;
    const SceneGraph turned = scene.set_joint("table", turning);
    CHECK(turned.layout().joint_frame == std::vector<std::int32_t>{1, 2, 3});
    CHECK(turned.layout().q_index == std::vector<std::int32_t>{-1, 0, 1, 2, -1, -1, -1});
    const SceneGraph without = turned.set_joint("shoulder", Joint{});
    CHECK(without.layout().joint_frame == std::vector<std::int32_t>{2, 3});
    CHECK(without.remove_frame("table", true).layout().q_index ==
          std::vector<std::int32_t>{-1, -1, 0, -1});
    CHECK(scene.layout().joint_frame == std::vector<std::int32_t>{1, 3});
}

TEST_CASE("unchanged data are shared with the previous layout") {
    const SceneGraph scene = laid_out();
    const Layout& before = scene.layout();
    const tmkit::LayoutTree& tree = before.tree();
    const Pose moved = Pose::from_rpy({1, 0, 0}, {0, 0, 0});

    const SceneGraph placed = scene.set_pose("cup", moved);
    CHECK(placed.layout().frames == before.frames);
    CHECK(&placed.layout().tree() == &tree);
    const SceneGraph held = scene.reparent("cup", "hand", moved);
    CHECK(held.layout().frames == before.frames);
    CHECK(&held.layout().tree() != &tree);
    CHECK_FALSE(scene.add_frame(frame("spoon", "cup")).layout().frames == before.frames);

    Joint limited = *scene.record("shoulder").joint;
    limited.upper = 1.0;
    CHECK(&scene.set_joint("shoulder", limited).layout() == &before);
    CHECK(&scene.rename_frame("cup", "mug").layout() == &before);
    CHECK(&scene.set_classes("cup", {"movable"}).layout() == &before);
}

TEST_CASE("frames with younger parents are after them") {
    SceneGraph scene = laid_out()
                           .add_frame(frame("young", "world", JointType::revolute))
                           .add_frame(frame("younger", "world"));
    scene = scene.reparent("young", "younger", place).reparent("shoulder", "young", place);
    const Layout& flat = scene.layout();
    CHECK(flat.moving == std::vector<std::int32_t>{7, 1, 3, 4});
    CHECK(flat.tree().order == std::vector<std::int32_t>{0, 2, 8, 5, 7, 6, 1, 3, 4});
    CHECK(scene.defects() == "");
}

TEST_CASE("an updated layout and its tree are made once by several threads") {
    const SceneGraph scene = laid_out();
    for (int round = 0; round < 200; ++round) {
        const SceneGraph changed = round % 2
                                       ? scene.add_frame(frame("new", "hand", JointType::revolute))
                                       : scene.remove_frame("lid", false);
        std::vector<const tmkit::LayoutTree*> seen(4);
        std::vector<std::thread> threads;
        for (auto& tree : seen)
            threads.emplace_back([&changed, &tree] { tree = &changed.layout().tree(); });
        for (std::thread& thread : threads) thread.join();
        for (const tmkit::LayoutTree* tree : seen) CHECK(tree == &changed.layout().tree());
    }
}
