// The rules of the scene graph, without Python: effects of edits, rejected edits, and immutable
// versions.
#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "support/editable_scene.hpp"
#include "tmkit/kinematics.hpp"
#include "tmkit/scene_graph.hpp"

using tmkit::ErrorKind;
using tmkit::FrameSpecification;
using tmkit::Joint;
using tmkit::JointType;
using tmkit::Pose;
using SceneGraph = tmkit::test::EditableScene;

namespace {

FrameSpecification frame(const std::string& name, const std::string& parent, const Pose& pose = {},
                         JointType type = JointType::fixed, const std::string& body = "") {
    FrameSpecification specification;
    specification.name = name;
    specification.parent = parent;
    specification.pose = pose;
    specification.joint.type = type;
    specification.body = body;
    return specification;
}

Pose at(double x, double y, double z) { return Pose::checked({x, y, z}, {0, 0, 0, 1}); }

// World - arm (revolute) - mount (on the arm's body) - hand (prismatic) - finger (mimics hand);
// world - cup - handle.
SceneGraph kitchen() {
    FrameSpecification finger = frame("finger", "hand", at(0, 0, 0.1), JointType::revolute);
    finger.joint.mimic = "hand";
    finger.joint.mimic_multiplier = 2.0;
    finger.joint.mimic_offset = 0.5;
    return SceneGraph()
        .add_root("world")
        .add_frame(frame("arm", "world", at(0, 0, 1), JointType::revolute))
        .add_frame(frame("mount", "arm", at(0.2, 0, 0), JointType::fixed, "arm"))
        .add_frame(frame("hand", "mount", at(0, 0, 0), JointType::prismatic))
        .add_frame(finger)
        .add_frame(frame("cup", "world", at(1, 0, 0), JointType::free))
        .add_frame(frame("handle", "cup", at(0.1, 0, 0), JointType::fixed, "cup"));
}

template <class Call> ErrorKind kind_of_error(Call&& call) {
    try {
        call();
    } catch (const tmkit::Error& error) {
        return error.kind();
    }
    FAIL("nothing was rejected");
    return ErrorKind::capacity;
}

}  // namespace

TEST_CASE("joints, mimics and the configuration") {
    const SceneGraph scene = kitchen();
    CHECK(scene.defects().empty());
    CHECK(scene.joint_names() == std::vector<std::string>{"arm", "hand"});
    const double q[] = {0.3, 0.1};
    CHECK(scene.joint_value(scene.record("finger"), q) == 2.0 * 0.1 + 0.5);
    const tmkit::Kinematics kinematics(scene, {0.3, 0.1});
    for (const std::string& name : scene.frame_names()) {
        CHECK(kinematics.pose(name) == scene.pose(name, "world", q));
        CHECK(kinematics.pose(name, "hand") == scene.pose(name, "hand", q));
    }
    CHECK(kind_of_error([&] { scene.pose("hand", "world", nullptr); }) == ErrorKind::configuration);
    CHECK(scene.pose("handle", "world", nullptr) == at(1.1, 0, 0));
}

TEST_CASE("forward kinematics leaves the layout with the version") {
    const SceneGraph scene = kitchen();
    const tmkit::Kinematics first(scene, {0.3, 0.1}), second(scene, {0.2, 0.0});
    CHECK(&first.scene().layout() == &scene.layout());
    CHECK(&second.scene().layout() == &scene.layout());
}

TEST_CASE("picking up keeps the pose and does not change the old version") {
    const SceneGraph scene = kitchen();
    const double q[] = {0.3, 0.1}, moved[] = {1.3, 0.0};
    const SceneGraph held = scene.reparent_keeping_pose("cup", "finger", q);
    CHECK(held.defects().empty());
    const auto [metres, radians] =
        held.pose("handle", "world", q).distance(scene.pose("handle", "world", q));
    CHECK(metres < 1e-14);
    CHECK(radians < 1e-14);
    CHECK(held.pose("cup", "world", moved).distance(scene.pose("cup", "world", moved))[0] > 0.1);
    CHECK(scene.record(scene.record("cup").parent).name->text == "world");
    CHECK(held.frame_names() == scene.frame_names());
    CHECK(held.reparent("cup", "world", at(1, 0, 0)).same_content(scene));
}

TEST_CASE("rejected edits and their kinds of error") {
    const SceneGraph scene = kitchen();
    CHECK(kind_of_error([&] { scene.add_root("cup"); }) == ErrorKind::duplicate_name);
    CHECK(kind_of_error([&] { scene.add_root(""); }) == ErrorKind::scene);
    CHECK(kind_of_error([&] { scene.add_frame(frame("lid", "cups")); }) == ErrorKind::unknown_name);
    CHECK(kind_of_error([&] {
        scene.add_frame(frame("lid", "world", {}, JointType::fixed, "cup"));
    }) == ErrorKind::scene);
    CHECK(kind_of_error([&] {
        scene.add_frame(frame("lid", "cup", {}, JointType::free, "cup"));
    }) == ErrorKind::scene);
    CHECK(kind_of_error([&] { scene.reparent("arm", "finger", {}); }) == ErrorKind::cycle);
    CHECK(kind_of_error([&] { scene.reparent("world", "cup", {}); }) == ErrorKind::scene);
    CHECK(kind_of_error([&] { scene.reparent("handle", "world", {}); }) == ErrorKind::scene);
    CHECK(kind_of_error([&] { scene.set_pose("mount", at(1, 0, 0)); }) == ErrorKind::scene);
    CHECK(kind_of_error([&] { scene.remove_frame("cup", false); }) == ErrorKind::scene);
    CHECK(kind_of_error([&] { scene.rename_frame("cup", "arm"); }) == ErrorKind::duplicate_name);
    CHECK(kind_of_error([&] { scene.set_joint("hand", Joint{}); }) == ErrorKind::scene);
    CHECK(kind_of_error([&] { scene.allow_collision("cup", "cup", ""); }) == ErrorKind::scene);
    CHECK(kind_of_error([&] { scene.add_root("moon").pose("moon", "cup", nullptr); }) ==
          ErrorKind::disconnected);
    Joint follower;
    follower.type = JointType::revolute;
    follower.mimic = "finger";
    CHECK(kind_of_error([&] { scene.set_joint("hand", follower); }) == ErrorKind::cycle);
    CHECK(kind_of_error([&] { SceneGraph::from_frames({frame("a", "b"), frame("b", "a")}); }) ==
          ErrorKind::cycle);
    CHECK(scene.defects().empty());
    CHECK(scene.same_content(kitchen()));
}

