#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "support/scenes.hpp"
#include "tmkit/collision_world.hpp"

using namespace tmkit;
using namespace tmkit::test;

namespace {

// A cube of 10 cm on a slide along x above a plate whose top is at z = 0; at slide 0 the gap is 5
// cm.
EditableScene cube_on_slide() {
    EditableScene scene = with_box(world_only(), "plate", {1.0, 1.0, 0.1}, {0.0, 0.0, -0.05});
    scene = with_frame(scene, "slide", "world", {{0.0, 0.0, 0.1}, {0.0, 0.0, 0.0, 1.0}},
                       {attached(ShapeKind::box, {0.1, 0.1, 0.1})},
                       joint_of_type(JointType::prismatic, {0, 0, -1}, -1.0, 1.0));
    return scene;
}

Ref<const Shape> cube_mesh(double size, const std::string& source = "") {
    std::vector<double> vertices;
    for (int i = 0; i < 8; ++i)
        for (int k = 0; k < 3; ++k) vertices.push_back(((i >> k) & 1 ? 0.5 : -0.5) * size);
    const std::vector<std::int32_t> faces{0, 2, 1, 1, 2, 3, 4, 5, 6, 5, 7, 6, 0, 1, 4, 1, 5, 4,
                                          2, 6, 3, 3, 6, 7, 0, 4, 2, 2, 4, 6, 1, 3, 5, 3, 7, 5};
    return Shape::mesh(vertices, faces, source);
}

}  // namespace

TEST_CASE("the distance of two boxes is their gap, and negative when they overlap") {
    const CollisionWorld world(cube_on_slide(), {});
    const double apart[] = {0.0}, inside[] = {0.06};
    CHECK(world.nearest(apart)->distance == doctest::Approx(0.05).epsilon(1e-6));
    CHECK_FALSE(world.in_collision(apart));
    CHECK(world.contacts(apart).empty());
    REQUIRE(world.contacts(inside).size() == 1);
    const Contact contact = world.contacts(inside).front();
    CHECK(contact.distance == doctest::Approx(-0.01).epsilon(1e-6));
    CHECK(world.frame_name(contact.frame_a) == "plate");
    CHECK(world.frame_name(contact.frame_b) == "slide");
    CHECK(contact.normal[2] == doctest::Approx(1.0));
    CHECK(contact.point[2] == doctest::Approx(-0.005));
}

TEST_CASE(
    "a pair is in contact when its distance is at most its margin, for margins of either sign") {
    for (const double margin : {0.0, 0.001, 0.02, 0.2}) {
        const CollisionWorld world(cube_on_slide(), with_margin(margin));
        for (const double above : {1e-4, 0.01, 0.3}) {
            const double just_in[] = {0.05 - margin + 1e-5}, out[] = {0.05 - margin - above};
            CHECK(world.in_collision(just_in));
            CHECK_FALSE(world.in_collision(out));
        }
    }
    CollisionOptions options = with_margin(0.01);
    options.pair_margins = {{"slide", "plate", -0.002}};
    const CollisionWorld world(cube_on_slide(), options);
    const double allowed[] = {0.0519}, deep[] = {0.0521};
    CHECK_FALSE(world.in_collision(allowed));
    CHECK(world.in_collision(deep));
    options.pair_margins.front().margin = -std::numeric_limits<double>::infinity();
    const CollisionWorld never(cube_on_slide(), options);
    CHECK_FALSE(never.in_collision(deep));
    CHECK(never.pairs().empty());
}

