// The arrays: no allocation after construction, edits beyond the capacity change nothing, names may
// be added and removed without end, and readers only get states that existed. Run under the thread
// sanitizer too.
#include <doctest/doctest.h>

#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/counted.hpp"
#include "support/editable_scene.hpp"
#include "tmkit/kinematics.hpp"
#include "tmkit/scene_arrays.hpp"
#include "tmkit/scene_edit.hpp"

using tmkit::AttachedShape;
using tmkit::Capacities;
using tmkit::Error;
using tmkit::ErrorKind;
using tmkit::FrameSpecification;
using tmkit::Joint;
using tmkit::JointType;
using tmkit::Pose;
using tmkit::SceneArrays;
using SceneGraph = tmkit::test::EditableScene;
using tmkit::Shape;
using tmkit::ShapeKind;

namespace {

Pose at(double x, double y, double z) {
    Pose pose;
    pose.translation = {x, y, z};
    return pose;
}

// Two arms of four links, six objects on the world, a camera that mimics the first arm's last
// joint.
SceneGraph two_arms() {
    std::vector<FrameSpecification> frames(1);
    frames[0].name = "world";
    const auto add = [&](const std::string& name, const std::string& parent, const Pose& pose,
                         JointType type) {
        FrameSpecification frame;
        frame.name = name;
        frame.parent = parent;
        frame.pose = pose;
        frame.joint.type = type;
        frames.push_back(frame);
    };
    for (const std::string arm : {"left", "right"})
        for (int i = 0; i < 4; ++i)
            add(arm + std::to_string(i), i ? arm + std::to_string(i - 1) : "world",
                at(0.1, 0.0, 0.4), JointType::revolute);
    for (int i = 0; i < 6; ++i)
        add("thing with a long name " + std::to_string(i), "world", at(i, 1, 0), JointType::free);
    add("camera", "world", at(0, 0, 2), JointType::revolute);
    frames.back().joint.mimic = "left3";
    frames.back().joint.mimic_multiplier = 0.5;
    return SceneGraph::from_frames(frames);
}

ErrorKind kind_of(auto&& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.kind();
    }
    return ErrorKind::scene;  // of none that is tested for
}

bool same(const SceneArrays& arrays, const SceneGraph& scene) {
    const SceneGraph frozen = arrays.freeze();
    if (!arrays.defects().empty() || !frozen.defects().empty() || !frozen.same_content(scene))
        return false;
    for (const std::string& name : scene.frame_names())
        if (frozen.record(name).id != scene.record(name).id) return false;
    return frozen.next_frame_id() == scene.next_frame_id();
}

}  // namespace

TEST_CASE("a round trip is the identity, with ids") {
    SceneGraph scene = two_arms();
    scene = scene.remove_frame("thing with a long name 2", false)
                .add_root("elsewhere")
                .rename_frame("camera", "eye");
    scene = scene.allow_collision("left0", "right0", "near")
                .set_group({"things", {"thing with a long name 0", "eye"}, {}});
    scene = scene.set_group({"all", {"left0"}, {"things"}})
                .set_classes("eye", {"camera"})
                .set_attributes("eye", {{"lens", "35"}});
    scene = scene.set_inertia("left1", tmkit::Inertia{2.0, {0.1, 0, 0}, {}});
    const SceneArrays arrays(scene);
    CHECK(same(arrays, scene));
    const SceneGraph removed = scene.remove_frame("eye", false);
    SceneArrays less(scene);
    less.remove_frame("eye", false);
    CHECK(same(less, removed));
    CHECK(less.freeze().group("things").frames.size() == 1);
}

