#include <doctest/doctest.h>

#include <cmath>
#include <thread>

#include "support/scenes.hpp"
#include "tmkit/path_search.hpp"
#include "tmkit/random.hpp"

using namespace tmkit;
using namespace tmkit::test;

namespace {

// A point robot on two slides, x and y in -1 .. 1, and a wall across the middle with a gap at one
// end.
EditableScene room(bool with_gap = true) {
    EditableScene scene = with_frame(world_only(), "x", "world", {}, {},
                                     joint_of_type(JointType::prismatic, {1, 0, 0}, -1, 1));
    scene = with_frame(scene, "robot", "x", {}, {attached(ShapeKind::sphere, {0.05})},
                       joint_of_type(JointType::prismatic, {0, 1, 0}, -1, 1));
    const double length = with_gap ? 1.7 : 2.4;
    return with_box(scene, "wall", {0.1, length, 0.5}, {0.0, with_gap ? -0.25 : 0.0, 0.0});
}

const std::vector<double> left{0.7, 1.2, 0.0, -0.5, 0.0, 0.6, 0.0},
    right{-0.7, 1.2, 0.0, -0.5, 0.0, 0.6, 0.0};

// A round mesh about z with 24 sides.
AttachedShape drum(double radius, double length) {
    std::vector<double> vertices;
    std::vector<std::int32_t> faces;
    constexpr std::int32_t sides = 24;
    for (std::int32_t i = 0; i < sides; ++i) {
        const double angle = 2.0 * pi * i / sides;
        for (const double z : {-0.5 * length, 0.5 * length})
            vertices.insert(vertices.end(),
                            {radius * std::cos(angle), radius * std::sin(angle), z});
        const std::int32_t a = 2 * i, b = 2 * ((i + 1) % sides);
        faces.insert(faces.end(), {a, b, a + 1, b, b + 1, a + 1, 0, b, a, 1, a + 1, b + 1});
    }
    AttachedShape result;
    result.shape = Shape::mesh(vertices, faces, "");
    return result;
}

// A wrist of three drums, each of which turns near the one before the last, beside a post.
EditableScene wrist() {
    EditableScene scene = with_frame(world_only(), "first", "world", {}, {drum(0.06, 0.2)},
                                     joint_of_type(JointType::revolute, {0, 0, 1}, -3, 3));
    scene = with_frame(scene, "second", "first", {{0.0, 0.0, 0.165}, {0.0, 0.0, 0.0, 1.0}},
                       {drum(0.05, 0.12)}, joint_of_type(JointType::revolute, {0, 1, 0}, -3, 3));
    scene = with_frame(scene, "third", "second", {{0.08, 0.0, 0.0}, {0.0, 0.0, 0.0, 1.0}},
                       {drum(0.025, 0.1)}, joint_of_type(JointType::revolute, {0, 0, 1}, -3, 3));
    return with_box(scene.allow_collision("first", "second", "adjacent")
                        .allow_collision("second", "third", "adjacent"),
                    "post", {0.04, 0.04, 0.6}, {0.13, 0.0, 0.1});
}

}  // namespace

TEST_CASE("a straight motion that is free is the path, and needs no iteration") {
    const CollisionWorld world(room(), {});
    const PathResult result = search_path(world, {{0, 1}, {-0.5, 0.0}, {{-0.5, 0.8}}}, {});
    REQUIRE(result.status == PathStatus::solved);
    CHECK(result.path == Configurations{{-0.5, 0.0}, {-0.5, 0.8}});
    CHECK(result.iterations == 0);
    CHECK(result.length == doctest::Approx(0.8));
}

TEST_CASE(
    "a path around a wall starts and ends right, keeps the limits, is free and passes the "
    "recheck") {
    const EditableScene scene = arm_among_boxes();
    const CollisionWorld world(scene, with_margin(0.002)), plain(scene, {});
    const std::vector<std::int32_t> entries = all_entries(scene);
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        PathSettings settings;
        settings.seed = seed;
        const PathResult result = search_path(world, {entries, left, {right}}, settings);
        REQUIRE(result.status == PathStatus::solved);
        CHECK(result.path.front() == left);
        CHECK(result.path.back() == right);
        CHECK(result.goal_index == 0);
        CHECK(result.blocking.front().count > 0);
        for (const std::vector<double>& q : result.path) {
            CHECK(find_out_of_limits(scene.entry_limits(), entries, q.data()) == -1);
            CHECK_FALSE(world.in_collision(q.data()));
        }
        for (std::size_t i = 0; i + 1 < result.path.size(); ++i)
            CHECK(plain.edge_free(result.path[i].data(), result.path[i + 1].data(), 0.003));
        const RecheckResult check =
            recheck_path(plain, result.path, {0.003, number(scene, "tip"), 0.001});
        CHECK(check.status == RecheckStatus::ok);
        CHECK(check.segment == -1);
    }
}