TEST_CASE("pairs on one body, allowed pairs and rigidly joined pairs are not checked") {
    EditableScene scene = with_box(world_only(), "table", {1.0, 1.0, 0.1}, {0.0, 0.0, 0.0});
    scene = with_box(scene, "leg", {0.1, 0.1, 0.1}, {0.0, 0.0, 0.0}, "table");
    CHECK_FALSE(CollisionWorld(scene, {}).in_collision(nullptr));
    CollisionOptions movable;
    movable.movable = {"leg"};
    CHECK(CollisionWorld(scene, movable).in_collision(nullptr));
    CHECK_FALSE(CollisionWorld(scene.allow_collision("leg", "table", "touching"), movable)
                    .in_collision(nullptr));
    scene = scene.set_joint("leg", joint_of_type(JointType::free, {0, 0, 1}));
    CHECK(CollisionWorld(scene, {}).in_collision(nullptr));

    FrameSpecification on_body;
    on_body.name = "handle";
    on_body.parent = "table";
    on_body.body = "table";
    on_body.shapes = {attached(ShapeKind::sphere, {0.2})};
    EditableScene one_body =
        with_box(world_only(), "table", {1.0, 1.0, 0.1}, {0.0, 0.0, 0.0}).add_frame(on_body);
    CollisionOptions cut;
    cut.movable = {"handle"};
    CHECK_FALSE(CollisionWorld(one_body, cut).in_collision(nullptr));
}

TEST_CASE(
    "two objects on a table, both movable, are checked against each other and against the table") {
    EditableScene scene = with_box(world_only(), "table", {1.0, 1.0, 0.1}, {0.0, 0.0, -0.05});
    scene = with_box(scene, "a", {0.1, 0.1, 0.1}, {0.0, 0.0, 0.1}, "table");
    scene = with_box(scene, "b", {0.1, 0.1, 0.1}, {0.05, 0.0, 0.15}, "table");
    CollisionOptions options;
    options.movable = {"a", "b"};
    const CollisionWorld world(scene, options);
    CHECK(world.pairs().size() == 3);
    const std::vector<Contact> contacts = world.contacts(nullptr);
    std::size_t a_with_b = 0;
    for (const Contact& contact : contacts)
        a_with_b += FramePair{contact.frame_a, contact.frame_b} == pair_of(scene, "a", "b");
    CHECK(a_with_b == 1);
    CHECK(world.find_collision(nullptr) ==
          FramePair{contacts.front().frame_a, contacts.front().frame_b});
}

TEST_CASE("a held object is checked against the rest of the hand once, at any configuration") {
    EditableScene scene = with_arm(world_only());
    scene = with_frame(scene, "palm", "tip", {}, {attached(ShapeKind::box, {0.1, 0.1, 0.02})});
    EditableScene held = with_frame(scene, "cup", "palm", {{0.0, 0.0, 0.03}, {0.0, 0.0, 0.0, 1.0}},
                                    {attached(ShapeKind::cylinder, {0.02, 0.1})});
    CollisionOptions options;
    options.movable = {"cup"};
    const CollisionWorld world(held, options);
    Random random(1);
    for (int i = 0; i < 20; ++i) {
        const std::vector<double> q = random_configuration(held, random);
        CHECK(world.in_collision(q.data()));
        bool found = false;
        for (const Contact& contact : world.contacts(q.data()))
            found = found ||
                    FramePair{contact.frame_a, contact.frame_b} == pair_of(held, "palm", "cup");
        CHECK(found);
    }
}

TEST_CASE("views of moving joints together with the start agree with the whole world") {
    EditableScene scene = with_arm(world_only());
    scene = with_arm(scene, "other_", {{0.6, 0.0, 0.0}, {0.0, 0.0, 0.0, 1.0}});
    for (int i = 0; i < 12; ++i)
        scene = with_box(scene, "box" + std::to_string(i), {0.1, 0.1, 0.1},
                         {0.1 * i - 0.5, 0.35 - 0.05 * i, 0.3 + 0.02 * i});
    const CollisionWorld world(scene, with_margin(0.004));
    Random random(5);
    const std::vector<std::int32_t> entries{0, 2, 3, 5};
    int free_starts = 0;
    for (int trial = 0; trial < 2000 && free_starts < 5; ++trial) {
        std::vector<double> q = random_configuration(scene, random, 1.5);
        if (world.in_collision(q.data())) continue;
        ++free_starts;
        const CollisionView view(world, entries, q.data());
        CollisionView::Scratch scratch = view.scratch();
        for (int i = 0; i < 200; ++i) {
            for (const std::int32_t entry : entries) q[entry] = random.uniform(-2.6, 2.6);
            CHECK(static_cast<bool>(view.find_collision(q.data(), scratch)) ==
                  world.in_collision(q.data()));
        }
    }
    CHECK(free_starts == 5);
}

