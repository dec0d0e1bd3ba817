// Path shortening by removal of points and cuts of corners.
#include <algorithm>
#include <cmath>

#include "search/path_checker.hpp"

namespace tmkit {
namespace {

std::vector<double> interpolate_points(const std::vector<double>& a, const std::vector<double>& b,
                                       double fraction) {
    std::vector<double> point(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) point[i] = a[i] + fraction * (b[i] - a[i]);
    return point;
}

// From each point, move straight to the farthest later point that can be reached. Paths with
// constraints have many points: half of the remaining ones are skipped after each failure.
void drop_points(Points& path, PathChecker& checker) {
    Points result{path.front()};
    for (std::size_t position = 0; position + 1 < path.size();) {
        std::size_t next = path.size() - 1;
        const auto is_reached = [&] {
            const Points old(path.begin() + position, path.begin() + next + 1);
            return !checker.should_stop() && checker.connect(old.front().data(), old.back().data(),
                                                             result, true, path_length(old));
        };
        while (next > position + 1 && !is_reached())
            next -= checker.constraints().empty() ? 1 : (next - position) / 2;
        if (next == position + 1) result.push_back(path[next]);
        position = next;
    }
    path = std::move(result);
}

// Smallest fraction of the length for which a corner is cut.
constexpr double least_gain = 0.002;

// A straight motion that replaces a corner: from a point of the path, before which `first` points
// are kept, to one after which those from `last` on are.
struct Cut {
    std::size_t corner = 0, first = 0, last = 0;
    double gain = 0.0;
    std::vector<double> a, b;
};

Cut cut_at(const Points& path, const std::vector<double>& lengths, std::size_t corner,
           double reach) {
    Cut cut{corner};
    const auto place = [&](double position, std::size_t segment) {
        const double from = position - lengths[segment], left = lengths[segment + 1] - position;
        return from < 1e-9 ? path[segment]
               : left < 1e-9
                   ? path[segment + 1]
                   : interpolate_points(path[segment], path[segment + 1], from / (from + left));
    };
    std::size_t before = corner - 1, after = corner;
    while (before > 0 && lengths[before] > lengths[corner] - reach) --before;
    while (after + 2 < path.size() && lengths[after + 1] < lengths[corner] + reach) ++after;
    cut.a = place(lengths[corner] - reach, before);
    cut.b = place(lengths[corner] + reach, after);
    cut.first = cut.a == path[before] ? before : before + 1;
    cut.last = cut.b == path[after + 1] ? after + 1 : after;
    cut.gain = 2.0 * reach - distance(cut.a, cut.b);
    return cut;
}

// Cut the corner with the largest possible gain, from a point before it to one as far behind, along
// the path; half as far after each failure.
void cut_corners(Points& path, PathChecker& checker, std::int64_t tries) {
    std::vector<double> reaches(path.size(), std::numeric_limits<double>::infinity());
    for (; tries > 0 && path.size() > 2 && !checker.should_stop(); --tries) {
        std::vector<double> lengths{0.0};
        for (std::size_t i = 1; i < path.size(); ++i)
            lengths.push_back(lengths.back() + distance(path[i - 1], path[i]));
        Cut best;
        for (std::size_t i = 1; i + 1 < path.size(); ++i) {
            reaches[i] = std::min({reaches[i], lengths[i], lengths.back() - lengths[i]});
            Cut cut = cut_at(path, lengths, i, reaches[i]);
            if (cut.gain > best.gain) best = std::move(cut);
        }
        if (best.gain < least_gain * lengths.back()) return;
        const auto first = static_cast<std::ptrdiff_t>(best.first),
                   last = static_cast<std::ptrdiff_t>(best.last);
        Points next(path.begin(), path.begin() + first);
        next.push_back(best.a);
        const double reach = reaches[best.corner];
        if (!checker.connect(best.a.data(), best.b.data(), next, true,
                             2.0 * reach - 0.5 * best.gain)) {
            reaches[best.corner] *= 0.5;
            continue;
        }
        std::vector<double> result(reaches.begin(), reaches.begin() + first);
        result.resize(next.size(), reach);
        next.insert(next.end(), path.begin() + last + 1, path.end());
        result.insert(result.end(), reaches.begin() + last + 1, reaches.end());
        path = std::move(next);
        reaches = std::move(result);
    }
}

// Cut corners of a path with constraints, which is curved, at slight turns: the arm need not stop
// there.
void round_corners(Points& path, PathChecker& checker) {
    Points rounded{path.front()};
    for (std::size_t i = 1; i + 1 < path.size(); ++i) {
        const double before = distance(path[i - 1], path[i]),
                     after = distance(path[i], path[i + 1]);
        const double chord = distance(path[i - 1], path[i + 1]);
        const double cosine =
            (chord * chord - before * before - after * after) / (2.0 * before * after);
        Points cut{interpolate_points(path[i], path[i - 1], 0.25)};
        const std::vector<double> end = interpolate_points(path[i], path[i + 1], 0.25);
        if (cosine > 0.8 && cosine < 0.9955 && !checker.should_stop() &&
            checker.connect(cut[0].data(), end.data(), cut, true))
            rounded.insert(rounded.end(), cut.begin(), cut.end());
        else rounded.push_back(path[i]);
    }
    rounded.push_back(path.back());
    path = std::move(rounded);
}

}  // namespace

void shorten_path(Points& path, PathChecker& checker, std::int64_t iterations) {
    if (iterations <= 0) return;
    drop_points(path, checker);
    cut_corners(path, checker, iterations);
    if (checker.constraints().empty()) return;
    if (path.size() > 2) drop_points(path, checker);
    for (int round = 0; round < 3; ++round) round_corners(path, checker);
}

}  // namespace tmkit
