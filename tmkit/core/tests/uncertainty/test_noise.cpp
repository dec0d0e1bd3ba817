// Covariances, noise sources and conditioning: under the sanitizers, and from several threads.
#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <thread>
#include <vector>

#include "support/counted.hpp"
#include "support/editable_scene.hpp"
#include "tmkit/random.hpp"
#include "tmkit/scene_arrays.hpp"
#include "tmkit/scene_edit.hpp"
#include "tmkit/scene_gaussian.hpp"
#include "tmkit/scene_relations.hpp"

using namespace tmkit;
using tmkit::test::EditableScene;

namespace {

Covariance some_covariance(Random& random, double scale, std::size_t rank = 6) {
    std::vector<Vector6> columns(rank);
    for (Vector6& column : columns)
        for (double& value : column) value = random.uniform(-scale, scale);
    return Covariance::of_columns(columns);
}

EditableScene binary_tree(std::size_t frames) {
    Random random(7);
    SceneEdit edit{EditableScene()};
    edit.add_root("f0");
    for (std::size_t i = 1; i < frames; ++i) {
        FrameSpecification frame;
        frame.name = "f" + std::to_string(i);
        frame.parent = "f" + std::to_string((i - 1) / 2);
        Vector6 xi;
        for (double& value : xi) value = random.uniform(-0.5, 0.5);
        frame.pose = Pose::exp(xi);
        frame.noise =
            EdgeNoise::of_covariance(some_covariance(random, 1e-3, 1 + i % 6), frame.name);
        edit.add_frame(frame);
    }
    return std::move(edit).take();
}

double distance(const Covariance& a, const Covariance& b) {
    const Matrix6 x = a.matrix(), y = b.matrix();
    double most = 0.0;
    for (std::size_t i = 0; i < 36; ++i) most = std::max(most, std::abs(x[i] - y[i]));
    return most;
}

Measurement look(const std::string& target, const std::string& reference, const Pose& pose,
                 double variance) {
    Measurement seen{Measurement::Kind::pose,     target, reference, pose, {}, 0.0, {},
                     std::vector<double>(36, 0.0)};
    for (std::size_t i = 0; i < 6; ++i) seen.covariance[7 * i] = variance;
    return seen;
}

}  // namespace

TEST_CASE("a root of a covariance squares to it and has its rank") {
    Random random(1);
    for (std::size_t rank = 0; rank <= 6; ++rank) {
        const Covariance covariance = some_covariance(random, 1.0, rank);
        const std::vector<Vector6> root = covariance.root();
        CHECK(root.size() == rank);
        CHECK(distance(Covariance::of_columns(root), covariance) < 1e-14);
    }
}

TEST_CASE("carrying up and down are inverse, and composition and inverse agree with them") {
    Random random(2);
    for (int i = 0; i < 50; ++i) {
        Vector6 xi;
        for (double& value : xi) value = random.uniform(-2.0, 2.0);
        const Pose pose = Pose::exp(xi);
        const Covariance covariance = some_covariance(random, 1.0);
        CHECK(distance(covariance.carry_up(pose).carry_down(pose), covariance) < 1e-12);
        const GaussianPose gaussian{pose, covariance};
        CHECK(distance(gaussian.inverse().inverse().covariance, covariance) < 1e-12);
        CHECK(distance((gaussian * gaussian.inverse()).covariance, [&] {
            Covariance twice = covariance.carry_up(pose);
            twice += covariance.carry_up(pose);
            return twice;
        }()) < 1e-10);
    }
}

TEST_CASE("reparenting keeps covariances and every map in order; the old version remains valid") {
    EditableScene scene = binary_tree(63);
    Random random(3);
    const EditableScene start = scene;
    const GaussianPose before = gaussian_pose(start, "f40", "f61", nullptr);
    for (int i = 0; i < 40; ++i) {
        const std::string a = "f" + std::to_string(1 + random.below(62)),
                          b = "f" + std::to_string(random.below(63));
        if (scene.is_ancestor(scene.record(a).id, scene.record(b).id)) continue;
        scene = scene.reparent_keeping_pose(a, b, nullptr);
        REQUIRE(scene.defects() == "");
    }
    CHECK(distance(gaussian_pose(scene, "f40", "f61", nullptr).covariance, before.covariance) <
          1e-12);
    CHECK(gaussian_pose(start, "f40", "f61", nullptr) == before);
}

