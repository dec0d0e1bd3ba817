// Convex hulls of point sets.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tmkit/pose.hpp"

namespace tmkit {

struct Hull {
    std::vector<std::int32_t> vertices;  // numbers of the points that are corners of the hull
    // Numbers into `vertices`, counter-clockwise from outside.
    std::vector<std::array<std::int32_t, 3>> triangles;
};

// The convex hull of `count` points given as 3 count coordinates. Points within extent / 2^25 of
// its surface may be omitted. Empty if the points have no volume at that precision. Flat sides are
// triangulated with at most `most_edges` edges at a corner; a true apex may have more. O(n log n)
// for points in general, O(n^2) at worst.
Hull convex_hull(const double* coordinates, std::size_t count, std::size_t most_edges = 254);

}  // namespace tmkit