TEST_CASE(
    "the same seed gives the same path from many threads at once, another seed another path") {
    const EditableScene scene = arm_among_boxes();
    const CollisionWorld world(scene, {});
    const std::vector<std::int32_t> entries = all_entries(scene);
    std::vector<PathResult> results(4);
    std::vector<std::thread> threads;
    for (PathResult& result : results)
        threads.emplace_back([&] {
            PathSettings settings;
            settings.seed = 5;
            result = search_path(world, {entries, left, {right}}, settings);
        });
    for (std::thread& thread : threads) thread.join();
    REQUIRE(results.front().status == PathStatus::solved);
    for (const PathResult& result : results) {
        CHECK(result.path == results.front().path);
        CHECK(result.checks == results.front().checks);
    }
    PathSettings other;
    other.seed = 6;
    CHECK(search_path(world, {entries, left, {right}}, other).path != results.front().path);
}

TEST_CASE("shortening never lengthens") {
    const EditableScene scene = arm_among_boxes();
    const CollisionWorld world(scene, {});
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        PathSettings settings;
        settings.seed = seed;
        const double shortened =
            search_path(world, {all_entries(scene), left, {right}}, settings).length;
        settings.shortcut_iterations = 0;
        CHECK(shortened <=
              search_path(world, {all_entries(scene), left, {right}}, settings).length + 1e-12);
    }
}

TEST_CASE("each failure has its own status and names its cause") {
    const EditableScene scene = room();
    const CollisionWorld world(scene, {});
    const FramePair hit = pair_of(scene, "robot", "wall");
    PathResult result = search_path(world, {{0, 1}, {0.0, 0.0}, {{0.5, 0.0}}}, {});
    CHECK(result.status == PathStatus::start_in_collision);
    CHECK(result.pair == hit);
    result = search_path(world, {{0, 1}, {0.5, 0.0}, {{0.0, 0.0}, {3.0, 0.0}}}, {});
    CHECK(result.status == PathStatus::goal_in_collision);
    CHECK(result.pair == hit);
    result = search_path(world, {{0, 1}, {1.5, 0.0}, {{0.5, 0.0}}}, {});
    CHECK(result.status == PathStatus::start_out_of_limits);
    CHECK(result.joint == 0);
    result = search_path(world, {{0, 1}, {0.5, 0.0}, {{0.5, -2.0}}}, {});
    CHECK(result.status == PathStatus::goal_out_of_limits);
    CHECK(result.joint == 1);

    const CollisionWorld closed(room(false), {});
    PathSettings settings;
    settings.max_iterations = 200;
    result = search_path(closed, {{0, 1}, {-0.5, 0.0}, {{0.5, 0.0}}}, settings);
    CHECK(result.status == PathStatus::no_path);
    CHECK(result.iterations == 200);
    CHECK(result.path.empty());
    REQUIRE(result.blocking.size() == 1);
    CHECK(result.blocking.front().pair == hit);
    settings.max_iterations = 1000000000;
    settings.time_limit = 0.02;
    CHECK(search_path(closed, {{0, 1}, {-0.5, 0.0}, {{0.5, 0.0}}}, settings).status ==
          PathStatus::time_limit);
    settings.time_limit = std::numeric_limits<double>::infinity();
    int asked = 0;
    result = search_path(closed, {{0, 1}, {-0.5, 0.0}, {{0.5, 0.0}}}, settings,
                         [&] { return ++asked == 3; });
    CHECK(result.status == PathStatus::interrupted);
}

TEST_CASE("of several goals, a free and reachable one is returned") {
    const CollisionWorld world(room(), {});
    const PathResult result = search_path(
        world, {{0, 1}, {-0.5, 0.0}, {{0.0, 0.0}, {5.0, 0.0}, {0.5, 0.0}, {-0.5, 0.3}}}, {});
    REQUIRE(result.status == PathStatus::solved);
    CHECK(result.goal_index == 3);
}

TEST_CASE("motions that are proved free are free at every sample, for all shapes and margins") {
    const EditableScene scene = arm_among_boxes();
    Random random(3, 0);
    int proved = 0, free = 0, sampled = 0;
    for (const double margin : {0.0, 0.01, -0.005}) {
        const CollisionWorld world(scene, with_margin(margin));
        const std::vector<std::int32_t> entries = all_entries(scene);
        const CollisionView view(world, entries, left.data());
        CollisionView::Scratch scratch = view.scratch();
        for (int i = 0; i < 300; ++i) {
            std::vector<double> a = left, b = left;
            for (const std::int32_t entry : entries) {
                a[entry] = random.uniform(-1.5, 1.5);
                b[entry] = a[entry] + random.uniform(-0.5, 0.5);
            }
            if (view.find_collision(a.data(), scratch) || view.find_collision(b.data(), scratch))
                continue;
            std::int64_t checks = 0;
            const bool is_free = world.edge_free(a.data(), b.data(), 0.001);
            const bool is_proved = !view.find_unproved(a.data(), b.data(), scratch, checks);
            CHECK((is_free || !is_proved));
            const bool is_sampled_free =
                !view.find_unproved(a.data(), b.data(), scratch, checks, 0.02);
            CHECK((is_sampled_free || !is_proved));
            sampled += is_sampled_free;
            proved += is_proved;
            free += is_free;
        }
    }
    CHECK(proved > 100);
    CHECK(free - proved <= free / 50);  // the remainder passes within micrometres
    CHECK(sampled >= free);
    CHECK(sampled - free <= free / 20);
}