TEST_CASE("conditioning moves towards the measurement, and the old version is unchanged") {
    const EditableScene scene = binary_tree(31);
    const Pose seen =
        scene.pose("f15", "f30", nullptr) * Pose::exp({1e-3, -1e-3, 5e-4, 1e-3, 0.0, -1e-3});
    SceneEdit edit(scene);
    const ConditionReport report = edit.condition(look("f15", "f30", seen, 1e-12), nullptr, {});
    CHECK(report.converged);
    CHECK(report.squared_mahalanobis > 0.0);
    CHECK(edit.scene().defects() == "");
    const auto [metres, radians] = edit.scene().pose("f15", "f30", nullptr).distance(seen);
    CHECK(metres < 1e-5);
    CHECK(radians < 1e-5);
    const Covariance after = gaussian_pose(edit.scene(), "f15", "f30", nullptr).covariance;
    CHECK(after.linear[0] <= 1e-12 * (1.0 + 1e-6));
    CHECK(scene.same_content(binary_tree(31)));
    for (int i = 0; i < 20; ++i)
        edit.condition(look("f" + std::to_string(1 + i), "f0",
                            edit.scene().pose("f" + std::to_string(1 + i), "f0", nullptr), 1e-6),
                       nullptr, {});
    CHECK(edit.scene().defects() == "");
}

TEST_CASE("a failed conditioning does not change the scene") {
    const EditableScene scene = binary_tree(7);
    SceneEdit edit(scene);
    Measurement wrong = look("f5", "f0", Pose{}, 1.0);
    wrong.covariance.pop_back();
    CHECK_THROWS_AS(edit.condition(wrong, nullptr, {}), Error);
    CHECK(edit.scene().same_version(scene));
}

TEST_CASE("arrays keep errors in place: the same bits as the scene, and nothing allocated") {
    Random random(3);
    EditableScene scene = binary_tree(15);
    SceneArrays arrays(scene);
    CHECK(arrays.freeze().same_content(scene));
    const auto both_at = [&](const char* target, const char* reference) {
        GaussianPose answer;
        CHECK(count_allocations([&] { answer = arrays.gaussian_pose(target, reference); }) == 0);
        CHECK(answer == gaussian_pose(scene, target, reference, nullptr));
    };
    both_at("f11", "f14");
    for (const auto& [frame, parent] :
         {std::pair{"f11", "f14"}, {"f14", "f9"}, {"f7", "f2"}, {"f11", "f8"}}) {
        CHECK(count_allocations(
                  [&] { arrays.reparent_keeping_pose(frame, parent, std::nullopt); }) == 0);
        scene = scene.reparent_keeping_pose(frame, parent, nullptr);
        both_at("f11", "f14");
        both_at("f7", "f0");
        both_at("f13", "f11");
    }
    CHECK(arrays.freeze().same_content(scene));
    arrays.reparent("f11", "f1", Pose{});
    CHECK(arrays.noise("f11") == nullptr);
    arrays.set_noise("f11", Ref<const EdgeNoise>(arrays.noise("f12")));
    CHECK(arrays.gaussian_pose("f11", "f1").covariance == arrays.noise("f12")->covariance);
    arrays.remove_frame("f11", true);
    CHECK(arrays.freeze().defects() == "");
    // The arrays have capacity for the sources of the scene: 2 and 3 columns here, on any edge, and
    // no sixth.
    const EditableScene three = binary_tree(3);
    SceneArrays small(three);
    const Ref<const EdgeNoise> five =
        EdgeNoise::of_covariance(some_covariance(random, 1e-3, 5), "f1");
    const Ref<const EdgeNoise> six =
        EdgeNoise::of_covariance(some_covariance(random, 1e-3, 6), "f1");
    small.set_noise("f1", five);
    CHECK(small.noise("f1")->covariance == five->covariance);
    CHECK_THROWS_AS(small.set_noise("f1", six), Error);
    CHECK(small.noise("f1")->covariance == five->covariance);
    Capacities few;
    few.noise = 4;
    CHECK_THROWS_AS(SceneArrays(three, few), Error);
}