TEST_CASE("an edit that changes nothing shares everything") {
    const SceneGraph scene = kitchen();
    CHECK(scene.rename_frame("cup", "cup").same_version(scene));
    CHECK(scene.set_pose("cup", at(1, 0, 0)).same_version(scene));
    CHECK(scene.set_pose("handle", at(0.1, 0, 1e-12)).same_version(scene));
    CHECK(scene.forbid_collision("cup", "arm").same_version(scene));
    CHECK(scene.set_classes("cup", {}).same_version(scene));
    CHECK_FALSE(scene.set_classes("cup", {"movable"}).same_version(scene));
}

TEST_CASE("content, not history, makes scenes equal") {
    const double q[] = {0.0, 0.0};
    const SceneGraph scene = kitchen();
    SceneGraph other = scene.add_frame(frame("spoon", "cup")).set_classes("cup", {"x"});
    CHECK_FALSE(other.same_content(scene));
    other = other.remove_frame("spoon", false)
                .set_classes("cup", {})
                .reparent_keeping_pose("cup", "hand", q);
    CHECK_FALSE(other.same_content(scene));
    other = other.reparent("cup", "world", at(1, 0, 0));
    CHECK(other.same_content(scene));
    CHECK(other.content_hash() == scene.content_hash());
    std::vector<FrameSpecification> frames;
    for (const std::string& name : scene.frame_names()) frames.push_back(scene.specification(name));
    CHECK(SceneGraph::from_frames(frames).same_content(scene));
}

TEST_CASE("random picking, placing, adding and removing keeps every rule and every version") {
    std::mt19937 random(3);
    const auto choose = [&](const std::vector<std::string>& names) {
        return names[random() % names.size()];
    };
    const double q[] = {0.4, 0.2};
    std::vector<SceneGraph> versions{kitchen()};
    std::vector<std::uint64_t> hashes{versions[0].content_hash()};
    std::size_t done = 0;
    for (int step = 0; step < 2000; ++step) {
        const SceneGraph& scene = versions[random() % versions.size()];
        const std::vector<std::string> names = scene.frame_names();
        const std::string fresh = "f" + std::to_string(step);
        try {
            SceneGraph next;
            switch (random() % 6) {
                case 0:
                    next = scene.add_frame(
                        frame(fresh, choose(names), at(0.1, 0, 0), JointType(random() % 5)));
                    break;
                case 1: next = scene.remove_frame(choose(names), true); break;
                case 2: next = scene.rename_frame(choose(names), fresh); break;
                case 3: next = scene.allow_collision(choose(names), choose(names), "test"); break;
                case 4: next = scene.reparent(choose(names), choose(names), at(0, 0.1, 0)); break;
                default:
                    next = scene.joint_count() == 2
                               ? scene.reparent_keeping_pose(choose(names), choose(names), q)
                               : scene;
            }
            REQUIRE(next.defects() == "");
            if (next.size() == 0) continue;
            ++done;
            if (versions.size() < 200) {
                versions.push_back(next);
                hashes.push_back(next.content_hash());
            } else {
                const std::size_t place = random() % versions.size();
                versions[place] = next;
                hashes[place] = next.content_hash();
            }
        } catch (const tmkit::Error&) {
            REQUIRE(scene.defects() == "");
        }
    }
    CHECK(done > 500);
    for (std::size_t i = 0; i < versions.size(); ++i) {
        REQUIRE(versions[i].defects() == "");
        REQUIRE(versions[i].content_hash() == hashes[i]);
    }
}

TEST_CASE("messages are patterns with arbitrary parts") {
    CHECK(tmkit::format_text("frame '{}' has {} of {}", "a{}b", 2, 0.5) ==
          "frame 'a{}b' has 2 of 0.5");
    CHECK(std::string(tmkit::Error(ErrorKind::scene, std::string("as it is: {}")).what()) ==
          "as it is: {}");
    const tmkit::Error error =
        tmkit::Error(ErrorKind::scene, "no {}", std::string("x")).with({{"count", 3}});
    CHECK(std::string(error.what()) == "no x");
    CHECK(std::get<std::int64_t>(error.facts()[0].value) == 3);
}

TEST_CASE("nearest names") {
    CHECK(tmkit::edit_distance("table", "table") == 0);
    CHECK(tmkit::edit_distance("tabel", "Table") == 1);
    CHECK(tmkit::edit_distance("", "abc") == 3);
    CHECK(tmkit::edit_distance("kitten", "sitting") == 3);
    CHECK(tmkit::nearest_name("amr", {"arm", "hand"}) == "arm");
    CHECK(tmkit::nearest_name("zebra", {"arm", "hand"}).empty());
}
