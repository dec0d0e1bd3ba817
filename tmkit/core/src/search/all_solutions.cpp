// Enumeration of the collision-free solutions of inverse kinematics.
#include <algorithm>
#include <cmath>
#include <optional>

#include "search/self_motions.hpp"
#include "tmkit/inverse_kinematics.hpp"
#include "tmkit/random.hpp"

namespace tmkit {
namespace {

// Collisions before the elbow is moved: if most random starts are free, these are cheaper.
constexpr int collisions_before_self_motions = 8;

double max_distance(const std::vector<double>& a, const std::vector<double>& b) {
    double distance = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) distance = std::max(distance, std::abs(a[i] - b[i]));
    return distance;
}

// A pair in contact whose relative pose is the same in every solution, since the target fixes it:
// one without movable frames if there is one, else the last; none if every contact depends on the
// solution.
FramePair fixed_contact(const InverseKinematics& problem, const CollisionWorld& world,
                        const double* q) {
    const std::vector<std::string>& movable = world.options().movable;
    FramePair named;
    for (const Contact& contact : world.contacts(q)) {
        const FramePair fixed{contact.frame_a, contact.frame_b};
        if (!problem.is_fixed_by_target(fixed)) continue;
        const bool is_still = !problem.is_still_part_of(fixed.a, movable) &&
                              !problem.is_still_part_of(fixed.b, movable);
        if (is_still || !named) named = fixed;
        if (is_still) break;
    }
    return named;
}

// Return whether a solution collides; then the pair is counted, and the first one decides whether
// all others would too.
bool collides(const InverseKinematics& problem, const CollisionWorld& world, const double* solution,
              const IkSettings& settings, InverseKinematicsSolutions& result,
              PairCounter& blocking) {
    const FramePair pair = world.find_collision(solution);
    if (!pair) return false;
    const bool first =
        ++result.in_collision == 1 && result.configurations.empty() && !settings.is_position_only();
    const FramePair named = first ? fixed_contact(problem, world, solution) : FramePair{};
    result.target_collides = static_cast<bool>(named);
    blocking.add(named ? named : pair);
    return true;
}

}  // namespace

InverseKinematicsSolutions solve_all(const InverseKinematics& problem, const Pose& target,
                                     const IkSettings& settings, const CollisionWorld* world,
                                     const std::function<bool()>& interrupted) {
    InverseKinematicsSolutions result;
    if (problem.out_of_reach(target, settings)) {
        result.status = InverseKinematicsStatus::out_of_reach;
        return result;
    }
    const std::vector<double>& q = problem.base();
    const std::vector<double> start = problem.moving(q.data());
    std::array<double, max_chain_joints> x;
    PairCounter blocking;
    Random random(settings.seed);
    const int restarts = settings.restarts.value_or(IkSettings::default_restarts_of_solutions);
    std::optional<SelfMotions> motions;
    if (world) motions.emplace(problem, target, settings, restarts, *world);
    for (int attempt = 0; attempt <= restarts && !result.target_collides; ++attempt) {
        if (static_cast<int>(result.configurations.size()) >= settings.max_solutions) break;
        if (interrupted && attempt % 64 == 63 && interrupted()) break;
        if (attempt == 0) std::copy(start.begin(), start.end(), x.begin());
        else problem.sample(random, x.data());
        double errors[2];
        int iterations = 0;
        ++result.tries;
        if (!problem.improve(target, settings, x.data(), errors, iterations)) continue;
        problem.unwind(x.data(), start.data());
        std::vector<double> solution = problem.full(x.data());
        const auto close = [&](const auto& earlier) {
            return max_distance(solution, earlier) <= settings.separation;
        };
        if (std::any_of(result.configurations.begin(), result.configurations.end(), close))
            continue;
        if (!world || !collides(problem, *world, solution.data(), settings, result, blocking)) {
            result.configurations.push_back(std::move(solution));
            continue;
        }
        if (!result.configurations.empty() || result.in_collision < collisions_before_self_motions)
            continue;
        if (std::optional<std::vector<double>> free = motions->find_free(x.data(), random)) {
            problem.unwind(free->data(), start.data());
            result.configurations.push_back(problem.full(free->data()));
        }
    }
    const auto nearer = [&](const auto& a, const auto& b) {
        return max_distance(a, q) < max_distance(b, q);
    };
    std::stable_sort(result.configurations.begin(), result.configurations.end(), nearer);
    if (!result.configurations.empty()) result.status = InverseKinematicsStatus::solved;
    result.blocking = blocking.sorted();
    return result;
}

void PairCounter::add(FramePair pair) {
    const auto match = std::find_if(counts_.begin(), counts_.end(),
                                    [&](const PairCount& c) { return c.pair == pair; });
    if (match != counts_.end()) ++match->count;
    else counts_.push_back({pair, 1});
}

std::vector<PairCount> PairCounter::sorted() const {
    std::vector<PairCount> result = counts_;
    std::sort(result.begin(), result.end(), [](const PairCount& a, const PairCount& b) {
        if (a.count != b.count) return a.count > b.count;
        return a.pair.a != b.pair.a ? a.pair.a < b.pair.a : a.pair.b < b.pair.b;
    });
    return result;
}

}  // namespace tmkit
