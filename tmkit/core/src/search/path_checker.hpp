// Counted, interruptible checks of configurations and edges over the moving joints of a search.
#pragma once

#include <chrono>
#include <vector>

#include "search/path_constraints.hpp"

namespace tmkit {

double path_length(const Points& path);

class PathChecker {
public:
    PathChecker(const CollisionWorld& world, const std::vector<std::int32_t>& entries, const std::vector<double>& start,
                const PathOptions& options)
        : entries_(entries), q_(start), resolution_(options.resolution), interrupted_(options.interrupted),
          constraints_(world.scene(), options.constraints, entries, start.data()), view_(world, entries, start.data()),
          scratch_(view_.scratch()), sample_(entries.size()) {
        if (options.time_limit < 1e9) {
            timed_ = true;
            deadline_ =
                std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                       std::chrono::duration<double>(options.time_limit));
        }
    }

    std::size_t size() const { return entries_.size(); }
    void set_resolution(double resolution) { resolution_ = resolution; }

    FramePair find_collision(const double* x) {
        for (std::size_t i = 0; i < entries_.size(); ++i) q_[entries_[i]] = x[i];
        ++checks_;
        return view_.find_collision(q_.data(), scratch_);
    }

    // The straight motion from a, known to be free, to b.
    bool edge_is_free(const double* a, const double* b) {
        if (!is_free(b)) return false;
        const std::int64_t steps = edge_steps(a, b, size(), resolution_);
        return visit_bisecting(steps, [&](std::int64_t k) {
            const double fraction = static_cast<double>(k) / static_cast<double>(steps);
            for (std::size_t i = 0; i < size(); ++i) sample_[i] = a[i] + fraction * (b[i] - a[i]);
            return is_free(sample_.data());
        });
    }

    const ConstraintSet& constraints() const { return constraints_; }

    // Appends the points of a motion from a, known to be good, to b: b alone, or with constraints as many as keep them,
    // if they are no longer than `longest`.
    bool connect(const double* a, const double* b, Points& points, double longest = 1e300) {
        if (constraints_.empty()) {
            if (!edge_is_free(a, b)) return false;
            points.emplace_back(b, b + size());
            return true;
        }
        Points made{{a, a + size()}};
        if (!constraints_.bridge(a, b, made) || path_length(made) > longest) return false;
        for (std::size_t i = 0; i + 1 < made.size(); ++i)
            if (!edge_is_free(made[i].data(), made[i + 1].data())) return false;
        points.insert(points.end(), made.begin() + 1, made.end());
        return true;
    }

    // Asked once in a while by the loops: the user or the clock wants an end. Once true, always true.
    bool stopped() {
        if (status_ != PathStatus::solved) return true;
        if (timed_ && std::chrono::steady_clock::now() >= deadline_) status_ = PathStatus::time_limit;
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
        std::vector<double> q = q_;
        for (std::size_t i = 0; i < entries_.size(); ++i) q[entries_[i]] = x[i];
        return q;
    }

private:
    bool is_free(const double* x) {
        const FramePair pair = find_collision(x);
        if (pair) blocking_.add(pair);
        return !pair;
    }

    const std::vector<std::int32_t>& entries_;
    std::vector<double> q_;
    double resolution_;
    const std::function<bool()>& interrupted_;
    ConstraintSet constraints_;
    CollisionView view_;
    CollisionView::Scratch scratch_;
    std::vector<double> sample_;
    PairCounter blocking_;
    std::int64_t checks_ = 0, next_question_ = 0;
    PathStatus status_ = PathStatus::solved;
    bool timed_ = false;
    std::chrono::steady_clock::time_point deadline_;
};

// Shortens a free path by dropping points and by seeded cuts between random points; both ends stay.
void shorten_path(Points& path, PathChecker& checker, std::int64_t iterations, std::uint64_t seed);

}  // namespace tmkit
