// The arrays' bodies, twists, stamped poses and groups: no allocation, edits beyond the capacity
// change nothing, and readers get whole edits. Python tests check the rules of the persistent
// scene. Run under the thread sanitizer.
#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/counted.hpp"
#include "support/editable_scene.hpp"
#include "tmkit/scene_arrays.hpp"
#include "tmkit/scene_edit.hpp"

using tmkit::Covariance;
using tmkit::Error;
using tmkit::ErrorKind;
using tmkit::Joint;
using tmkit::Moment;
using tmkit::Pose;
using tmkit::Ref;
using tmkit::SceneArrays;
using tmkit::SceneEdit;
using SceneGraph = tmkit::test::EditableScene;
using tmkit::StampCovariance;
using tmkit::StampedPoses;
using tmkit::StampPolicy;
using tmkit::TwistEdge;
using tmkit::Vector6;

namespace {

Pose at(double x, double y, double z) {
    Pose pose;
    pose.translation = {x, y, z};
    return pose;
}

const std::string cup = "a cup whose name no small string holds",
                  other_cup = "another cup whose name no small string holds";
const std::string table = "a table whose name no small string holds",
                  spare = "a spare body whose name no small string holds";

// Two cups, free on a table; a second tree, whose root is on the body of the first cup.
SceneGraph two_cups() {
    SceneEdit edit{SceneGraph()};
    edit.add_root("world");
    tmkit::FrameSpecification frame;
    frame.name = table;
    frame.parent = "world";
    edit.add_frame(frame);
    frame.parent = table;
    frame.joint.type = tmkit::JointType::free;
    for (const std::string& name : {cup, other_cup}) {
        frame.name = name;
        edit.add_frame(frame);
    }
    edit.add_root("handle", cup);
    edit.add_body("bare");
    return std::move(edit).take();
}

// A covariance with one variance in all directions; null for 0.
Ref<const StampCovariance> of_variance(double variance) {
    if (variance == 0.0) return nullptr;
    Covariance covariance;
    for (const std::size_t i : {0, 4, 8}) covariance.linear[i] = covariance.angular[i] = variance;
    return Ref<const StampCovariance>(new StampCovariance(covariance));
}

std::string refusal(auto&& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

}  // namespace

TEST_CASE("edits of bodies, twists, stamps and groups allocate nothing, nor do poses at a time") {
    SceneArrays arrays(two_cups(), {.name_bytes = 80});
    const std::string group = "a group whose name no small string holds",
                      root = "a root whose name no small string holds";
    const tmkit::GroupSpecification many{group, {cup, table, cup}, {}}, one{group, {cup}, {}},
        nested{"all", {cup}, {group}};
    const Vector6 twist{1, 2, 3, 4, 5, 6};
    const TwistEdge of_table{table, twist}, of_world{"world", twist}, of_cup{cup, twist};
    const auto history = tmkit::make_ref<StampedPoses>();
    for (int i = 0; i < 8; ++i) history->entries.push_back({1.0 * i, at(i, 0, 0)});
    Joint joint;
    joint.type = tmkit::JointType::revolute;
    joint.name = "a joint whose name no small string holds";
    double sum = 0.0;
    const tmkit::FrameSpecification added{.name = root, .body = spare};
    const long made = count_allocations([&] {
        for (int round = 0; round < 30; ++round) {
            arrays.add_body(spare);
            arrays.remove_body(spare);
            arrays.add_body(spare);
            arrays.add_frame(added);
            arrays.set_twist(root, of_table);
            arrays.set_twist(cup, of_table);
            arrays.set_twist(cup, of_table);
            arrays.set_twist("handle", of_world);
            arrays.set_twist(other_cup, of_cup);
            arrays.attach(root, cup, at(0, 0, 1), joint);
            arrays.set_stamped_poses(cup, history);
            for (int step = 0; step < 40; ++step)
                arrays.add_stamped_pose(cup, {8.0 + step, at(8 + step, 0, 0)}, 16, 30.0);
            for (const StampPolicy policy : {StampPolicy::closest, StampPolicy::preceding,
                                             StampPolicy::interpolated, StampPolicy::screw})
                sum += arrays.pose(cup, table, std::nullopt, Moment{40.25, policy}).translation[0];
            sum += arrays.twist_from_stamps(cup, table, 40.0, 41.5, std::nullopt,
                                            StampPolicy::screw)[0];
            sum += arrays.related_twist(other_cup, table, cup, "world")[0];
            const double velocity = 0.5;
            const SceneArrays::Configuration qd = std::span<const double>(&velocity, 1);
            arrays.remove_twist(root);
            sum += arrays.related_twist(root, table, other_cup, "world", std::nullopt, qd)[0];
            arrays.set_group(many);
            arrays.set_group(nested);
            arrays.set_group(one);
            arrays.remove_twist(root);
            arrays.remove_frame(root, false);
            arrays.remove_group(group);
            arrays.reparent(cup, "world", at(0, 0, 0));
            arrays.reparent(cup, table, at(0, 0, 0));
            for (const std::string_view name :
                 {std::string_view(cup), std::string_view(other_cup), std::string_view("handle")})
                arrays.remove_twist(name);
        }
    });
    CHECK(made == 0);
    CHECK(sum > 0.0);
    CHECK(arrays.defects().empty());
    CHECK(arrays.group_names() == std::vector<std::string>{"all"});
}

TEST_CASE("a round trip with twists, stamps, bare bodies and nested groups") {
    SceneEdit edit(two_cups());
    edit.set_twist(cup, {table, {1, 0, 0, 0, 0, 0}});
    edit.set_twist("handle", {"bare", {0, 1, 0, 0, 0, 0}});
    for (int i = 0; i < 5; ++i)
        edit.add_stamped_pose(cup, {1.0 * ((3 * i) % 5), at(i, 0, 0), of_variance(i % 2)}, 4,
                              100.0);
    edit.set_group({"inner", {cup, other_cup}, {}});
    edit.set_group({"a first one", {}, {"inner"}});
    const SceneGraph scene = edit.scene();
    const SceneArrays arrays(scene);
    CHECK(arrays.defects().empty());
    CHECK(arrays.freeze().same_content(scene));
    CHECK(arrays.freeze().content_hash() == scene.content_hash());
    CHECK(arrays.bodies_without_frames() == scene.bodies_without_frames());
    CHECK(arrays.body_names() == scene.body_names());
    CHECK(arrays.group("a first one").groups == std::vector<std::string>{"inner"});
}

TEST_CASE("a covariance of a stamped pose older than the newest allocates nothing") {
    SceneArrays arrays(two_cups(), {.name_bytes = 80, .noise = 6});
    arrays.add_stamped_pose(cup, {100.0, {}}, 8, std::nullopt);
    const Ref<const StampCovariance> covariance = of_variance(2.0);
    const long made = count_allocations([&] {
        for (int step = 0; step < 40; ++step)
            arrays.add_stamped_pose(cup, {50.0 + step, {}, covariance}, 8, std::nullopt);
    });
    CHECK(made == 0);
    CHECK(arrays.noise(cup) == nullptr);
    const std::optional<StampedPoses> history = arrays.stamped_poses(cup);
    REQUIRE(history.has_value());
    CHECK(history->entries.size() == 8);
    CHECK(history->entries.front().covariance->value == covariance->value);
    CHECK(!history->entries.back().covariance);
    arrays.add_stamped_pose(cup, {101.0, {}, covariance}, std::nullopt, std::nullopt);
    CHECK(arrays.noise(cup)->covariance == covariance->value);
    CHECK(arrays.defects().empty());
}

TEST_CASE("twist rules are checked at once") {
    SceneArrays arrays(two_cups());
    const Vector6 twist{1, 0, 0, 0, 0, 0};
    arrays.set_twist(cup, {table, twist});
    arrays.set_twist("handle", {table, {0, 1, 0, 0, 0, 0}});
    const std::string second = "which poses join to it, make [1, 0, 0, 0, 0, 0]";
    CHECK(refusal([&] { arrays.attach("handle", cup, {}, {}); }).find(second) != std::string::npos);
    CHECK(refusal([&] { arrays.set_twist(table, {cup, twist}); }).find("would close a cycle") !=
          std::string::npos);
    arrays.reparent(cup, "world", {});
    arrays.reparent(other_cup, "world", {});
    CHECK(refusal([&] {
        arrays.remove_frame(table, false);
    }).find("cannot be removed while the twist of frame") != std::string::npos);
    arrays.remove_twist("handle");
    arrays.attach("handle", cup, {}, {});
    arrays.set_twist(cup, {table, twist});  // reparenting the cup removed the previous one
    CHECK(refusal([&] {
        arrays.set_twist("handle", {table, twist});
    }).find("would be the second") != std::string::npos);
    arrays.remove_twist(cup);
    arrays.remove_frame(table, false);
    CHECK(arrays.defects().empty());
}

TEST_CASE("readers get consistent twists and histories while one writer edits") {
    // At every time, the six numbers of a twist are equal and its reference body exists, the pose
    // at the newest stamp t is (t, t, t), and half a second before it is (t - 1/2, ...), along any
    // path.
    SceneArrays arrays(two_cups(), {.stamps = 16});
    arrays.add_stamped_pose(cup, {0.0, {}}, 8, std::nullopt);
    arrays.add_stamped_pose(cup, {1.0, at(1, 1, 1)}, 8, std::nullopt);
    std::atomic<bool> done{false};
    std::atomic<long> failures{0}, answers{0};
    const auto read = [&](int number) {
        const StampPolicy policy = number % 2 ? StampPolicy::interpolated : StampPolicy::screw;
        while (!done) {
            if (const auto edge = arrays.twist(cup)) {
                for (const double part : edge->vector)
                    if (part != edge->vector[0]) ++failures;
                if (edge->reference != table && edge->reference != "bare") ++failures;
            }
            for (const std::string& frame : arrays.twist_frames())
                if (frame != cup && frame != other_cup) ++failures;
            if (arrays.body_names().size() < 4 || arrays.body("handle") != cup) ++failures;
            const std::optional<StampedPoses> known = arrays.stamped_poses(cup);
            if (!known || known->entries.size() < 2) {
                ++failures;
                continue;
            }
            const double newest = known->newest();
            if (known->entries.back().pose.translation != tmkit::Vector3{newest, newest, newest})
                ++failures;
            try {
                const Pose before =
                    arrays.pose(cup, table, std::nullopt, Moment{newest - 0.5, policy});
                for (const double coordinate : before.translation)
                    if (std::abs(coordinate - (newest - 0.5)) > 1e-9) ++failures;
            } catch (const Error& error) {
                if (error.kind() != ErrorKind::stamp) ++failures;  // the stamp was removed
            }
            ++answers;
        }
    };
    std::vector<std::thread> readers;
    for (int number = 0; number < 3; ++number) readers.emplace_back(read, number);
    while (answers < 10) std::this_thread::yield();
    std::mt19937 random(3);
    for (int step = 2; step < 10000; ++step) {
        const double value = static_cast<double>(random() % 1000);
        arrays.add_stamped_pose(cup, {1.0 * step, at(step, step, step)}, std::nullopt,
                                std::nullopt);
        arrays.set_twist(
            cup, {step % 64 < 32 ? table : "bare", {value, value, value, value, value, value}});
        if (step % 3 == 0)
            arrays.set_twist(other_cup, {cup, {value, value, value, value, value, value}});
        if (step % 3 == 2) arrays.remove_twist(other_cup);
        if (step % 32 == 31) arrays.remove_twist(cup);
        if (step % 5 == 0) arrays.add_body(spare);
        if (step % 5 == 1 && step > 5) arrays.remove_body(spare);
        if (step % 1000 == 0) std::this_thread::yield();
    }
    done = true;
    for (std::thread& reader : readers) reader.join();
    CHECK(failures == 0);
    CHECK(arrays.defects().empty());
}