TEST_CASE(
    "laws of contacts: consistent with the distance, monotone in the margin, unit normals, ordered "
    "pairs") {
    EditableScene scene = with_arm(world_only());
    for (int i = 0; i < 8; ++i)
        scene = with_box(scene, "box" + std::to_string(i), {0.12, 0.12, 0.12},
                         {0.4 * std::cos(i), 0.4 * std::sin(i), 0.1 * i});
    const CollisionWorld none(scene, {}), small(scene, with_margin(0.01)),
        large(scene, with_margin(0.05));
    Random random(2);
    int collisions = 0;
    for (int i = 0; i < 300; ++i) {
        const std::vector<double> q = random_configuration(scene, random);
        const double distance = none.nearest(q.data())->distance;
        collisions += none.in_collision(q.data());
        CHECK(none.in_collision(q.data()) == (distance <= 1e-6));
        if (std::abs(distance - 0.01) > 1e-6)
            CHECK(small.in_collision(q.data()) == (distance <= 0.01));
        CHECK(none.contacts(q.data()).size() <= small.contacts(q.data()).size());
        CHECK(small.contacts(q.data()).size() <= large.contacts(q.data()).size());
        for (const Contact& contact : large.contacts(q.data())) {
            CHECK(contact.frame_a < contact.frame_b);
            CHECK(contact.distance <= 0.05);
            CHECK(contact.distance >= distance - 1e-6);
            CHECK(norm(contact.normal) == doctest::Approx(1.0).epsilon(1e-6));
        }
    }
    CHECK(collisions > 20);
}

TEST_CASE("the hull and the triangles of a convex mesh agree with the box") {
    Random random(9);
    for (int i = 0; i < 200; ++i) {
        const Vector3 at{random.uniform(-0.15, 0.15), random.uniform(-0.15, 0.15),
                         random.uniform(-0.15, 0.15)};
        const Vector3 axis{random.uniform(-1, 1), random.uniform(-1, 1), random.uniform(0.1, 1)};
        const Pose pose{at, quaternion_about((1.0 / norm(axis)) * axis, random.uniform(-3, 3))};
        double distances[3];
        bool hits[3];
        for (int kind = 0; kind < 3; ++kind) {
            AttachedShape shape = attached(ShapeKind::box, {0.1, 0.1, 0.1});
            if (kind > 0) shape.shape = cube_mesh(0.1);
            EditableScene scene = with_frame(world_only(), "a", "world", {}, {shape},
                                             joint_of_type(JointType::free, {0, 0, 1}));
            scene = with_frame(scene, "b", "world", pose, {shape},
                               joint_of_type(JointType::free, {0, 0, 1}));
            CollisionOptions options;
            options.level = kind == 2 ? CollisionLevel::exact : CollisionLevel::hull;
            const CollisionWorld world(scene, options);
            distances[kind] = world.nearest(nullptr)->distance;
            hits[kind] = world.in_collision(nullptr);
        }
        CHECK(hits[0] == hits[1]);
        CHECK(hits[0] == hits[2]);
        CHECK(distances[0] == doctest::Approx(distances[1]).epsilon(1e-4));
        if (!hits[0]) CHECK(distances[0] == doctest::Approx(distances[2]).epsilon(1e-4));
    }
}

TEST_CASE(
    "an edge that is free has free samples, and the first collision of one that is not lies on its "
    "boundary") {
    EditableScene scene = with_arm(world_only());
    for (int i = 0; i < 6; ++i)
        scene = with_box(scene, "box" + std::to_string(i), {0.15, 0.15, 0.15},
                         {0.5 * std::cos(i), 0.5 * std::sin(i), 0.15 * i});
    const CollisionWorld world(scene, {});
    Random random(4);
    int free_edges = 0, blocked = 0;
    for (int i = 0; i < 200; ++i) {
        const std::vector<double> q0 = random_configuration(scene, random, 1.0),
                                  q1 = random_configuration(scene, random, 1.0);
        const auto collision = world.find_edge_collision(q0.data(), q1.data(), 0.02);
        CHECK(world.edge_free(q0.data(), q1.data(), 0.02) == !collision);
        if (collision) {
            ++blocked;
            CHECK(world.in_collision(collision->q.data()));
            if (collision->fraction > 0.0) CHECK_FALSE(world.in_collision(q0.data()));
            continue;
        }
        ++free_edges;
        const std::int64_t steps = edge_steps(q0.data(), q1.data(), q0.size(), 0.02);
        for (std::int64_t k = 0; k <= steps; ++k) {
            std::vector<double> q(q0);
            for (std::size_t j = 0; j < q.size(); ++j)
                q[j] += static_cast<double>(k) / steps * (q1[j] - q0[j]);
            CHECK_FALSE(world.in_collision(q.data()));
        }
    }
    CHECK(free_edges > 10);
    CHECK(blocked > 10);
}

