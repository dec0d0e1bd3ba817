// Farthest points of a convex hull, by direction: the main query of GJK.
#pragma once

#include <coal/narrowphase/minkowski_difference.h>
#include <coal/shape/convex.h>
#include <coal/shape/geometric_shapes.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace tmkit {

// Directions are divided into the cells of grids on the faces of a cube. Each stores the corners
// that are farthest along some direction in it: a few out of hundreds. Immutable.
class SupportTable {
public:
    // O(corners).
    explicit SupportTable(std::shared_ptr<const std::vector<coal::Vec3s>> corners);

    // The corner that is farthest along a direction of any length.
    const coal::Vec3s& farthest(const coal::Vec3s& direction) const;

    // Cells to a side of a grid; by cell the index of its first corner; and the numbers of all
    // corners, cell by cell.
    int side() const { return side_; }
    const std::uint32_t* first() const { return first_.data(); }
    const std::uint32_t* corners() const { return farthest_.data(); }

private:
    std::shared_ptr<const std::vector<coal::Vec3s>> corners_;
    int side_ = 1;  // of a grid, in cells
    // By cell: index of its first corner.
    std::vector<std::uint32_t> first_, farthest_;
};

// A hull that has such a table.
class TabledHull final : public coal::Convex<coal::Triangle> {
public:
    TabledHull(const std::shared_ptr<std::vector<coal::Vec3s>>& corners,
               const std::shared_ptr<std::vector<coal::Triangle>>& triangles);

    const SupportTable table;
};

// Coal's difference of two shapes, which looks up the corners of such hulls.
struct TabledDifference : coal::details::MinkowskiDiff {
    void set_shapes(const coal::ShapeBase& a, const coal::ShapeBase& b,
                    const coal::Transform3s& pose_a, const coal::Transform3s& pose_b);

    struct KnownHull {  // of a shape: null for others
        const SupportTable* table;
        const coal::Box* box;
    };
    KnownHull hulls[2]{};
};

}  // namespace tmkit
