// Shortening a path by cuts.
#include <algorithm>
#include <cmath>

#include "search/path_checker.hpp"
#include "tmkit/random.hpp"

namespace tmkit {
namespace {

double distance(const std::vector<double>& a, const std::vector<double>& b) {
    return tmkit::distance(a.data(), b.data(), a.size());
}

std::vector<double> between(const std::vector<double>& a, const std::vector<double>& b, double fraction) {
    std::vector<double> point(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) point[i] = a[i] + fraction * (b[i] - a[i]);
    return point;
}

// From each point, go straight to the farthest later point that can be reached. Paths with constraints have many
// points: of these, half of what is left is skipped after each failure.
void drop_points(Points& path, PathChecker& checker) {
    Points kept{path.front()};
    for (std::size_t at = 0; at + 1 < path.size();) {
        std::size_t next = path.size() - 1;
        const auto is_reached = [&] {
            const Points old(path.begin() + at, path.begin() + next + 1);
            return !checker.stopped() && checker.connect(old.front().data(), old.back().data(), kept, path_length(old));
        };
        while (next > at + 1 && !is_reached()) next -= checker.constraints().empty() ? 1 : (next - at) / 2;
        if (next == at + 1) kept.push_back(path[next]);
        at = next;
    }
    path = std::move(kept);
}

// The place at `length` along the path: its segment and the fraction within.
std::pair<std::size_t, double> place_at(const Points& path, double length) {
    for (std::size_t i = 0; i + 1 < path.size(); ++i) {
        const double step = distance(path[i], path[i + 1]);
        if (length < step || i + 2 == path.size()) return {i, step > 0.0 ? std::min(1.0, length / step) : 0.0};
        length -= step;
    }
    return {0, 0.0};
}

void cut(Points& path, PathChecker& checker, Random& random) {
    const double length = path_length(path);
    double from = length * random.uniform(), to = length * random.uniform();
    if (from > to) std::swap(from, to);
    const auto [first, first_fraction] = place_at(path, from);
    const auto [last, last_fraction] = place_at(path, to);
    if (first == last) return;
    std::vector<double> a = between(path[first], path[first + 1], first_fraction);
    std::vector<double> b = between(path[last], path[last + 1], last_fraction);
    if (distance(a, b) > 0.999 * (to - from)) return;
    Points next(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(first) + 1);
    next.push_back(a);
    if (!checker.connect(a.data(), b.data(), next, 0.999 * (to - from))) return;
    next.insert(next.end(), path.begin() + static_cast<std::ptrdiff_t>(last) + 1, path.end());
    path = std::move(next);
}

// Cuts the corners off where a path with constraints, which are curved, turns softly: the arm need not stop there.
void round_corners(Points& path, PathChecker& checker) {
    Points rounded{path.front()};
    for (std::size_t i = 1; i + 1 < path.size(); ++i) {
        const double before = distance(path[i - 1], path[i]), after = distance(path[i], path[i + 1]);
        const double chord = distance(path[i - 1], path[i + 1]);
        const double cosine = (chord * chord - before * before - after * after) / (2.0 * before * after);
        Points cut{between(path[i], path[i - 1], 0.25)};
        const std::vector<double> end = between(path[i], path[i + 1], 0.25);
        if (cosine > 0.8 && cosine < 0.9955 && !checker.stopped() && checker.connect(cut[0].data(), end.data(), cut))
            rounded.insert(rounded.end(), cut.begin(), cut.end());
        else rounded.push_back(path[i]);
    }
    rounded.push_back(path.back());
    path = std::move(rounded);
}

}  // namespace

double path_length(const Points& path) {
    double length = 0.0;
    for (std::size_t i = 0; i + 1 < path.size(); ++i) length += distance(path[i], path[i + 1]);
    return length;
}

void shorten_path(Points& path, PathChecker& checker, std::int64_t iterations, std::uint64_t seed) {
    if (iterations <= 0) return;
    drop_points(path, checker);
    Random random(seed, 1);
    for (std::int64_t i = 0; i < iterations && path.size() > 2 && !checker.stopped(); ++i) cut(path, checker, random);
    if (path.size() > 2) drop_points(path, checker);
    for (int round = 0; round < 3 && !checker.constraints().empty(); ++round) round_corners(path, checker);
}

}  // namespace tmkit