TEST_CASE("bisection visits each inner step once, the middle first") {
    for (std::int64_t steps = 1; steps < 70; ++steps) {
        std::vector<int> visits(steps + 1, 0);
        std::int64_t first = 0;
        CHECK(visit_bisecting(steps, [&](std::int64_t k) {
            if (first == 0) first = k;
            ++visits[k];
            return true;
        }));
        for (std::int64_t k = 1; k < steps; ++k) CHECK(visits[k] == 1);
        CHECK(visits[0] + visits[steps] == 0);
        CHECK(first == steps / 2);
    }
    CHECK_FALSE(visit_bisecting(8, [](std::int64_t k) { return k != 6; }));
}

TEST_CASE("many threads get the results of one thread") {
    EditableScene scene = with_arm(world_only());
    for (int i = 0; i < 6; ++i)
        scene = with_box(scene, "box" + std::to_string(i), {0.15, 0.15, 0.15},
                         {0.5 * std::cos(i), 0.5 * std::sin(i), 0.15 * i});
    const CollisionWorld world(scene, {});
    Random random(6);
    std::vector<std::vector<double>> qs;
    for (int i = 0; i < 500; ++i) qs.push_back(random_configuration(scene, random));
    std::vector<std::vector<char>> answers(4, std::vector<char>(qs.size()));
    std::vector<std::thread> threads;
    for (auto& answer : answers)
        threads.emplace_back([&] {
            for (std::size_t i = 0; i < qs.size(); ++i)
                answer[i] = world.in_collision(qs[i].data());
        });
    for (std::thread& thread : threads) thread.join();
    for (const auto& answer : answers) CHECK(answer == answers.front());
}

TEST_CASE("invalid arguments are rejected with a reason") {
    CollisionOptions unknown;
    unknown.movable = {"plat"};
    CHECK_THROWS_WITH_AS(CollisionWorld(cube_on_slide(), unknown),
                         doctest::Contains("did you mean 'plate'"), Error);
    CHECK_THROWS_WITH_AS(
        CollisionWorld(cube_on_slide(), with_margin(std::numeric_limits<double>::infinity())),
        doctest::Contains("must be a finite distance"), Error);
    CollisionOptions nan;
    nan.pair_margins = {{"plate", "slide", std::nan("")}};
    CHECK_THROWS_WITH_AS(CollisionWorld(cube_on_slide(), nan), doctest::Contains("must be finite"),
                         Error);
    AttachedShape flat;
    flat.shape = Shape::mesh({0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 1, 0}, {0, 1, 2, 1, 3, 2}, "sheet.obj");
    const EditableScene scene = with_frame(world_only(), "sheet", "world", {}, {flat});
    CHECK_THROWS_WITH_AS(CollisionWorld(scene, {}),
                         doctest::Contains("'sheet.obj' has no convex hull"), Error);
    CHECK_THROWS_WITH_AS(CollisionWorld(scene, {}),
                         doctest::Contains("'sheet.obj' has no convex hull"), Error);
    CollisionOptions exact;
    exact.level = CollisionLevel::exact;
    CHECK_FALSE(CollisionWorld(scene, exact).in_collision(nullptr));
}

TEST_CASE("an empty scene and a scene without shapes are free") {
    CHECK_FALSE(CollisionWorld(EditableScene(), {}).in_collision(nullptr));
    CHECK_FALSE(CollisionWorld(world_only(), {}).nearest(nullptr).has_value());
}
