// Self-motions of a redundant arm: curves of solutions on which the elbow moves while the hand is
// fixed.
//
// Among obstacles only a short part of a curve may be collision-free, and random starts rarely hit
// it. The curve through a colliding solution is therefore followed in both directions, by steps
// along the null space of the Jacobian. Inverse kinematics brings each step back to the target,
// until a point is free or joint limits end the curve.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "kinematics/damped_step.hpp"
#include "tmkit/inverse_kinematics.hpp"
#include "tmkit/random.hpp"

namespace tmkit {

class SelfMotions {
public:
    SelfMotions(const InverseKinematics& problem, const Pose& target, const IkSettings& settings,
                int restarts, const CollisionWorld& world)
        : problem_(problem), target_(target), settings_(settings), world_(world),
          n_(problem.entries().size()),
          points_left_(n_ > (settings.is_position_only() ? 3u : 6u) ? points_per_restart * restarts
                                                                    : 0) {}

    // Moving values without collision on the curve through a solution; none if that curve was
    // followed before, or if the number of checked points reaches the limit of the restarts.
    std::optional<std::vector<double>> find_free(const double* solution, Random& random) {
        const std::vector<double> start(solution, solution + n_);
        const auto close = [&](const auto& point) { return distance(point, start) <= step_length; };
        if (points_left_ <= 0 || std::any_of(points_.begin(), points_.end(), close)) return {};
        points_.push_back(start);
        std::vector<double> ahead(n_);
        for (double& value : ahead) value = random.uniform(-1.0, 1.0);
        for (const double sign : {1.0, -1.0}) {
            std::vector<double> x = start, direction = ahead;
            for (double& value : direction) value *= sign;
            for (int step = 0; points_left_ > 0 && advance(x, direction); ++step) {
                if (step > 2 && close(x)) return {};  // once round a closed curve
                --points_left_;
                points_.push_back(x);
                if (!world_.in_collision(problem_.full(x.data()).data())) return x;
            }
        }
        return {};
    }

private:
    // Largest change of a joint between two points [rad or m].
    static constexpr double step_length = 0.1;
    // Of the direction that remains in the null space.
    static constexpr double least_progress = 0.02;
    static constexpr int points_per_restart = 4;  // a point costs about a quarter of a random start

    // Move x by a step along the curve, as nearly as possible in a direction, which becomes that of
    // the step. False if joint limits end the curve.
    bool advance(std::vector<double>& x, std::vector<double>& direction) const {
        std::vector<double> next = null_space_step(x, direction);
        const double longest = largest(next);
        if (longest < least_progress * largest(direction)) return false;
        for (std::size_t c = 0; c < n_; ++c) {
            const auto& [lower, upper] = problem_.limits()[c];
            next[c] = std::clamp(x[c] + step_length / longest * next[c], lower, upper);
        }
        double errors[2];
        int iterations = 0;
        if (!problem_.improve(target_, settings_, next.data(), errors, iterations)) return false;
        const double moved = distance(next, x);
        // Stuck, or on another curve.
        if (moved < 0.1 * step_length || moved > 3.0 * step_length) return false;
        for (std::size_t c = 0; c < n_; ++c) direction[c] = next[c] - x[c];
        x = std::move(next);
        return true;
    }

    // The part of a direction that does not move the tip, with joints fixed that would exceed a
    // limit.
    std::vector<double> null_space_step(const std::vector<double>& x,
                                        const std::vector<double>& direction) const {
        Matrix3 rotation;
        Vector3 translation;
        std::array<Vector6, max_chain_joints> columns;
        problem_.chain().jacobian(x.data(), rotation, translation, columns.data());
        if (settings_.is_position_only())
            for (std::size_t c = 0; c < n_; ++c)
                columns[c][3] = columns[c][4] = columns[c][5] = 0.0;
        std::array<double, max_chain_joints> correction;
        std::array<bool, max_chain_joints> held{};
        std::vector<double> step;
        do {
            step = direction;
            Vector6 drift{};
            for (std::size_t c = 0; c < n_; ++c) {
                if (held[c]) step[c] = 0.0;
                for (int i = 0; i < 6; ++i) drift[i] += columns[c][i] * step[c];
            }
            damped_step(columns.data(), n_, held.data(), drift, 1e-9, correction.data());
            for (std::size_t c = 0; c < n_; ++c) step[c] -= correction[c];
        } while (hold_at_limits(x.data(), step.data(), problem_.limits(), held.data()));
        return step;
    }

    static double largest(const std::vector<double>& values) {
        double result = 0.0;
        for (const double value : values) result = std::max(result, std::abs(value));
        return result;
    }

    double distance(const std::vector<double>& a, const std::vector<double>& b) const {
        double result = 0.0;
        for (std::size_t c = 0; c < n_; ++c) result = std::max(result, std::abs(a[c] - b[c]));
        return result;
    }

    const InverseKinematics& problem_;
    const Pose& target_;
    const IkSettings& settings_;
    const CollisionWorld& world_;
    std::size_t n_;
    int points_left_;
    std::vector<std::vector<double>> points_;  // those that collide
};

}  // namespace tmkit
