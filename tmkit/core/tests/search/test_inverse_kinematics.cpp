#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/scenes.hpp"
#include "tmkit/inverse_kinematics.hpp"

using namespace tmkit;
using namespace tmkit::test;

namespace {

Pose pose_at(const EditableScene& scene, const std::string& frame, const std::string& reference,
             const std::vector<double>& q) {
    return scene.pose(frame, reference, q.data());
}

InverseKinematics problem(const EditableScene& scene, const std::string& tip,
                          const std::string& reference, const std::vector<std::int32_t>& entries,
                          const std::vector<double>& q) {
    return InverseKinematics(scene, number(scene, tip), number(scene, reference), entries, q);
}

// Two revolute joints of 0.5 m and 0.3 m in a plane.
EditableScene planar_arm(double lower = -3.0, double upper = 3.0) {
    EditableScene scene = with_frame(world_only(), "shoulder", "world", {}, {},
                                     joint_of_type(JointType::revolute, {0, 0, 1}, lower, upper));
    scene = with_frame(scene, "elbow", "shoulder", {{0.5, 0, 0}, {0, 0, 0, 1}}, {},
                       joint_of_type(JointType::revolute, {0, 0, 1}, lower, upper));
    return with_frame(scene, "tip", "elbow", {{0.3, 0, 0}, {0, 0, 0, 1}});
}

}  // namespace

TEST_CASE("the folded chain has the poses and the Jacobian of the scene") {
    EditableScene scene = with_arm(world_only(), "a_");
    scene = with_arm(scene, "b_", {{0.5, 0.2, 0.0}, quaternion_about({0, 1, 0}, 0.4)});
    Random random(3);
    const std::vector<std::int32_t> entries = all_entries(scene);
    const std::string frames[] = {"a_tip", "b_tip", "a_j3", "b_j0", "world"};
    for (int trial = 0; trial < 20; ++trial) {
        const std::vector<double> q = random_configuration(scene, random);
        for (const std::string& tip : frames)
            for (const std::string& reference : frames) {
                const Chain chain(scene.layout(), number(scene, tip), number(scene, reference),
                                  entries, q.data());
                const auto distance =
                    chain.pose(q.data()).distance(pose_at(scene, tip, reference, q));
                CHECK(distance[0] < 1e-9);
                CHECK(distance[1] < 1e-7);
                std::vector<Vector6> columns(entries.size());
                Matrix3 rotation;
                Vector3 translation;
                chain.jacobian(q.data(), rotation, translation, columns.data());
                for (std::size_t i = 0; i < entries.size(); ++i) {
                    std::vector<double> moved = q;
                    moved[i] += 1e-6;
                    const Pose before = chain.pose(q.data()), after = chain.pose(moved.data());
                    const Vector3 velocity = 1e6 * (after.translation - before.translation);
                    const Vector6 turned = (after * before.inverse()).log();
                    for (int k = 0; k < 3; ++k) {
                        CHECK(std::abs(velocity[k] - columns[i][k]) < 1e-4);
                        CHECK(std::abs(1e6 * turned[3 + k] - columns[i][3 + k]) < 1e-4);
                    }
                }
            }
    }
}

TEST_CASE("every reachable pose is found, within tolerance and limits") {
    const EditableScene scene = with_arm(world_only());
    const std::vector<std::int32_t> entries = all_entries(scene);
    const std::vector<double> home(7, 0.4);
    const InverseKinematics ik = problem(scene, "tip", "world", entries, home);
    Random random(1);
    for (int i = 0; i < 300; ++i) {
        const Pose target = pose_at(scene, "tip", "world", random_configuration(scene, random));
        IkSettings settings;
        settings.seed = static_cast<std::uint64_t>(i);
        settings.restarts = 50;
        const InverseKinematicsResult result = ik.solve(target, settings);
        REQUIRE(result.status == InverseKinematicsStatus::solved);
        const auto distance = pose_at(scene, "tip", "world", result.q).distance(target);
        CHECK(distance[0] <= 1.01e-5);
        CHECK(distance[1] <= 1.02e-5);
        CHECK(result.position_error <= 1e-5);
        for (const double value : result.q) CHECK(std::abs(value) <= 2.6);
    }
}