TEST_CASE("edits, forward kinematics and queries allocate nothing") {
    const SceneGraph scene = two_arms();
    SceneArrays arrays(scene);
    const std::string thing = "thing with a long name 3",
                      name = "another name that no small string holds";
    const auto box = Shape::primitive(ShapeKind::box, {1, 1, 1});
    AttachedShape shape;
    shape.shape = box;
    shape.pose = at(0, 0, 0.1);
    const std::vector<AttachedShape> shapes(3, shape);
    Joint joint;
    joint.type = JointType::prismatic;
    joint.name = "a joint of some name that is long";
    Joint follower = joint;
    follower.name += " too";
    follower.mimic = "right3";
    const tmkit::FrameSpecification elsewhere{.name = "elsewhere, where names are long too"},
        added{.name = name,
              .parent = elsewhere.name,
              .pose = at(1, 0, 0),
              .joint = joint,
              .shapes = shapes};
    const std::vector<double> q(scene.joint_count(), 0.3), more(scene.joint_count() + 1, 0.2);
    std::vector<double> out(7 * 64), rows(6 * more.size());
    double sum = 0.0;
    const long made = count_allocations([&] {
        for (int round = 0; round < 20; ++round) {
            arrays.forward(q);
            arrays.reparent(thing, "left3", at(0, 0, 0.1));
            arrays.reparent_keeping_pose(thing, "right3", q);
            arrays.reparent_keeping_pose(thing, "world", std::nullopt);
            arrays.reparent("left0", thing, at(0, 0, 0.1));
            arrays.reparent("left0", "world", at(0, 0, 0.1));
            arrays.set_pose(thing, at(round, 0, 0));
            arrays.add_frame(elsewhere);
            arrays.add_frame(added);
            arrays.forward(more);
            arrays.set_joint(name, follower);
            arrays.set_joint(name, joint);
            arrays.add_shape(name, shape);
            arrays.set_shapes(name, {shapes.data(), 2});
            arrays.set_inertia(name, tmkit::Inertia{1.0, {}, {}});
            arrays.allow_collision(name, thing, "a reason that is longer than small strings are");
            arrays.allow_collision(name, "left3", "near");
            sum += arrays.is_allowed(thing, name);
            arrays.rename_frame(name, "yet another name that no small string holds");
            sum += arrays.pose("yet another name that no small string holds").translation[0];
            sum += arrays.pose("left3", "right3").translation[0] +
                   arrays.pose("left3", "right3", more).translation[0];
            sum += arrays.local_pose(thing).translation[0] +
                   static_cast<double>(arrays.contains("nobody"));
            sum += static_cast<double>(arrays.write_poses(out) + arrays.write_q(rows));
            arrays.jacobian(thing, rows);
            arrays.forbid_collision(thing, "yet another name that no small string holds");
            arrays.remove_frame("elsewhere, where names are long too", true);
        }
    });
    CHECK(made == 0);
    CHECK(sum != 0.0);
    CHECK(arrays.defects().empty());
}

TEST_CASE("an edit beyond a capacity changes nothing and names the capacity") {
    const SceneGraph scene = two_arms();
    const std::size_t frames = scene.size();
    SceneArrays arrays(scene, Capacities{frames + 1, frames + 1, 2, 1, 26});
    AttachedShape box;
    box.shape = Shape::primitive(ShapeKind::box, {1, 1, 1});
    const std::vector<AttachedShape> three(3, box);
    const auto refused = [&](const std::string& kind, auto&& edit) {
        const SceneGraph before = arrays.freeze();
        try {
            edit();
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::capacity);
            CHECK(std::get<std::string>(error.facts()[0].value) == kind);
            CHECK(same(arrays, before));
            return true;
        }
        return false;
    };
    CHECK(refused("shapes", [&] { arrays.set_shapes("left0", three); }));
    CHECK(refused("shapes",
                  [&] { arrays.add_frame({.name = "new", .parent = "world", .shapes = three}); }));
    arrays.set_shapes("left0", {three.data(), 2});
    CHECK(refused("shapes", [&] { arrays.add_shape("left1", three[0]); }));
    arrays.set_shapes("left0", {three.data(), 1});
    CHECK(
        refused("name_bytes", [&] { arrays.add_frame({.name = "a name of twenty-seven bytes"}); }));
    CHECK(refused("name_bytes",
                  [&] { arrays.rename_frame("left0", "a name of twenty-seven bytes"); }));
    CHECK(refused("name_bytes", [&] {
        arrays.add_frame(
            {.name = "new", .parent = "world", .body = "a body of twenty-seven bytes"});
    }));
    CHECK(refused("name_bytes", [&] {
        arrays.allow_collision("left0", "left2", "a reason of very many bytes");
    }));
    Joint joint;
    joint.type = JointType::revolute;
    joint.name = "a joint of very many bytes!!";
    CHECK(refused("name_bytes", [&] { arrays.set_joint("left0", joint); }));
    arrays.allow_collision("left0", "left2", "near");
    CHECK(refused("allowed_pairs", [&] { arrays.allow_collision("left0", "left3", "near"); }));
    arrays.add_frame({.name = "elsewhere"});
    CHECK(refused("frames", [&] { arrays.add_frame({.name = "beyond"}); }));
    CHECK(kind_of([&] { SceneArrays(scene, {.frames = frames - 1}); }) == ErrorKind::capacity);
    CHECK(kind_of([&] { SceneArrays(scene, {.name_bytes = 4}); }) == ErrorKind::capacity);
}