TEST_CASE(
    "errors of twists: queried anywhere, learned with the edges that they moved, the same in "
    "arrays") {
    Random random(5);
    SceneEdit edit(binary_tree(15));
    const Ref<const EdgeNoise> unsure =
        EdgeNoise::of_covariance(some_covariance(random, 1e-2, 4), "drift");
    edit.set_twist("f3", {"f0", {1, 0, 0, 0, 0, 1}, unsure});
    edit.set_twist("f8", {"f3",
                          {0, 1, 0, 1, 0, 0},
                          EdgeNoise::of_covariance(some_covariance(random, 1e-2, 2), "slip")});
    edit.set_twist("f12", {"f0", {0, 0, 1, 0, 0, 0}});
    edit.add_noise("f3", *unsure);  // it has moved this edge
    const EditableScene scene = edit.scene();
    NoiseSum error;
    const auto body = [&](const char* name) { return scene.body_id(name); };
    const FrameRecord &point = scene.record("f8"), &axes = scene.record("f5");
    const auto uncertain = related_twist(scene, &point, body("f8"), body("f12"), axes, nullptr,
                                         nullptr, &error),
               exact = related_twist(scene, &point, body("f8"), body("f12"), axes, nullptr);
    for (std::size_t i = 0; i < 6; ++i)
        CHECK((*uncertain)[i] == doctest::Approx((*exact)[i]).epsilon(1e-12));
    CHECK(error.find(unsure->terms[0].source.get()) != nullptr);
    CHECK(error.covariance().linear[0] > 0.0);

    edit.condition(
        look("f3", "f0", scene.pose("f3", "f0", nullptr) * Pose::exp({1e-3, 0, 0, 0, 0, 0}), 1e-8),
        nullptr, {});
    const EditableScene looked = edit.scene();
    CHECK(looked.defects() == "");
    CHECK(looked.twist("f3")->vector != scene.twist("f3")->vector);
    CHECK(looked.twist("f3")->noise->covariance.linear[0] < unsure->covariance.linear[0]);
    CHECK(*looked.twist("f8") == *scene.twist("f8"));
    edit.mount(looked, "f0", "copy/", {}, {});
    CHECK(edit.scene().twist("copy/f3")->noise->covariance ==
          looked.twist("f3")->noise->covariance);
    CHECK(!(edit.scene().twist("copy/f3")->noise->terms == looked.twist("f3")->noise->terms));

    SceneArrays arrays(looked);
    CHECK(arrays.freeze().same_content(looked));
    CHECK(arrays.freeze().content_hash() == looked.content_hash());
    const TwistEdge still{"f0", {}}, drifting{"f0", {}, unsure};
    CHECK(count_allocations([&] {
        arrays.set_twist("f12", drifting);
        arrays.remove_twist("f3");
        arrays.set_twist("f3", still);
    }) == 0);
    CHECK(arrays.twist_noise("f3").get() == nullptr);
    CHECK(arrays.twist_noise("f12") == unsure);
    CHECK(arrays.freeze().twist("f12")->noise == unsure);
    CHECK_THROWS_AS(arrays.set_twist_noise("f1", unsure), Error);
}

TEST_CASE("many threads read one version and edit copies of it") {
    const EditableScene scene = binary_tree(63);
    const GaussianPose expected = gaussian_pose(scene, "f40", "f61", nullptr);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            EditableScene mine = scene;
            for (int i = 0; i < 40; ++i) {
                if (!(gaussian_pose(scene, "f40", "f61", nullptr) == expected)) ++wrong;
                SceneEdit edit(mine);
                edit.condition(look("f" + std::to_string(31 + t), "f62",
                                    scene.pose("f" + std::to_string(31 + t), "f62", nullptr), 1e-6),
                               nullptr, {});
                mine = EditableScene(edit.scene())
                           .reparent_keeping_pose("f" + std::to_string(40 + t), "f3", nullptr);
                if (sample_poses(mine, "f40", "f61", nullptr, 3, 1).size() != 3) ++wrong;
                if (!mine.defects().empty()) ++wrong;
            }
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
}
