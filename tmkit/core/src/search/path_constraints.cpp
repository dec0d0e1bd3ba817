#include "search/path_checker.hpp"

#include <algorithm>

#include "kinematics/damped_step.hpp"

namespace tmkit {
namespace {

constexpr double aim = 0.5;  // fraction of the tolerance that a projection reaches
// Fraction of the tolerance at samples of a motion, with a reserve between them.
constexpr double slack = 0.9;
constexpr int most_steps = 60;
// Of the whole: a middle that is projected farther away is a detour.
constexpr double longest_half = 0.9;

}  // namespace

ConstraintSet::ConstraintSet(const SceneGraph& scene,
                             const std::vector<PathConstraint>& constraints,
                             const std::vector<std::int32_t>& entries, const double* q)
    : size_(entries.size()) {
    if (constraints.empty()) return;
    if (constraints.size() > 6 || size_ > max_chain_joints)
        throw Error(ErrorKind::configuration,
                    "a path takes at most 6 constraints and {} moving joints, not {} and {}",
                    max_chain_joints, constraints.size(), size_);
    const Layout& layout = scene.layout();
    for (const PathConstraint& constraint : constraints) {
        parts_.push_back({constraint, Chain(layout, constraint.frame, layout.root[constraint.frame],
                                            entries, q)});
        // Between samples at this spacing a number deviates from the line between its values by
        // less than 0.1 of the tolerance: by d^2 / 8 of the summed motions d of seven joints, and
        // of a reach of 1 m.
        spacing_ = std::min(spacing_, 0.1 * std::sqrt(constraint.tolerance));
    }
    const std::vector<EntryLimits> limits = scene.entry_limits();
    for (const std::int32_t entry : entries)
        limits_.push_back({limits[entry].lower, limits[entry].upper});
}

double ConstraintSet::value(const Part& part, const double* x, Vector6* gradient,
                            Vector6* columns) const {
    const PathConstraint& c = part.constraint;
    Matrix3 r;
    Vector3 origin, own;
    if (columns) part.chain.jacobian(x, r, origin, columns);
    else part.chain.forward(x, r, origin);
    for (std::size_t i = 0; i < 3; ++i)
        own[i] = dot({r[3 * i], r[3 * i + 1], r[3 * i + 2]}, c.of_frame);
    Vector3 linear{}, angular{};
    double result = 0.0;
    if (c.kind == PathConstraint::Kind::orientation) {
        const Vector3 turn = cross(own, c.direction);
        const double sine = norm(turn);
        result = arctangent(sine, dot(own, c.direction));
        angular = (-1.0 / std::max(sine, 1e-9)) * turn;
    } else {
        const Vector3 offset = origin + own - c.point;
        const double along = dot(offset, c.direction);
        const Vector3 deviation = c.kind == PathConstraint::Kind::plane
                                      ? along * c.direction
                                      : offset - along * c.direction;
        result = norm(deviation);
        linear = (1.0 / std::max(result, 1e-9)) * deviation;
        angular = cross(own, linear);
    }
    if (gradient) *gradient = {linear[0], linear[1], linear[2], angular[0], angular[1], angular[2]};
    return result;
}

bool ConstraintSet::project(double* x) const {
    std::array<Vector6, max_chain_joints> columns, rows;  // rows: of each joint, by constraint
    std::array<double, max_chain_joints> step;
    std::array<bool, max_chain_joints> held;
    for (int iteration = 0; iteration < most_steps; ++iteration) {
        std::fill(rows.begin(), rows.begin() + size_, Vector6{});
        Vector6 error{};
        double cost = 0.0;
        bool is_satisfied = true;
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            const double tolerance = parts_[i].constraint.tolerance;
            Vector6 gradient;
            const double now = value(parts_[i], x, &gradient, columns.data());
            if (now <= aim * tolerance) continue;
            is_satisfied = is_satisfied && now <= slack * tolerance;
            error[i] = aim * tolerance - now;
            cost += error[i] * error[i];
            for (std::size_t c = 0; c < size_; ++c)
                for (std::size_t k = 0; k < 6; ++k) rows[c][i] += gradient[k] * columns[c][k];
        }
        if (is_satisfied) return true;
        std::fill(held.begin(), held.begin() + size_, false);
        do damped_step(rows.data(), size_, held.data(), error, 0.05 * cost + 1e-10, step.data());
        while (hold_at_limits(x, step.data(), limits_, held.data()));
        take_step(x, step.data(), size_, limits_.data());
    }
    return false;
}

bool ConstraintSet::keeps(const double* a, const double* b, double share, double finer) const {
    if (empty()) return true;
    std::array<double, 6> most;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        const double tolerance = parts_[i].constraint.tolerance;
        const double ends = std::max(value(parts_[i], a), value(parts_[i], b));
        if (!(ends <= tolerance)) return false;
        most[i] = std::max(share * tolerance, ends);
    }
    const std::int64_t steps = edge_steps(a, b, size_, spacing_ / finer);
    std::array<double, max_chain_joints> x;
    return visit_bisecting(steps, [&](std::int64_t k) {
        const double fraction = static_cast<double>(k) / static_cast<double>(steps);
        for (std::size_t i = 0; i < size_; ++i) x[i] = a[i] + fraction * (b[i] - a[i]);
        for (std::size_t i = 0; i < parts_.size(); ++i)
            if (!(value(parts_[i], x.data()) <= most[i])) return false;
        return true;
    });
}

bool ConstraintSet::bridge(const double* a, const double* b, Points& points, int halvings) const {
    if (keeps(a, b, slack)) {
        points.emplace_back(b, b + size_);
        return true;
    }
    std::vector<double> middle(size_);
    for (std::size_t i = 0; i < size_; ++i) middle[i] = 0.5 * (a[i] + b[i]);
    if (halvings == 0 || !project(middle.data())) return false;
    const double most = longest_half * distance(a, b, size_);
    if (distance(a, middle.data(), size_) > most || distance(middle.data(), b, size_) > most)
        return false;
    return bridge(a, middle.data(), points, halvings - 1) &&
           bridge(middle.data(), b, points, halvings - 1);
}

}  // namespace tmkit