TEST_CASE("only the given joints move, and the same seed gives the same bits") {
    EditableScene scene = with_arm(world_only());
    const std::vector<double> home{0.1, 0.5, -0.2, 1.0, 0.3, 0.6, 0.0};
    Random random(2);
    std::vector<double> goal = home;
    goal[1] = 0.9;
    goal[3] = 0.4;
    goal[5] = 1.1;
    const InverseKinematics ik = problem(scene, "tip", "world", {1, 3, 5}, home);
    const Pose target = pose_at(scene, "tip", "world", goal);
    const InverseKinematicsResult first = ik.solve(target, {}), second = ik.solve(target, {});
    REQUIRE(first.status == InverseKinematicsStatus::solved);
    CHECK(first.q == second.q);
    for (const int fixed : {0, 2, 4, 6}) CHECK(first.q[fixed] == home[fixed]);
}

TEST_CASE("both arms together reach a target relative to a moving reference") {
    EditableScene scene = with_arm(world_only(), "a_");
    scene = with_arm(scene, "b_", {{0.6, 0.0, 0.0}, {0.0, 0.0, 0.0, 1.0}});
    const std::vector<double> home(14, 0.3);
    const Pose target{{0.0, 0.0, 0.1}, quaternion_about({1, 0, 0}, pi)};
    IkSettings settings;
    settings.restarts = 100;
    const InverseKinematicsResult result =
        problem(scene, "b_tip", "a_tip", all_entries(scene), home).solve(target, settings);
    REQUIRE(result.status == InverseKinematicsStatus::solved);
    const auto distance = pose_at(scene, "b_tip", "a_tip", result.q).distance(target);
    CHECK(distance[0] < 1.1e-5);
    CHECK(distance[1] < 1.1e-5);
}

TEST_CASE("position alone can be reached if position and rotation cannot") {
    const EditableScene scene = planar_arm();
    const std::vector<double> home{0.1, 0.2};
    const InverseKinematics ik = problem(scene, "tip", "world", {0, 1}, home);
    const Pose target{{0.4, 0.4, 0.0}, quaternion_about({1, 0, 0}, 1.0)};
    IkSettings settings;
    CHECK(ik.solve(target, settings).status == InverseKinematicsStatus::not_found);
    settings.rotation_tolerance = std::numeric_limits<double>::infinity();
    const InverseKinematicsResult result = ik.solve(target, settings);
    REQUIRE(result.status == InverseKinematicsStatus::solved);
    CHECK(norm(pose_at(scene, "tip", "world", result.q).translation - target.translation) < 1.1e-5);
}

TEST_CASE(
    "a target beyond the length of the links is out of reach, one within it is not found at "
    "worst") {
    const InverseKinematics ik = problem(planar_arm(), "tip", "world", {0, 1}, {0.0, 0.1});
    IkSettings settings;
    settings.rotation_tolerance = std::numeric_limits<double>::infinity();
    CHECK(ik.solve({{0.81, 0.0, 0.0}, {0, 0, 0, 1}}, settings).status ==
          InverseKinematicsStatus::out_of_reach);
    CHECK(ik.solve({{0.79, 0.0, 0.0}, {0, 0, 0, 1}}, settings).status ==
          InverseKinematicsStatus::solved);
    CHECK(ik.solve({{0.1, 0.0, 0.0}, {0, 0, 0, 1}}, settings).status ==
          InverseKinematicsStatus::not_found);
}

TEST_CASE("the angle of a continuous joint is shifted to the value nearest to the start") {
    EditableScene scene = with_frame(world_only(), "wheel", "world", {}, {},
                                     joint_of_type(JointType::continuous, {0, 0, 1}));
    scene = with_frame(scene, "rim", "wheel", {{0.2, 0, 0}, {0, 0, 0, 1}});
    for (const double start : {-9.0, -3.1, 0.0, 3.1, 12.0})
        for (const double angle : {-3.0, -1.0, 0.5, 3.1}) {
            const Pose target = pose_at(scene, "rim", "world", {angle});
            const InverseKinematicsResult result =
                problem(scene, "rim", "world", {0}, {start}).solve(target, {});
            REQUIRE(result.status == InverseKinematicsStatus::solved);
            CHECK(std::abs(result.q[0] - start) <= pi + 1e-4);
        }
}

