// Path constraints over the moving joints of a search; and counted, interruptible checks of
// configurations and edges.
//
// Each constraint is one number, an angle or a distance, that must not exceed its tolerance. A
// configuration is projected by damped least squares with the gradients of these numbers (Stilman,
// "Task constrained motion planning in robot joint space", IROS 2007). A motion between two
// configurations is bisected, and its middle projected, until straight pieces satisfy the
// constraints (after Berenson et al., "Manipulation planning on constraint manifolds", ICRA 2009).
#pragma once

#include <array>
#include <chrono>
#include <cmath>
#include <vector>

#include "tmkit/path_search.hpp"

namespace tmkit {

using Points = std::vector<std::vector<double>>;  // of the moving joints only

inline double distance(const double* a, const double* b, std::size_t size) {
    double sum = 0.0;
    for (std::size_t i = 0; i < size; ++i) sum += (b[i] - a[i]) * (b[i] - a[i]);
    return std::sqrt(sum);
}
inline double distance(const std::vector<double>& a, const std::vector<double>& b) {
    return distance(a.data(), b.data(), a.size());
}

class ConstraintSet {
public:
    // Throws Error(configuration) for more than 6 constraints, or more than max_chain_joints
    // entries.
    ConstraintSet(const SceneGraph& scene, const std::vector<PathConstraint>& constraints,
                  const std::vector<std::int32_t>& entries, const double* q);

    bool empty() const { return parts_.empty(); }
    // Return whether a straight motion keeps each number below a fraction of its tolerance, or
    // below its value at either end, at samples `finer` times as dense as usual. At both ends each
    // must be within the tolerance.
    bool keeps(const double* a, const double* b, double share = 1.0, double finer = 1.0) const;
    // Move x, within the limits, to satisfy all constraints with some slack; false if the
    // iterations are exhausted before.
    bool project(double* x) const;
    // Append points of a motion from a to b, b last, between which straight motions satisfy the
    // constraints; false if bisection finds none. At both ends the constraints hold.
    bool bridge(const double* a, const double* b, Points& points, int halvings = 14) const;

private:
    struct Part {
        PathConstraint constraint;
        Chain chain;  // root_from_frame
    };

    // The number of a part at x, and its derivative by twists of the frame if `gradient` is given:
    // linear at the frame's origin, then angular.
    double value(const Part& part, const double* x, Vector6* gradient = nullptr,
                 Vector6* columns = nullptr) const;

    std::size_t size_;
    std::vector<Part> parts_;
    std::vector<std::array<double, 2>> limits_;
    double spacing_ = 0.01;  // between samples, in the maximum norm
};

double path_length(const Points& path);

class PathChecker {
public:
    PathChecker(const CollisionWorld& world, const PathQuery& query, const PathSettings& settings,
                const std::function<bool()>& interrupted)
        : entries_(query.entries), q_(query.start), resolution_(settings.resolution),
          proves_(settings.proved), interrupted_(interrupted),
          constraints_(world.scene(), query.constraints, entries_, query.start.data()),
          view_(world, entries_, query.start.data()), scratch_(view_.scratch()) {
        if (settings.time_limit < 1e9) {
            timed_ = true;
            deadline_ = std::chrono::steady_clock::now() +
                        std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                            std::chrono::duration<double>(settings.time_limit));
        }
    }

    std::size_t size() const { return entries_.size(); }

    FramePair find_collision(const double* x) {
        for (std::size_t i = 0; i < entries_.size(); ++i) q_[entries_[i]] = x[i];
        ++checks_;
        return view_.find_collision(q_.data(), scratch_);
    }

    // Check the straight motion from a free configuration a to b; if paths are to be proved, by a
    // proof. Motions before their ends: most of those that a search tries collide on the way.
    bool edge_is_free(const double* a, const double* b, bool end_is_free) {
        fill(a, from_);
        fill(b, to_);
        const FramePair pair = view_.find_unproved(from_.data(), to_.data(), scratch_, checks_,
                                                   proves_ ? 0.0 : resolution_, end_is_free);
        return !blocks(pair) && (proves_ || end_is_free || !blocks(find_collision(b)));
    }