TEST_CASE("bodies have a separate capacity") {
    SceneArrays arrays(SceneGraph().add_root("world"), {.bodies = 2});
    arrays.add_frame({.name = "a", .parent = "world"});
    CHECK(kind_of([&] { arrays.add_frame({.name = "b", .parent = "a"}); }) == ErrorKind::capacity);
    arrays.add_frame({.name = "b", .parent = "a", .body = "a"});
    CHECK(arrays.freeze().body_names().size() == 2);
}

TEST_CASE("ids are not reused, even at their limit") {
    tmkit::SceneEdit edit(SceneGraph().add_root("world"));
    edit.skip_ids(0xFFFFFFFE);
    SceneArrays arrays(edit.scene());
    arrays.add_frame({.name = "last"});
    CHECK(kind_of([&] { arrays.add_frame({.name = "beyond"}); }) == ErrorKind::capacity);
    arrays.remove_frame("last", false);
    CHECK(kind_of([&] { arrays.add_frame({.name = "last"}); }) == ErrorKind::capacity);
    CHECK(arrays.defects().empty());
}

TEST_CASE("names can be added and removed without end") {
    SceneArrays arrays(SceneGraph().add_root("world"), {.frames = 40});
    SceneGraph scene = SceneGraph().add_root("world");
    std::mt19937 random(1);
    std::vector<std::string> there;
    for (int step = 0; step < 20000; ++step) {
        if (there.size() < 39 && random() % 2) {
            const std::string name = "frame " + std::to_string(random() % 500);
            if (arrays.contains(name)) continue;
            const std::string parent =
                there.empty() || random() % 3 == 0 ? "world" : there[random() % there.size()];
            arrays.add_frame({.name = name, .parent = parent});
            there.push_back(name);
        } else if (!there.empty()) {
            const std::size_t gone = random() % there.size();
            if (!arrays.children(there[gone]).empty()) continue;
            arrays.remove_frame(there[gone], false);
            there.erase(there.begin() + static_cast<std::ptrdiff_t>(gone));
        }
        if (step % 1000 == 0) CHECK(arrays.defects().empty());
    }
    for (const std::string& name : there) CHECK(arrays.contains(name));
    CHECK(arrays.size() == there.size() + 1);
}

TEST_CASE("a chain deeper than one piece of the ascent") {
    std::vector<FrameSpecification> frames(1200);
    frames[0].name = "0";
    for (std::size_t i = 1; i < frames.size(); ++i) {
        frames[i].name = std::to_string(i);
        frames[i].parent = std::to_string(i - 1);
        frames[i].pose =
            Pose::from_rpy({0.1, 0.2, 0.3}, {0.01 * static_cast<double>(i % 7), 0.1, -0.2});
        frames[i].joint.type = i % 3 ? JointType::fixed : JointType::revolute;
    }
    const SceneGraph scene = SceneGraph::from_frames(frames);
    SceneArrays arrays(scene);
    const std::vector<double> q(scene.joint_count(), 0.2);
    arrays.forward(q);
    for (const std::string target : {"1199", "256", "257", "512", "513", "1"})
        for (const std::string reference : {"0", "1", "600", "1100"})
            CHECK(arrays.pose(target, reference, q) == scene.pose(target, reference, q.data()));
    CHECK(arrays.pose("1199") == tmkit::Kinematics(scene, q).pose("1199"));
}