TEST_CASE("motions of meshes that are proved free are free at every sample") {
    const EditableScene scene = wrist();
    const CollisionWorld world(scene, {});
    const std::vector<double> zero(3, 0.0);
    const CollisionView view(world, all_entries(scene), zero.data());
    CollisionView::Scratch scratch = view.scratch();
    Random random(5, 0);
    int proved = 0, free = 0, blocked = 0;
    for (int i = 0; i < 3000; ++i) {
        const std::vector<double> a = random_configuration(scene, random);
        std::vector<double> b = a;
        for (double& value : b) value += random.uniform(-1.5, 1.5);
        if (view.find_collision(a.data(), scratch) || view.find_collision(b.data(), scratch))
            continue;
        std::int64_t checks = 0;
        const bool is_free = world.edge_free(a.data(), b.data(), 0.0005);
        const bool is_proved = !view.find_unproved(a.data(), b.data(), scratch, checks);
        CHECK((is_free || !is_proved));
        proved += is_proved;
        free += is_free;
        blocked += !is_free;
    }
    CHECK(proved > 300);
    CHECK(blocked > 30);
    CHECK(free - proved <= free / 50);
}

TEST_CASE("a drum that turns a millimetre beside a wall of its carrier is proved at once") {
    EditableScene scene = with_frame(world_only(), "carrier", "world", {}, {},
                                     joint_of_type(JointType::revolute, {0, 1, 0}, -3, 3));
    scene = with_box(scene, "wall", {0.02, 0.3, 0.3}, {0.371, 0.0, 0.0}, "carrier");
    scene = with_frame(scene, "drum", "carrier", {{0.3, 0.0, 0.0}, {0.0, 0.0, 0.0, 1.0}},
                       {drum(0.06, 0.1)}, joint_of_type(JointType::revolute, {0, 0, 1}, -3, 3));
    const CollisionWorld world(scene, {});
    const std::vector<double> from{-0.5, -0.5}, to{0.5, 0.5};
    const CollisionView view(world, {0, 1}, from.data());
    CollisionView::Scratch scratch = view.scratch();
    std::int64_t checks = 0;
    CHECK_FALSE(view.find_unproved(from.data(), to.data(), scratch, checks));
    CHECK(checks == 8);
}

TEST_CASE(
    "a motion of a kilometre is proved free beside a rail a tenth of a millimetre away, and not "
    "into a post") {
    EditableScene scene =
        with_frame(world_only(), "cart", "world", {}, {attached(ShapeKind::box, {0.2, 0.2, 0.2})},
                   joint_of_type(JointType::prismatic, {1, 0, 0}, -500, 500));
    scene = with_box(scene, "rail", {1000.0, 0.1, 0.1}, {0.0, 0.1501, 0.0});
    const std::vector<double> from{-490.0}, to{490.0};
    std::int64_t checks = 0;
    const auto is_proved = [&](const EditableScene& in) {
        const CollisionWorld world(in, {});
        const CollisionView view(world, {0}, from.data());
        CollisionView::Scratch scratch = view.scratch();
        return !view.find_unproved(from.data(), to.data(), scratch, checks);
    };
    CHECK(is_proved(scene));
    CHECK_FALSE(is_proved(with_box(scene, "post", {0.01, 0.01, 0.01}, {321.0, 0.0, 0.0})));
}

TEST_CASE("a continuous joint takes the shorter motion to a goal several turns away") {
    EditableScene scene =
        with_frame(world_only(), "wheel", "world", {}, {attached(ShapeKind::sphere, {0.1})},
                   joint_of_type(JointType::continuous, {0, 0, 1}));
    const CollisionWorld world(scene, {});
    const PathResult result = search_path(world, {{0}, {0.5}, {{0.7 + 6 * pi}}}, {});
    REQUIRE(result.status == PathStatus::solved);
    CHECK(result.path.back()[0] == doctest::Approx(0.7));
}