    // Return those of the first configurations of a list, at most CollisionView::together, that
    // certainly collide, as bits; others may collide, too.
    unsigned find_blocked(const Points& points, std::size_t count) {
        std::array<const double*, CollisionView::together> rows;
        std::array<FramePair, CollisionView::together> pairs{};
        batch_.resize(CollisionView::together);
        for (std::size_t i = 0; i < count; ++i) {
            fill(points[i].data(), batch_[i]);
            rows[i] = batch_[i].data();
        }
        checks_ += static_cast<std::int64_t>(count);
        view_.find_deep(rows.data(), static_cast<int>(count), pairs.data(), scratch_);
        unsigned blocked = 0;
        for (std::size_t i = 0; i < count; ++i)
            if (blocks(pairs[i])) blocked |= 1u << i;
        return blocked;
    }

    // Count a colliding pair; return whether there is one.
    bool blocks(const FramePair& pair) {
        if (pair) blocking_.add(last_blocking_ = pair);
        return static_cast<bool>(pair);
    }
    FramePair last_blocking() const { return last_blocking_; }

    const ConstraintSet& constraints() const { return constraints_; }

    // Append the points of a motion from a valid configuration a to b: b alone, or with constraints
    // as many as satisfy them, unless they are longer than `longest`.
    bool connect(const double* a, const double* b, Points& points, bool end_is_free = false,
                 double longest = 1e300) {
        if (constraints_.empty()) {
            if (!edge_is_free(a, b, end_is_free)) return false;
            points.emplace_back(b, b + size());
            return true;
        }
        Points result{{a, a + size()}};
        if (!constraints_.bridge(a, b, result) || path_length(result) > longest) return false;
        for (std::size_t i = 0; i + 1 < result.size(); ++i)
            if (!edge_is_free(result[i].data(), result[i + 1].data(),
                              end_is_free && i + 2 == result.size()) ||
                !constraints_.keeps(result[i].data(), result[i + 1].data(), 1.0, 3.0))
                return false;
        points.insert(points.end(), result.begin() + 1, result.end());
        return true;
    }

    // Called regularly by the loops: an interruption or the time limit ends the search. Once true,
    // always true.
    bool should_stop() {
        if (status_ != PathStatus::solved) return true;
        if (timed_ && std::chrono::steady_clock::now() >= deadline_)
            status_ = PathStatus::time_limit;
        else if (interrupted_ && checks_ >= next_question_) {
            next_question_ = checks_ + 2000;
            if (interrupted_()) status_ = PathStatus::interrupted;
        }
        return status_ != PathStatus::solved;
    }
    PathStatus stop_reason() const { return status_; }

    std::int64_t checks() const { return checks_; }
    const PairCounter& blocking() const { return blocking_; }
    std::vector<double> full(const double* x) const {
        std::vector<double> q;
        fill(x, q);
        return q;
    }

private:
    void fill(const double* x, std::vector<double>& q) const {
        q = q_;
        for (std::size_t i = 0; i < entries_.size(); ++i) q[entries_[i]] = x[i];
    }

    const std::vector<std::int32_t>& entries_;
    std::vector<double> q_, from_, to_;
    Configurations batch_;
    double resolution_;
    bool proves_;
    const std::function<bool()>& interrupted_;
    ConstraintSet constraints_;
    CollisionView view_;
    CollisionView::Scratch scratch_;
    PairCounter blocking_;
    FramePair last_blocking_;
    std::int64_t checks_ = 0, next_question_ = 0;
    PathStatus status_ = PathStatus::solved;
    bool timed_ = false;
    std::chrono::steady_clock::time_point deadline_;
};

// Shorten a free path by removing points and cutting corners; both ends are kept.
void shorten_path(Points& path, PathChecker& checker, std::int64_t iterations);

}  // namespace tmkit
