// Convex hulls of point sets.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tmkit/pose.hpp"

namespace tmkit {

struct Hull {
    std::vector<std::int32_t> vertices;  // numbers of the points that are corners of the hull
    std::vector<std::array<std::int32_t, 3>>
        triangles;  // numbers into `vertices`, counter-clockwise from outside
};

// The convex hull of `count` points given as 3 count coordinates. Points within extent / 2^25 of
// its surface may be left out. Empty when the points have no volume at that precision. Flat sides
// are triangulated so that no more than `most_edges` meet in a corner; a true apex may have more.
// O(n log n) for points in general, O(n^2) at worst.
Hull convex_hull(const double* coordinates, std::size_t count, std::size_t most_edges = 254);

}  // namespace tmkit
