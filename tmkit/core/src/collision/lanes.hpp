// Eight configurations of a motion at once: the poses of shapes, and the pairs that are certainly
// apart.
//
// Computed in single precision and conservatively: pairs are apart by at least `slack`, far above
// rounding errors, so only the other pairs need exact results. The same source is compiled for
// every x86-64 and for AVX2. No product is fused, so all processors get the same results. It uses
// no library function, which the two would share.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tmkit::lanes {

constexpr int width = 8;
typedef float Floats
    __attribute__((vector_size(4 * width), aligned(4 * width)));  // NOLINT(modernize-use-using)

constexpr float endless = 1e30f;  // [m], of half spaces, which alone have one point

struct Vector {
    Floats x, y, z;
};

// A joint with the link that it carries: see CollisionView::Model::Link.
struct Link {
    std::int32_t parent;  // -1: the world
    bool prismatic;
    float rotation[9], translation[3];  // parent_from_joint, row by row
};

struct Joint {
    Floats value, change;  // change of the value in half an interval
};

struct Pose {
    Vector columns[3], translation;
};

// Motion of a link to first order in half an interval, at the root's origin.
struct Twist {
    Vector linear, angular;
};

// A shape: its box, in whose axes and about whose centre are the points that, grown by a radius,
// enclose it.
struct Geometry {
    std::int32_t link;
    float rotation[9], center[3];  // of the box, in the link
    float half[3], radius;
    float fuzz;  // rounding error [m]
    bool is_box;
    // Of its own axes, the longest; up to three balls inside the shape on it.
    std::int32_t axis, ball_count;
    float offsets[3], radii[3];  // of the balls
    const float* points;         // x, y, z of each
    std::int32_t count;
    // The numbers of the points that are farthest in some direction, by cells of directions
    // (SupportTable); or none.
    const std::uint32_t *first, *farthest;
    std::int32_t side;
    // Upper bound of the motion of its points beyond the first order, for half of the motion [m].
    float remainder;
};

struct PlacedGeometry {
    const Geometry* geometry;
    Vector columns[3], center, span;  // span: half of its box in root axes
    Vector moves, turns;              // of its centre, in half an interval
    // Upper bounds of the motion of its points beyond the first order, and in all [m].
    Floats remainder, reach;
};

// Lanes as bits.
struct Overlap {
    unsigned swept, middle;  // boxes that are near in the interval, and in its middle
};

// Two placed geometries by number.
struct Pair {
    std::int32_t a, b;
};

// Eight boxes.
struct Boxes {
    Floats lower[3], upper[3];
};

struct Kernels {
    // Place the links at values of their joints, with their motions for changes of these. Without
    // motion there are no twists, here and below.
    void (*place)(const Link* links, std::size_t count, const Joint* joints, Pose* poses,
                  Twist* twists);
    void (*place_geometry)(const Geometry& geometry, const Pose* poses, const Twist* twists,
                           const Floats& half, PlacedGeometry& placed);
    // The box of a placed geometry during the interval in all lanes, in root axes: its lower and
    // upper corner.
    void (*enclose)(const PlacedGeometry& placed, float* box);
    // Return the boxes of up to eight groups within a distance of such a box, as bits.
    std::uint64_t (*overlapping_boxes)(const float* box, float within, const Boxes* groups,
                                       std::size_t count);
    // Find pairs of placed geometries, by number, whose boxes are within a distance in some lane;
    // return their count.
    std::size_t (*overlapping_pairs)(const PlacedGeometry* placed, const Pair* pairs,
                                     std::size_t count, float within, std::int32_t* results);
    // Return the lanes in which the boxes of two placed geometries are within a distance; twists
    // are those of their common link. There, `normal` is that of the side along which they overlap
    // least, from b to a.
    Overlap (*overlap)(const PlacedGeometry& a, const PlacedGeometry& b, const Twist* common,
                       float within, Vector& normal);
    // Return the lanes in which they certainly overlap in the middle, deeper than a distance.
    unsigned (*inside)(const PlacedGeometry& a, const PlacedGeometry& b, float by);
    // Return those of the given lanes in which they keep a distance along a direction, which points
    // from b to a in the axes of b; by default along a normal in root axes. Movements beyond the
    // first order are part of the distance. `is_close` bounds the others closely, at more cost.
    unsigned (*apart)(const PlacedGeometry& a, const PlacedGeometry& b, const Twist* common,
                      const float* direction, const Vector* normal, float within,
                      unsigned lane_mask, bool is_close);
    // Upper bound of their approach in half an interval to first order, along a direction if given,
    // by lane.
    void (*reach)(const PlacedGeometry& a, const PlacedGeometry& b, const Twist& common,
                  const float* direction, float* results);
    // Return the first of the nodes that are nearest to a point. Eight nodes are a block, with the
    // first coordinate of each, then the second ones, and so on.
    std::int32_t (*nearest)(const Floats* blocks, std::size_t count, std::size_t size,
                            const double* point);
};

// The fastest kernels that this processor supports.
const Kernels& kernels();

}  // namespace tmkit::lanes