TEST_CASE("a mimic joint follows in the chain") {
    EditableScene scene = with_frame(world_only(), "lead", "world", {}, {},
                                     joint_of_type(JointType::revolute, {0, 0, 1}, -2, 2));
    Joint follower = joint_of_type(JointType::revolute, {0, 0, 1}, -4, 4);
    follower.mimic = "lead";
    follower.mimic_multiplier = -0.5;
    follower.mimic_offset = 0.2;
    scene = with_frame(scene, "follow", "lead", {{0.4, 0, 0}, {0, 0, 0, 1}}, {}, follower);
    scene = with_frame(scene, "tip", "follow", {{0.4, 0, 0}, {0, 0, 0, 1}});
    const Pose target = pose_at(scene, "tip", "world", {1.3});
    const InverseKinematicsResult result =
        problem(scene, "tip", "world", {0}, {0.0}).solve(target, {});
    REQUIRE(result.status == InverseKinematicsStatus::solved);
    CHECK(result.q[0] == doctest::Approx(1.3).epsilon(1e-4));
    CHECK_THROWS_WITH_AS(joint_entries(scene, {"follow"}),
                         doctest::Contains("follows another joint"), Error);
    CHECK_THROWS_WITH_AS(joint_entries(scene, {"lead", "lead"}), doctest::Contains("named twice"),
                         Error);
    CHECK_THROWS_WITH_AS(joint_entries(scene, {"laed"}), doctest::Contains("did you mean 'lead'"),
                         Error);
}

TEST_CASE("a start outside the limits is rejected by name") {
    CHECK_THROWS_WITH_AS(problem(planar_arm(-1, 1), "tip", "world", {0, 1}, {0.0, 1.2}),
                         doctest::Contains("joint 'elbow' is at 1.2"), Error);
}

TEST_CASE("several solutions differ, are sorted by distance, and are free when a world is given") {
    EditableScene scene = with_arm(world_only());
    scene = with_box(scene, "post", {0.1, 0.1, 0.4}, {0.25, 0.0, 0.2});
    const std::vector<double> home(7, 0.4);
    const Pose target = pose_at(scene, "tip", "world", {0.0, 0.9, 0.0, -1.0, 0.0, 1.2, 0.0});
    const CollisionWorld world(scene, {});
    const InverseKinematics ik = problem(scene, "tip", "world", all_entries(scene), home);
    IkSettings settings;
    settings.restarts = 200;
    const InverseKinematicsSolutions all = solve_all(ik, target, settings, nullptr);
    const InverseKinematicsSolutions free = solve_all(ik, target, settings, &world);
    REQUIRE(all.configurations.size() == 8);
    REQUIRE(free.configurations.size() > 0);
    CHECK(free.in_collision > 0);
    CHECK(free.blocking.front().count > 0);
    double last = 0.0;
    for (std::size_t i = 0; i < all.configurations.size(); ++i) {
        double from_home = 0.0;
        for (std::size_t k = 0; k < 7; ++k)
            from_home = std::max(from_home, std::abs(all.configurations[i][k] - home[k]));
        CHECK(from_home >= last);
        last = from_home;
        for (std::size_t j = 0; j < i; ++j) {
            double apart = 0.0;
            for (std::size_t k = 0; k < 7; ++k)
                apart =
                    std::max(apart, std::abs(all.configurations[i][k] - all.configurations[j][k]));
            CHECK(apart > 0.1);
        }
    }
    for (const std::vector<double>& q : free.configurations) {
        CHECK_FALSE(world.in_collision(q.data()));
        CHECK(pose_at(scene, "tip", "world", q).distance(target)[0] < 1.1e-5);
    }
}
