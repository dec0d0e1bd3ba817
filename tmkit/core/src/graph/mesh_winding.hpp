// Which way the triangles of a mesh look.
#pragma once

#include <cstdint>
#include <vector>

namespace tmkit {

// The triangles (three indices each) of a mesh (three numbers a vertex), those turned over that do
// not fit the others: one row for each given, in order, reversed where it was turned.
//
// Vertices in one place are one. A part is what hangs together by edges that two triangles share.
// The triangles of a closed part look outwards; one that lies inside another closed part may be a
// cavity, and keeps what most of its triangles have. So do open parts; of a mesh without closed
// parts all are reversed where its volume about its middle would be negative. A part with one side
// only (a Moebius strip) stays as it is. O(n log n).
std::vector<std::int32_t> outward_faces(const std::vector<double>& vertices,
                                        const std::vector<std::int32_t>& faces);

}  // namespace tmkit
