// Eight places of a motion at once: where shapes stand there, and which pairs are surely apart.
//
// In single precision and conservative: what is said to be apart is so by `slack`, far above what
// rounding does, so that only what is left needs exact answers. The same source is compiled for
// every x86-64 and for AVX2; as no product is fused, all processors find the same. It uses no
// function of a library, which the two would share.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tmkit::lanes {

constexpr int width = 8;
typedef float Floats
    __attribute__((vector_size(4 * width), aligned(4 * width)));  // NOLINT(modernize-use-using)

constexpr float endless = 1e30f;  // metres, of half spaces, which alone have one point

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
    Floats value, change;  // the latter in half an interval
};

struct Pose {
    Vector columns[3], translation;
};

// How a link moves to first order in half an interval, at the root's origin.
struct Twist {
    Vector linear, angular;
};

// A shape: the box around it, in whose axes and about whose centre are the points that, grown by a
// radius, enclose it.
struct Geometry {
    std::int32_t link;
    float rotation[9], center[3];  // of the box, in the link
    float half[3], radius;
    float fuzz;  // metres, for what rounding does to it
    bool is_box;
    std::int32_t axis,
        ball_count;  // of its own axes, the longest; up to three balls within the shape on it
    float offsets[3], radii[3];  // of the balls
    const float* points;         // x, y, z of each
    std::int32_t count;
    // The numbers of the points that are farthest in some direction, by cells of directions
    // (SupportTable); or none.
    const std::uint32_t *first, *farthest;
    std::int32_t side;
    float rest;  // metres, at most, that its points move beyond the first order, for half of the
                 // motion
};

struct PlacedGeometry {
    const Geometry* geometry;
    Vector columns[3], center, span;  // span: half of the box around it in the axes of the root
    Vector moves, turns;              // of its centre, in half an interval
    Floats rest, reach;  // metres, that its points move at most beyond the first order, and in all
};

// Lanes as bits.
struct Overlap {
    unsigned swept, middle;  // boxes that come near in the interval, and in its middle
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
    // Places the links at values of their joints, with what happens when these change. Where
    // nothing moves there are no twists, here and below.
    void (*place)(const Link* links, std::size_t count, const Joint* joints, Pose* poses,
                  Twist* twists);
    void (*place_geometry)(const Geometry& geometry, const Pose* poses, const Twist* twists,
                           const Floats& half, PlacedGeometry& placed);
    // The box around a placed geometry during the interval in all lanes, in the axes of the root:
    // its lower and upper corner.
    void (*enclose)(const PlacedGeometry& placed, float* box);
    // Which of up to eight groups of boxes come within a distance of such a box, as bits.
    std::uint64_t (*overlapping_boxes)(const float* box, float within, const Boxes* groups,
                                       std::size_t count);
    // Of pairs of placed geometries, by number, those whose boxes come within a distance in some
    // lane; how many.
    std::size_t (*overlapping_pairs)(const PlacedGeometry* placed, const Pair* pairs,
                                     std::size_t count, float within, std::int32_t* found);
    // Where the boxes of two placed geometries come within a distance; twists are those of the link
    // that carries both. There, `normal` is that of the side along which they overlap least, from b
    // to a.
    Overlap (*overlap)(const PlacedGeometry& a, const PlacedGeometry& b, const Twist* common,
                       float within, Vector& normal);
    // Where they surely overlap in the middle, deeper than a distance.
    unsigned (*inside)(const PlacedGeometry& a, const PlacedGeometry& b, float by);
    // Where, of the lanes that are wanted, they keep a distance along a direction, which points
    // from b to a in the axes of b; if none is given, along a normal in those of the root.
    unsigned (*apart)(const PlacedGeometry& a, const PlacedGeometry& b, const Twist* common,
                      const float* direction, const Vector* normal, float within, unsigned wanted);
    // How much nearer they come in half an interval at most, along a direction if it is given, by
    // lane.
    void (*reach)(const PlacedGeometry& a, const PlacedGeometry& b, const Twist& common,
                  const float* direction, float* found);
    // Of nodes of so many coordinates each, the first of the nearest to each point.
    void (*nearest)(const float* nodes, std::int32_t count, std::int32_t size, const Floats* points,
                    std::int32_t* found);
};

// The fastest that this processor runs.
const Kernels& kernels();

}  // namespace tmkit::lanes