TEST_CASE("readers get consistent worlds while one writer edits") {
    // At every time, the cup is 1 m above the tray, the tray is at (k, k, k) for some whole k on
    // one of four hands at the origin, and the joint of the dial, which the needle mimics twice as
    // fast, is at k / 1000.
    std::vector<FrameSpecification> frames(1);
    frames[0].name = "world";
    const auto add = [&](const std::string& name, const std::string& parent,
                         const Pose& pose) -> FrameSpecification& {
        frames.emplace_back();
        frames.back().name = name;
        frames.back().parent = parent;
        frames.back().pose = pose;
        return frames.back();
    };
    for (int hand = 0; hand < 4; ++hand)
        add("hand" + std::to_string(hand), hand ? "hand" + std::to_string(hand - 1) : "world", {});
    add("tray", "hand0", {});
    add("cup", "tray", at(0, 0, 1));
    add("dial", "world", {}).joint.type = JointType::prismatic;
    add("needle", "world", {}).joint.type = JointType::prismatic;
    frames.back().joint.mimic = "dial";
    frames.back().joint.mimic_multiplier = 2.0;
    SceneArrays arrays(SceneGraph::from_frames(frames));
    std::atomic<bool> done{false};
    std::atomic<long> failures{0}, answers{0};

    const auto read = [&](int number) {
        std::vector<double> rows(7 * 64), jacobian(6);
        std::mt19937 random(static_cast<unsigned>(number));
        while (!done) {
            const Pose cup = arrays.pose("cup", "world");
            const double x = cup.translation[0];
            if (cup.translation[1] != x || cup.translation[2] != x + 1 || x != static_cast<int>(x))
                ++failures;
            const Pose above = arrays.pose("cup", "tray");
            if (above.translation != tmkit::Vector3{0, 0, 1}) ++failures;
            const std::size_t count = arrays.write_poses(rows);
            const double* tray = rows.data() + 7 * 5;
            const double* dial = rows.data() + 7 * 7;
            if (count < 9 || count > 11 || tray[7] != tray[0] || tray[9] != tray[2] + 1) ++failures;
            if (dial[2 + 7] != 2 * dial[2]) ++failures;
            if (arrays.pose("needle").translation[2] < 0) ++failures;
            const std::string holder = arrays.parent("tray").value_or("nobody");
            if (holder.substr(0, 4) != "hand") ++failures;
            arrays.jacobian("needle", jacobian);
            if (jacobian[2] != 2.0) ++failures;
            if (arrays.is_allowed("cup", "tray") && !arrays.contains("cup")) ++failures;
            for (const std::string& name : arrays.frame_names())
                if (name.empty()) ++failures;
            double q = 0;
            arrays.write_q({&q, 1});
            if (q < 0) ++failures;
            ++answers;
        }
    };
    std::vector<std::thread> readers;
    for (int number = 0; number < 3; ++number) readers.emplace_back(read, number);
    std::mt19937 random(7);
    while (answers < 10) std::this_thread::yield();  // not before all threads run
    for (int step = 0; step < 30000; ++step) {
        const auto k = static_cast<double>(random() % 1000);
        const double q = k / 1000;
        arrays.set_pose("tray", at(k, k, k));
        arrays.reparent("tray", "hand" + std::to_string(random() % 4), at(k, k, k));
        arrays.reparent_keeping_pose("tray", "hand" + std::to_string(random() % 4), {{&q, 1}});
        arrays.forward({&q, 1});
        if (step % 2) arrays.remove_frame("extra", true);
        else arrays.add_frame({.name = "extra", .parent = "cup"});
        if (step % 3 == 0) arrays.allow_collision("cup", "tray", "rests");
        else arrays.forbid_collision("cup", "tray");
        if (step % 1000 == 0) std::this_thread::yield();
    }
    done = true;
    for (std::thread& reader : readers) reader.join();
    CHECK(failures == 0);
    CHECK(arrays.defects().empty());
}

TEST_CASE("a second writer is rejected") {
    tmkit::SequenceLock lock;
    {
        const tmkit::SequenceLock::Writer first(lock);
        CHECK(kind_of([&] { const tmkit::SequenceLock::Writer second(lock); }) ==
              ErrorKind::concurrent_write);
    }
    const tmkit::SequenceLock::Writer third(lock);
}
