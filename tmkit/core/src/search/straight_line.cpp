// Straight motions of the tip.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "tmkit/path_search.hpp"

namespace tmkit {
namespace {

class LineFollower {
public:
    LineFollower(const InverseKinematics& problem, const Pose& target,
                 const StraightLineSettings& settings)
        : problem_(problem), settings_(settings), size_(problem.entries().size()),
          from_(problem.chain().pose(problem.moving(problem.base().data()).data())), to_(target) {
        ik_.position_tolerance = 1e-6;
        ik_.rotation_tolerance =
            settings.position_only ? std::numeric_limits<double>::infinity() : 1e-6;
        if (settings.position_only) to_.quat_xyzw = from_.quat_xyzw;
    }

    std::int64_t steps() const {
        const auto [metres, radians] = from_.distance(to_);
        const double turn = settings_.position_only ? 0.0 : radians / settings_.rotation_step;
        return std::max<std::int64_t>(
            1, static_cast<std::int64_t>(
                   std::ceil(std::max(metres / settings_.position_step, turn) - 1e-9)));
    }

    // Return the solution at a fraction of the line that follows from `guess`, or record the
    // failure.
    bool solve(double fraction, const std::vector<double>& guess, std::vector<double>& x,
               StraightLineResult& result) {
        const Pose target = from_.interpolate(to_, fraction);
        double errors[2];
        int iterations = 0;
        x = guess;
        result.fraction = fraction;
        if (!problem_.improve(target, ik_, x.data(), errors, iterations)) {
            std::vector<double> free = guess;
            const bool possible =
                problem_.improve(target, ik_, free.data(), errors, iterations, false);
            result.status =
                possible ? StraightLineStatus::joint_limit : StraightLineStatus::unreachable;
            if (possible) result.joint = problem_.entries()[most_outside(free)];
            return false;
        }
        for (std::size_t i = 0; i < size_; ++i)
            if (std::abs(x[i] - guess[i]) > settings_.max_joint_jump) {
                result.status = StraightLineStatus::joint_jump;
                result.joint = problem_.entries()[i];
                return false;
            }
        return true;
    }

    // Append rows between a (at fraction fa) and b until the tip remains near the line, then b
    // itself.
    bool refine(double fa, const std::vector<double>& a, double fb, const std::vector<double>& b,
                int depth, std::vector<std::pair<double, std::vector<double>>>& rows,
                StraightLineResult& result) {
        if (depth > 0 && leaves_line(a, b)) {
            const double middle = 0.5 * (fa + fb);
            std::vector<double> x;
            if (!solve(middle, a, x, result)) return false;
            return refine(fa, a, middle, x, depth - 1, rows, result) &&
                   refine(middle, x, fb, b, depth - 1, rows, result);
        }
        rows.emplace_back(fb, b);
        return true;
    }

private:
    std::size_t most_outside(const std::vector<double>& x) const {
        std::size_t worst = 0;
        double most = -1.0;
        for (std::size_t i = 0; i < size_; ++i) {
            const auto& [lower, upper] = problem_.limits()[i];
            const double outside = std::max(lower - x[i], x[i] - upper);
            if (outside > most) {
                most = outside;
                worst = i;
            }
        }
        return worst;
    }

    // Return whether the tip is farther from the line than allowed at the quarters of a joint
    // motion.
    bool leaves_line(const std::vector<double>& a, const std::vector<double>& b) const {
        std::vector<double> x(size_);
        const Vector3 along = to_.translation - from_.translation;
        const double square = dot(along, along);
        for (const double fraction : {0.25, 0.5, 0.75}) {
            for (std::size_t i = 0; i < size_; ++i) x[i] = a[i] + fraction * (b[i] - a[i]);
            Matrix3 rotation;
            Vector3 tip;
            problem_.chain().forward(x.data(), rotation, tip);
            const Vector3 offset = tip - from_.translation;
            const double line_fraction =
                square > 0.0 ? std::clamp(dot(offset, along) / square, 0.0, 1.0) : 0.0;
            if (norm(offset - line_fraction * along) > 0.8 * settings_.deviation) return true;
        }
        return false;
    }

    const InverseKinematics& problem_;
    const StraightLineSettings& settings_;
    IkSettings ik_;
    std::size_t size_;
    Pose from_, to_;
};

// Checker of the motion to each new row, which stops at the first collision.
class LineChecker {
public:
    LineChecker(const InverseKinematics& problem, const CollisionWorld& world, double resolution)
        : world_(world), resolution_(resolution), q_(problem.base()),
          view_(world, problem.entries(), problem.base().data()), scratch_(view_.scratch()) {}

    bool start_is_free(StraightLineResult& result) {
        ++result.checks;
        result.pair = world_.find_collision(q_.data());
        return fail_at(0.0, result);
    }

    bool edge_is_free(const std::vector<double>& a, double fa, const std::vector<double>& b,
                      double fb, StraightLineResult& result) {
        const std::int64_t steps = edge_steps(a.data(), b.data(), a.size(), resolution_);
        for (std::int64_t k = 1; k <= steps && !result.pair; ++k) {
            const double f = static_cast<double>(k) / static_cast<double>(steps);
            for (std::size_t i = 0; i < a.size(); ++i)
                q_[i] = k == steps ? b[i] : a[i] + f * (b[i] - a[i]);
            ++result.checks;
            result.pair = view_.find_collision(q_.data(), scratch_);
            if (!fail_at(fa + f * (fb - fa), result)) return false;
        }
        return true;
    }

private:
    static bool fail_at(double fraction, StraightLineResult& result) {
        if (!result.pair) return true;
        result.status = StraightLineStatus::collision;
        result.fraction = fraction;
        return false;
    }

    const CollisionWorld& world_;
    double resolution_;
    std::vector<double> q_;
    CollisionView view_;
    CollisionView::Scratch scratch_;
};

}  // namespace

StraightLineResult straight_line(const InverseKinematics& problem, const Pose& target,
                                 const CollisionWorld* world,
                                 const StraightLineSettings& settings) {
    StraightLineResult result;
    LineFollower follower(problem, target, settings);
    std::optional<LineChecker> checker;
    if (world) checker.emplace(problem, *world, settings.resolution);
    std::vector<double> x = problem.moving(problem.base().data());
    result.path.push_back(problem.base());
    if (checker && !checker->start_is_free(result)) return result;
    const std::int64_t steps = follower.steps();
    double path_fraction = 0.0;
    for (std::int64_t k = 1; k <= steps; ++k) {
        const double fraction = static_cast<double>(k) / static_cast<double>(steps);
        std::vector<double> next;
        std::vector<std::pair<double, std::vector<double>>> rows;
        if (!follower.solve(fraction, x, next, result)) return result;
        if (!follower.refine(path_fraction, x, fraction, next, 8, rows, result)) return result;
        for (const auto& [row_fraction, row] : rows) {
            std::vector<double> q = problem.full(row.data());
            if (checker &&
                !checker->edge_is_free(result.path.back(), path_fraction, q, row_fraction, result))
                return result;
            result.path.push_back(std::move(q));
            path_fraction = row_fraction;
        }
        x = std::move(next);
    }
    result.fraction = 1.0;
    return result;
}

}  // namespace tmkit
