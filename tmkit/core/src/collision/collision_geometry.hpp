// Solids of the narrow phase: convex solids, triangle meshes, half spaces, and bodies of many
// convex pieces.
//
// A point cloud is a body of balls, a height field one of prisms (two under each cell, from the
// surface down to the floor). Their pieces are in a tree of boxes, and a solid that touches such a
// body touches a few of its pieces. Any two kinds can therefore be compared, a cloud with a cloud
// too, with three implemented pairs (convex with convex, convex with triangles, and a half space
// with either). Exact for balls and prisms, while coal's octree rounds points to voxels and its
// height field has no distances. Half spaces never touch each other.
//
// Lengths are [m]. A gap is a signed distance; for a body of pieces it is that of its nearest or
// deepest piece.
#pragma once

#include <coal/BV/AABB.h>
#include <coal/collision_data.h>
#include <coal/narrowphase/gjk.h>
#include <coal/shape/convex.h>
#include <coal/shape/geometric_shapes.h>

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "collision/support_table.hpp"
#include "tmkit/error.hpp"
#include "tmkit/shape.hpp"

namespace tmkit {

using Bounds = coal::AABB;
inline Bounds inflated(const Bounds& box, double by) { return {box, coal::Vec3s::Constant(by)}; }
inline Bounds box_around(const coal::Vec3s& center, const coal::Vec3s& half) {
    return {Bounds(center), half};
}
inline Eigen::Index longest_side(const Bounds& box) {  // of equal ones the first
    Eigen::Index side = 0;
    (box.max_ - box.min_).maxCoeff(&side);
    return side;
}

enum class GeometryKind : std::uint8_t { convex, triangles, plane, pieces };

class CoalStructure;

// A shape, or a piece of one, in the narrow phase. It owns nothing.
struct CollisionGeometry {
    GeometryKind kind = GeometryKind::convex;
    const coal::CollisionGeometry* coal_geometry = nullptr;  // of a convex solid or triangles
    const CoalStructure* structure = nullptr;                // of all but single pieces
    const coal::CollisionGeometry* hull = nullptr;  // of triangles that may penetrate; else null
    // Box in its own axes; a plane has none.
    coal::Vec3s center = coal::Vec3s::Zero(), half = coal::Vec3s::Zero();
};

// Storage for a prism of a height field during a comparison; nested comparisons need one each.
// Created on demand.
class PrismWorkspace {
public:
    // The prism under three corners, down to z = bottom.
    const coal::Convex<coal::Triangle>& prism(const std::array<coal::Vec3s, 3>& top, double bottom);

private:
    std::shared_ptr<std::vector<coal::Vec3s>> corners_;
    std::unique_ptr<coal::Convex<coal::Triangle>> prism_;
};

// Workspace; one for each thread.
struct NarrowPhaseWorkspace {
    coal::details::GJK gjk{128, 1e-6};
    TabledDifference difference;
    coal::Box box{1.0, 1.0, 1.0};
    std::array<PrismWorkspace, 2> prisms;  // outer, inner
};

// The convex pieces of a point cloud or a height field, in a tree of boxes. Immutable; refers to
// the shape.
class Pieces {
public:
    explicit Pieces(const Shape& shape);

    // Visit pieces in order of their keys, approximately. `key(bounds)` returns a lower bound of
    // the keys within a box; those above `limit`, which visit(piece) may lower, are skipped.
    // `enter(bounds, count)` may skip a box of `count` pieces. Stops if visit returns true.
    template <class Key, class Enter, class Visit>
    bool visit(const double& limit, Key&& key, Enter&& enter, Visit&& visit) const;

    // A piece with its pose, given that of the whole.
    CollisionGeometry piece(std::int32_t number, const coal::Transform3s& pose,
                            PrismWorkspace& workspace, coal::Transform3s& piece_pose) const;
    // The box around a piece, in the axes of the whole.
    Bounds bounds(std::int32_t number) const;

private:
    struct Node {
        Bounds bounds;
        std::int32_t begin, end;  // its pieces in `order_`
        std::int32_t second;      // number of its second child, the first follows it; 0 for a leaf
    };
    struct Cells {  // rows and columns of cells, half open
        std::int32_t row_begin, row_end, column_begin, column_end;
    };
    std::int32_t build_points(std::int32_t begin, std::int32_t end);
    std::int32_t build_cells(const Cells& cells);
    std::int32_t add_leaf(std::int32_t begin);
    void join(std::int32_t node, std::int32_t first, std::int32_t second);
    coal::Vec3s prism_corner(std::int32_t number, int corner) const;

    const Shape* shape_;
    std::unique_ptr<coal::CollisionGeometry> ball_;  // of a point cloud
    std::vector<std::int32_t> order_;                // numbers of pieces, leaf by leaf
    std::vector<Node> nodes_;
};

// Structure of a Shape at one level, or the error of its construction.
class CoalStructure : public CollisionStructure {
public:
    const Shape* shape = nullptr;
    GeometryKind kind = GeometryKind::convex;
    std::unique_ptr<coal::CollisionGeometry> coal_geometry;
    std::unique_ptr<Pieces> pieces;
    Vector3 offset{};  // of the geometry's origin in the shape's axes
    coal::Vec3s center, half;
    // Points about the centre, x, y, z of each, whose hull grown by the radius encloses the shape;
    // see lanes.hpp.
    std::vector<float> points;
    double radius = 0.0;
    // Up to three balls inside, by offset from the centre along the longest axis of the box, and
    // radius.
    std::int32_t axis = 0;
    std::vector<std::pair<double, double>> balls;
    std::optional<Error> failure;

    CollisionGeometry geometry() const {
        return {kind, coal_geometry.get(), this, nullptr, center, half};
    }
};

// The structure of a shape at a level; built on first use. Throws Error(shape).
const CoalStructure& collision_structure(const Shape& shape, CollisionLevel level);
// The convex hull of a mesh, null when it has none.
const coal::CollisionGeometry* hull_or_null(const Shape& shape);

coal::Transform3s to_coal(const Pose& pose);

// The box of a solid at a pose; huge numbers in infinite directions of a plane.
Bounds bounds_of(const CollisionGeometry& geometry, const coal::Transform3s& pose);

template <class Key, class Enter, class Visit>
bool Pieces::visit(const double& limit, Key&& key, Enter&& enter, Visit&& visit_piece) const {
    struct Waiting {
        std::int32_t node;
        double key;
    };
    std::array<Waiting, 64> stack;  // at most one for each level of the tree, which halves
    std::size_t waiting = 0;
    stack[waiting++] = {0, key(nodes_[0].bounds)};
    while (waiting > 0) {
        const Waiting next = stack[--waiting];
        if (next.key > limit) continue;
        const Node& node = nodes_[next.node];
        if (node.second == 0) {
            for (std::int32_t i = node.begin; i < node.end; ++i) {
                const Bounds box = bounds(order_[i]);
                if (key(box) <= limit && enter(box, 1) && visit_piece(order_[i])) return true;
            }
            continue;
        }
        if (!enter(node.bounds, node.end - node.begin)) continue;
        Waiting near_child{next.node + 1, key(nodes_[next.node + 1].bounds)},
            far{node.second, key(nodes_[node.second].bounds)};
        if (far.key < near_child.key) std::swap(near_child, far);
        stack[waiting++] = far;
        stack[waiting++] = near_child;
    }
    return false;
}

}  // namespace tmkit