TEST_CASE(
    "the recheck finds the first failure, bounds the travel of the tool, and checks the limits") {
    const EditableScene scene = room();
    const CollisionWorld world(scene, {});
    const Configurations path{{-0.5, 0.8}, {-0.5, 0.0}, {0.5, 0.0}, {0.5, 0.5}};
    RecheckResult result = recheck_path(world, path, {});
    CHECK(result.status == RecheckStatus::collision);
    CHECK(result.segment == 1);
    CHECK(result.fraction == doctest::Approx(0.4).epsilon(0.01));
    CHECK(result.pair == pair_of(scene, "robot", "wall"));
    CHECK(world.in_collision(result.q.data()));
    RecheckOptions fine;
    fine.tool_frame = number(scene, "robot");
    fine.tool_travel = 0.0005;
    const Configurations free{{-0.5, 0.8}, {-0.5, 0.0}};
    CHECK(recheck_path(world, free, fine).checks >= 1600);
    CHECK(recheck_path(world, free, {}).checks == 1 + 267);
    result = recheck_path(world, {{-0.5, 0.8}, {-1.5, 0.8}}, {});
    CHECK(result.status == RecheckStatus::out_of_limits);
    CHECK(result.joint == 0);
    CHECK(recheck_path(world, {}, {}).status == RecheckStatus::ok);
    CHECK(recheck_path(world, {{0.0, 0.0}}, {}).segment == 0);
}

TEST_CASE("a straight line keeps the tip on the line and ends at the target") {
    const EditableScene scene = with_arm(world_only());
    const InverseKinematics problem(scene, number(scene, "tip"), number(scene, "world"),
                                    all_entries(scene), left);
    const Pose from = scene.pose("tip", "world", left.data());
    const Pose target{from.translation + Vector3{0.05, -0.1, 0.12},
                      (from * Pose{{0, 0, 0}, quaternion_about({0, 0, 1}, 0.4)}).quat_xyzw};
    const StraightLineResult result = straight_line(problem, target, nullptr, {});
    REQUIRE(result.status == StraightLineStatus::solved);
    CHECK(result.fraction == 1.0);
    CHECK(result.path.front() == left);
    CHECK(scene.pose("tip", "world", result.path.back().data()).distance(target)[0] < 1e-5);
    const Vector3 along = (1.0 / norm(target.translation - from.translation)) *
                          (target.translation - from.translation);
    for (std::size_t i = 0; i + 1 < result.path.size(); ++i)
        for (const double f : {0.0, 0.3, 0.5, 0.8}) {
            std::vector<double> q = result.path[i];
            for (std::size_t k = 0; k < q.size(); ++k) q[k] += f * (result.path[i + 1][k] - q[k]);
            CHECK(norm(cross(along, scene.pose("tip", "world", q.data()).translation -
                                        from.translation)) < 0.0005);
        }
}

TEST_CASE("a failed straight line has its fraction and cause") {
    const EditableScene scene = arm_among_boxes();
    const CollisionWorld world(scene, {});
    const std::vector<std::int32_t> entries = all_entries(scene);
    const InverseKinematics problem(scene, number(scene, "tip"), number(scene, "world"), entries,
                                    left);
    const Pose from = scene.pose("tip", "world", left.data());
    const Pose across{{from.translation[0], -from.translation[1], from.translation[2]},
                      from.quat_xyzw};
    StraightLineSettings settings;
    settings.position_only = true;
    StraightLineResult result = straight_line(problem, across, &world, settings);
    CHECK(result.status == StraightLineStatus::collision);
    CHECK(result.pair);
    CHECK(result.fraction > 0.0);
    CHECK(result.fraction < 1.0);
    for (const std::vector<double>& q : result.path) CHECK_FALSE(world.in_collision(q.data()));
    const Pose far{from.translation + Vector3{0.0, 2.0, 0.0}, from.quat_xyzw};
    result = straight_line(problem, far, nullptr, settings);
    CHECK(result.status == StraightLineStatus::unreachable);
    CHECK(result.fraction < 0.8);
    CHECK(result.path.size() > 1);

    EditableScene slide = with_frame(world_only(), "slide", "world", {}, {},
                                     joint_of_type(JointType::prismatic, {1, 0, 0}, -1, 1));
    const InverseKinematics on_slide(slide, number(slide, "slide"), number(slide, "world"), {0},
                                     {0.0});
    result = straight_line(on_slide, {{1.5, 0, 0}, {0, 0, 0, 1}}, nullptr, {});
    CHECK(result.status == StraightLineStatus::joint_limit);
    CHECK(result.joint == 0);
    CHECK(result.fraction == doctest::Approx(2.0 / 3.0).epsilon(0.01));
    StraightLineSettings coarse;
    coarse.position_step = 0.5;
    result = straight_line(on_slide, {{0.9, 0, 0}, {0, 0, 0, 1}}, nullptr, coarse);
    CHECK(result.status == StraightLineStatus::joint_jump);
}
