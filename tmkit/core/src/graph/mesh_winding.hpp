// Orientation of the triangles of a mesh.
#pragma once

#include <cstdint>
#include <vector>

namespace tmkit {

// Return the triangles (three indices each) of a mesh (three numbers a vertex) with consistent
// orientation: one row for each given one, in order, reversed if it was inverted.
//
// Vertices at one position are merged. A part is connected by edges that two triangles share. The
// triangles of a closed part face outwards. A part inside another closed part may be a cavity, and
// keeps the orientation of most of its triangles, as do open parts. In a mesh without closed parts
// all triangles are reversed if its volume about its middle would be negative. A part with one side
// only (a Moebius strip) is unchanged. O(n log n).
std::vector<std::int32_t> outward_faces(const std::vector<double>& vertices,
                                        const std::vector<std::int32_t>& faces);

}  // namespace tmkit
