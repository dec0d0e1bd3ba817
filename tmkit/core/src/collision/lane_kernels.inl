// Included by a source for each set of instructions, within its own namespace.
#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "collision/lanes.hpp"

namespace tmkit::lanes {
namespace {

typedef std::int32_t Integers
    __attribute__((vector_size(4 * width), aligned(4 * width)));  // NOLINT(modernize-use-using)
#define INLINE __attribute__((always_inline)) inline

INLINE Floats absolute(const Floats& x) { return (Floats)((Integers)x & 0x7FFFFFFF); }
#if defined(__AVX2__)
INLINE Floats broadcast(float value) { return value - Floats{}; }
INLINE Integers above(const Floats& a, const Floats& b) { return a > b; }
INLINE Integers at_most(const Floats& a, const Floats& b) { return a <= b; }
INLINE Floats select(const Integers& mask, const Floats& a, const Floats& b) {
    return mask ? a : b;
}
#else
// By halves: with narrower registers, compilers do this number by number.
#define LOW(x) __builtin_shufflevector(x, x, 0, 1, 2, 3)
#define HIGH(x) __builtin_shufflevector(x, x, 4, 5, 6, 7)
#define JOINED(low, high) __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7)
typedef float Half __attribute__((vector_size(16), aligned(16)));  // NOLINT(modernize-use-using)
INLINE Floats broadcast(float value) {
    // Otherwise: eight stores of one number, and a load that waits for them, a third of all time.
    const Half half = value - Half{};
    Floats result;
    __builtin_memcpy(&result, &half, sizeof(half));
    __builtin_memcpy((char*)&result + sizeof(half), &half, sizeof(half));
    return result;
}
INLINE Integers above(const Floats& a, const Floats& b) {
    return JOINED(LOW(a) > LOW(b), HIGH(a) > HIGH(b));
}
INLINE Integers at_most(const Floats& a, const Floats& b) {
    return JOINED(LOW(a) <= LOW(b), HIGH(a) <= HIGH(b));
}
INLINE Floats select(const Integers& mask, const Floats& a, const Floats& b) {
    return (Floats)((mask & (Integers)a) | (~mask & (Integers)b));
}
#endif
INLINE Floats larger(const Floats& a, const Floats& b) { return select(above(a, b), a, b); }
INLINE Floats smaller(const Floats& a, const Floats& b) { return select(above(b, a), a, b); }
INLINE Floats root(const Floats& x) {
    Floats result;
    for (int i = 0; i < width; ++i) result[i] = __builtin_sqrtf(x[i]);
    return result;
}
INLINE unsigned bits(const Integers& mask) {
#if defined(__AVX2__)
    return static_cast<unsigned>(_mm256_movemask_ps((__m256)mask));
#elif defined(__SSE2__)
    return static_cast<unsigned>(_mm_movemask_ps((__m128)LOW(mask)) |
                                 _mm_movemask_ps((__m128)HIGH(mask)) << 4);
#else
    unsigned result = 0;
    for (int i = 0; i < width; ++i) result |= (mask[i] & 1u) << i;
    return result;
#endif
}

INLINE std::int32_t count_of(unsigned mask) {
    std::int32_t count = 0;
    for (; mask; mask &= mask - 1) ++count;
    return count;
}

INLINE Vector operator+(const Vector& a, const Vector& b) {
    return {a.x + b.x, a.y + b.y, a.z + b.z};
}
INLINE Vector operator-(const Vector& a, const Vector& b) {
    return {a.x - b.x, a.y - b.y, a.z - b.z};
}
INLINE Vector operator*(const Floats& a, const Vector& b) { return {a * b.x, a * b.y, a * b.z}; }
INLINE Vector operator*(float a, const Vector& b) { return broadcast(a) * b; }
INLINE Floats dot(const Vector& a, const Vector& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
INLINE Floats length(const Vector& a) { return root(dot(a, a)); }
INLINE Vector absolute(const Vector& a) { return {absolute(a.x), absolute(a.y), absolute(a.z)}; }
INLINE Vector cross(const Vector& a, const Vector& b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
// Sum of columns by numbers, and numbers of a vector along columns.
INLINE Vector combine(const Vector* columns, const float* by) {
    return by[0] * columns[0] + by[1] * columns[1] + by[2] * columns[2];
}
INLINE Vector project(const Vector* columns, const Vector& v) {
    return {dot(columns[0], v), dot(columns[1], v), dot(columns[2], v)};
}
// A column of a matrix that is stored row by row.
INLINE Vector rotate(const Vector* columns, const float* rotation, int column) {
    return rotation[column] * columns[0] + rotation[column + 3] * columns[1] +
           rotation[column + 6] * columns[2];
}

// For angles up to some thousand; after Moshier's Cephes library (sinf, cosf), with its
// polynomials.
INLINE void sine_cosine(const Floats& angle, Floats& sine, Floats& cosine) {
    const Floats shift = broadcast(12582912.0f);  // 1.5 * 2^23: rounds the other summand
    const Floats turns = (angle * 0.636619772f + shift) - shift;
    const Floats r = (angle - turns * 1.5703125f) - turns * 4.83826794896619e-4f, s = r * r;
    const Floats sin =
        r + r * s * (((-1.9515295891e-4f * s) + 8.3321608736e-3f) * s - 1.6666654611e-1f);
    const Floats cos =
        1.0f - 0.5f * s +
        s * s * ((2.443315711809948e-5f * s - 1.388731625493765e-3f) * s + 4.166664568298827e-2f);
    const Integers quarter = __builtin_convertvector(turns, Integers);
    const Integers swapped = -(quarter & 1);
    const Floats first = select(swapped, cos, sin), second = select(swapped, sin, cos);
    sine = (Floats)((Integers)first ^ ((quarter & 2) << 30));
    cosine = (Floats)((Integers)second ^ (((quarter + 1) & 2) << 30));
}

void place(const Link* links, std::size_t count, const Joint* joints, Pose* poses, Twist* twists) {
    for (std::size_t i = 0; i < count; ++i) {
        const Link& link = links[i];
        Pose pose;
        if (link.parent < 0) {
            for (int k = 0; k < 3; ++k)
                pose.columns[k] = {broadcast(link.rotation[k]), broadcast(link.rotation[k + 3]),
                                   broadcast(link.rotation[k + 6])};
            pose.translation = {broadcast(link.translation[0]), broadcast(link.translation[1]),
                                broadcast(link.translation[2])};
        } else {
            const Pose& parent = poses[link.parent];
            for (int k = 0; k < 3; ++k) pose.columns[k] = rotate(parent.columns, link.rotation, k);
            pose.translation = parent.translation + combine(parent.columns, link.translation);
        }
        const Floats value = joints[i].value;
        if (link.prismatic) pose.translation = pose.translation + value * pose.columns[2];
        else {
            Floats s, c;
            sine_cosine(value, s, c);
            const Vector x = pose.columns[0], y = pose.columns[1];
            pose.columns[0] = c * x + s * y;
            pose.columns[1] = c * y - s * x;
        }
        poses[i] = pose;
        if (!twists) continue;
        const Vector turn = joints[i].change * pose.columns[2];
        Twist& twist = twists[i + 1] = twists[link.parent + 1];
        if (link.prismatic) twist.linear = twist.linear + turn;
        else {
            twist.linear = twist.linear + cross(pose.translation, turn);
            twist.angular = twist.angular + turn;
        }
    }
}

// Upper bound of the motion of the points of an item in half an interval, to first order.
INLINE Floats reach(const PlacedGeometry& placed, const Vector& moves, const Vector& turns) {
    const float* half = placed.geometry->half;
    const float radius = __builtin_sqrtf(half[0] * half[0] + half[1] * half[1] + half[2] * half[2]);
    return length(moves) + radius * length(turns);
}

void place_geometry(const Geometry& geometry, const Pose* poses, const Twist* twists,
                    const Floats& half, PlacedGeometry& placed) {
    placed.geometry = &geometry;
    if (geometry.link < 0) {
        for (int k = 0; k < 3; ++k)
            placed.columns[k] = {broadcast(geometry.rotation[k]),
                                 broadcast(geometry.rotation[k + 3]),
                                 broadcast(geometry.rotation[k + 6])};
        placed.center = {broadcast(geometry.center[0]), broadcast(geometry.center[1]),
                         broadcast(geometry.center[2])};
    } else {
        const Pose& link = poses[geometry.link];
        for (int k = 0; k < 3; ++k) placed.columns[k] = rotate(link.columns, geometry.rotation, k);
        placed.center = link.translation + combine(link.columns, geometry.center);
    }
    if (geometry.link < 0 || !twists) {
        placed.moves = placed.turns = Vector{};
        placed.remainder = placed.reach = Floats{};
    } else {
        const Twist& twist = twists[geometry.link + 1];
        placed.turns = twist.angular;
        placed.moves = twist.linear + cross(twist.angular, placed.center);
        placed.remainder = (4.0f * geometry.remainder) * half * half;
        placed.reach = reach(placed, placed.moves, placed.turns) + placed.remainder;
    }
    placed.span = geometry.half[0] * absolute(placed.columns[0]) +
                  geometry.half[1] * absolute(placed.columns[1]) +
                  geometry.half[2] * absolute(placed.columns[2]);
    if (geometry.count == 1)
        placed.span = {broadcast(endless), broadcast(endless), broadcast(endless)};
}

void enclose(const PlacedGeometry& placed, float* box) {
    const Floats& by = placed.reach;
    const auto side = [&](int k, const Floats& center, const Floats& span) {
        Floats low = center - span - by, high = center + span + by;
        low = smaller(low, __builtin_shufflevector(low, low, 4, 5, 6, 7, 0, 1, 2, 3));
        high = larger(high, __builtin_shufflevector(high, high, 4, 5, 6, 7, 0, 1, 2, 3));
        low = smaller(low, __builtin_shufflevector(low, low, 2, 3, 0, 1, 6, 7, 4, 5));
        high = larger(high, __builtin_shufflevector(high, high, 2, 3, 0, 1, 6, 7, 4, 5));
        box[k] = low[0] < low[1] ? low[0] : low[1];
        box[k + 3] = high[0] > high[1] ? high[0] : high[1];
    };
    side(0, placed.center.x, placed.span.x);
    side(1, placed.center.y, placed.span.y);
    side(2, placed.center.z, placed.span.z);
}

std::uint64_t overlapping_boxes(const float* box, float within, const Boxes* groups,
                                std::size_t count) {
    Floats lower[3], upper[3];
    for (int k = 0; k < 3; ++k) {
        lower[k] = broadcast(box[k] - within);
        upper[k] = broadcast(box[k + 3] + within);
    }
    std::uint64_t results = 0;
    for (std::size_t i = 0; i < count; ++i) {
        Integers is_near =
            at_most(lower[0], groups[i].upper[0]) & at_most(groups[i].lower[0], upper[0]);
        for (int k = 1; k < 3; ++k)
            is_near &=
                at_most(lower[k], groups[i].upper[k]) & at_most(groups[i].lower[k], upper[k]);
        results |= static_cast<std::uint64_t>(bits(is_near)) << width * i;
    }
    return results;
}

// Lower bound of the distance of the boxes of two placed geometries in root axes.
INLINE Floats gap_of(const PlacedGeometry& a, const PlacedGeometry& b) {
    const Vector gap = absolute(b.center - a.center) - a.span - b.span;
    return larger(larger(gap.x, gap.y), gap.z);
}

std::size_t overlapping_pairs(const PlacedGeometry* placed, const Pair* pairs, std::size_t count,
                              float within, std::int32_t* results) {
    std::size_t size = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const PlacedGeometry &a = placed[pairs[i].a], &b = placed[pairs[i].b];
        const Integers is_near =
            at_most(gap_of(a, b), a.reach + b.reach + (within + b.geometry->fuzz));
        results[size] = static_cast<std::int32_t>(i);
        size += bits(is_near) != 0;
    }
    return size;
}

// The movements of an item less those of a link.
struct Relative {
    Vector moves, turns;
};
INLINE Relative relative(const PlacedGeometry& placed, const Twist& common) {
    return {placed.moves - common.linear - cross(common.angular, placed.center),
            placed.turns - common.angular};
}

// The fifteen axes of two boxes, the first of which grows: see BoxAgainstSolid.
template <bool moves>
Overlap overlap_of(const PlacedGeometry& a, const PlacedGeometry& b, const Twist* common,
                   float within, Vector& normal) {
    Floats limit = a.reach + b.reach + within;
    const Vector between = b.center - a.center;
    const Floats widest = gap_of(a, b);
    Integers swept = at_most(widest, limit);
    if (bits(swept) == 0) return {0, 0};
    if (moves && b.geometry->link >= 0) {
        const Relative of_a = relative(a, *common), of_b = relative(b, *common);
        limit = reach(a, of_a.moves, of_a.turns) + a.remainder + reach(b, of_b.moves, of_b.turns) +
                b.remainder + within;
        swept = at_most(widest, limit);
        if (bits(swept) == 0) return {0, 0};
    }
    const float *half_a = a.geometry->half, *half_b = b.geometry->half;
    Integers middle = swept;
    Floats r[3][3], size[3][3];
    const Vector to_b = project(a.columns, between);
    const Floats t[3] = {to_b.x, to_b.y, to_b.z};
    Floats most = broadcast(-1e30f);
    Integers side{};
    const auto look = [&](const Floats& apart, int number) __attribute__((always_inline)) {
        const Integers is_more = above(apart, most);
        most = select(is_more, apart, most);
        side = (is_more & number) | (~is_more & side);
    };
    const auto check = [&](const Floats& apart, const Floats& growth)
                           __attribute__((always_inline)) {
        swept &= at_most(apart, growth * limit);
        if (moves) middle &= at_most(apart, growth * within);
    };
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) {
            r[i][j] = dot(a.columns[i], b.columns[j]);
            size[i][j] = absolute(r[i][j]) + 1e-6f;
        }
        const Floats apart = absolute(t[i]) - half_a[i] - size[i][0] * half_b[0] -
                             size[i][1] * half_b[1] - size[i][2] * half_b[2];
        check(apart, broadcast(1.0f));
        look(apart, i);
    }
    if (bits(swept) == 0) return {0, 0};
    for (int j = 0; j < 3; ++j) {
        const Floats apart = absolute(t[0] * r[0][j] + t[1] * r[1][j] + t[2] * r[2][j]) -
                             half_b[j] - size[0][j] * half_a[0] - size[1][j] * half_a[1] -
                             size[2][j] * half_a[2];
        check(apart, broadcast(1.0f));
        look(apart, j + 3);
    }
    if (bits(swept) == 0) return {0, 0};
    for (int i = 0; i < 3; ++i) {
        const int i1 = (i + 1) % 3, i2 = (i + 2) % 3;
        for (int j = 0; j < 3; ++j) {
            const int j1 = (j + 1) % 3, j2 = (j + 2) % 3;
            check(absolute(t[i2] * r[i1][j] - t[i1] * r[i2][j]) - half_a[i1] * size[i2][j] -
                      half_a[i2] * size[i1][j] - half_b[j1] * size[i][j2] -
                      half_b[j2] * size[i][j1],
                  broadcast(1.0f));
        }
    }
    if (bits(swept) == 0) return {0, 0};
    normal = a.columns[0];
    for (int k = 1; k < 6; ++k) {
        const Vector& axis = k < 3 ? a.columns[k] : b.columns[k - 3];
        const Integers is_it = side == k;
        normal = {select(is_it, axis.x, normal.x), select(is_it, axis.y, normal.y),
                  select(is_it, axis.z, normal.z)};
    }
    const Integers sign = above(dot(normal, between), Floats{}) & (1 << 31);
    const auto turned_by = [&](const Floats& x) { return (Floats)((Integers)x ^ sign); };
    normal = {turned_by(normal.x), turned_by(normal.y), turned_by(normal.z)};
    return {bits(swept), moves ? bits(middle) : bits(swept)};
}

Overlap overlap(const PlacedGeometry& a, const PlacedGeometry& b, const Twist* common, float within,
                Vector& normal) {
    return common ? overlap_of<true>(a, b, common, within, normal)
                  : overlap_of<false>(a, b, nullptr, within, normal);
}

// Return whether balls of an item intersect a box, or balls of another.
INLINE Integers balls_meet(const PlacedGeometry& a, const PlacedGeometry& b, float by) {
    const Geometry &of_a = *a.geometry, &of_b = *b.geometry;
    Integers results{};
    for (std::int32_t i = 0; i < of_a.ball_count; ++i) {
        const Vector to = a.center + of_a.offsets[i] * a.columns[of_a.axis] - b.center;
        if (of_b.is_box) {
            const Vector local = absolute(project(b.columns, to));
            const float radius = of_a.radii[i] - by;
            const Vector outside = {larger(local.x - of_b.half[0], Floats{}),
                                    larger(local.y - of_b.half[1], Floats{}),
                                    larger(local.z - of_b.half[2], Floats{})};
            if (radius > 0.0f) results |= above(broadcast(radius * radius), dot(outside, outside));
        } else {
            for (std::int32_t j = 0; j < of_b.ball_count; ++j) {
                const Vector apart = to - of_b.offsets[j] * b.columns[of_b.axis];
                const float radius = of_a.radii[i] + of_b.radii[j] - by;
                if (radius > 0.0f) results |= above(broadcast(radius * radius), dot(apart, apart));
            }
        }
    }
    return results;
}

unsigned inside(const PlacedGeometry& a, const PlacedGeometry& b, float by) {
    Integers results = balls_meet(a, b, by);
    if (a.geometry->is_box) results |= balls_meet(b, a, by);
    return bits(results);
}

// Upper bound of the motion of the points of an item along a direction in half an interval.
INLINE Floats reach_in_direction(const PlacedGeometry& placed, const Twist& common,
                                 const Vector& direction) {
    const Relative by = relative(placed, common);
    const Vector turns = absolute(project(placed.columns, cross(by.turns, direction)));
    const float* half = placed.geometry->half;
    return absolute(dot(direction, by.moves)) + half[0] * turns.x + half[1] * turns.y +
           half[2] * turns.z;
}

// Bounds of the height of a shape along a direction in its axes.
INLINE Floats least_top_of(const Geometry& geometry, const Vector& direction) {
    const Floats component = geometry.axis == 0   ? direction.x
                             : geometry.axis == 1 ? direction.y
                                                  : direction.z;
    Floats top = broadcast(-1e30f);
    for (std::int32_t i = 0; i < geometry.ball_count; ++i)
        top = larger(top, geometry.offsets[i] * component + geometry.radii[i]);
    return top;
}
INLINE Floats most_top_of(const Geometry& geometry, const Vector& direction) {
    return geometry.half[0] * absolute(direction.x) + geometry.half[1] * absolute(direction.y) +
           geometry.half[2] * absolute(direction.z);
}

// The largest height of the points of a shape along a direction in its axes. As
// SupportTable::farthest().
float support_height(const Geometry& geometry, const float* direction) {
    const auto height = [&](std::uint32_t number) __attribute__((always_inline)) {
        const float* p = geometry.points + 3 * number;
        return p[0] * direction[0] + p[1] * direction[1] + p[2] * direction[2];
    };
    const float x = __builtin_fabsf(direction[0]), y = __builtin_fabsf(direction[1]),
                z = __builtin_fabsf(direction[2]);
    if (geometry.is_box) return geometry.half[0] * x + geometry.half[1] * y + geometry.half[2] * z;
    float top = -1e30f;
    if (!geometry.first) {
        for (std::int32_t i = 0; i < geometry.count; ++i) {
            const float candidate = height(static_cast<std::uint32_t>(i));
            top = candidate > top ? candidate : top;
        }
        return top;
    }
    const int axis = x >= y ? (x >= z ? 0 : 2) : y >= z ? 1 : 2;
    const float half = 0.5f * static_cast<float>(geometry.side), scale = half / (axis == 0   ? x
                                                                                 : axis == 1 ? y
                                                                                             : z);
    const auto cell_at = [&](float component) __attribute__((always_inline)) {
        const float position = scale * component + half;  // not a number without a direction
        return position > 0.0f
                   ? (position < 2.0f * half - 1.0f ? static_cast<std::int32_t>(position)
                                                    : geometry.side - 1)
                   : 0;
    };
    const std::int32_t face = 2 * axis + (direction[axis] < 0.0f ? 1 : 0);
    const std::int32_t row = cell_at(direction[(axis + 1) % 3]),
                       column = cell_at(direction[(axis + 2) % 3]);
    const std::uint32_t* cell =
        geometry.first + (face * geometry.side + row) * geometry.side + column;
    for (std::uint32_t i = cell[0]; i < cell[1]; ++i) {
        const float candidate = height(geometry.farthest[i]);
        top = candidate > top ? candidate : top;
    }
    return top;
}

INLINE Floats top_of(const Geometry& geometry, const Vector& direction, unsigned lane_mask) {
    if (geometry.is_box) return most_top_of(geometry, direction);
    Floats top = broadcast(-1e30f);
    if (geometry.first && count_of(lane_mask) * 20 < geometry.count) {
        for (int i = 0; i < width; ++i)
            if (lane_mask >> i & 1) {
                const float of_lane[3] = {direction.x[i], direction.y[i], direction.z[i]};
                top[i] = support_height(geometry, of_lane);
            }
        return top;
    }
    for (std::int32_t i = 0; i < geometry.count; ++i) {
        const float* p = geometry.points + 3 * i;
        top = larger(top, p[0] * direction.x + p[1] * direction.y + p[2] * direction.z);
    }
    return top;
}

// The lanes in which a direction separates two geometries in the whole interval, given the distance
// of their centres in its middle, and the height of the second there. To first order, a point p of
// a body that turns by w has the height p . (n + t n x w) along the direction n at a time t from -1
// to 1: the height of the body is convex in t, and largest at an end.
unsigned apart_in_motion(const PlacedGeometry& a, const PlacedGeometry& b, const Twist& common,
                         const Vector& normal, const Floats& between, const Floats& top_of_b,
                         unsigned lane_mask) {
    const Geometry &of_a = *a.geometry, &of_b = *b.geometry;
    const bool both_move = of_b.link >= 0;
    const Relative by_a = relative(a, common);
    const Vector tilt_a = cross(normal, by_a.turns);
    Relative by_b{};
    Vector tilt_b{};
    Floats drift = dot(normal, by_a.moves);
    if (both_move) {
        by_b = relative(b, common);
        tilt_b = cross(normal, by_b.turns);
        drift -= dot(normal, by_b.moves);
    }
    // The end towards which the centres approach first.
    Floats end = select(above(drift, Floats{}), broadcast(-1.0f), broadcast(1.0f));
    for (int i = 0; i < 2 && lane_mask; ++i, end = -end) {
        const Vector towards_a = project(a.columns, -1.0f * (normal + end * tilt_a));
        Floats gap = between + end * drift;
        if (both_move) gap -= top_of(of_b, project(b.columns, normal + end * tilt_b), lane_mask);
        else gap -= top_of_b;
        lane_mask &= bits(above(gap + of_a.radius, least_top_of(of_a, towards_a)));
        if (lane_mask) lane_mask &= bits(above(gap, top_of(of_a, towards_a, lane_mask)));
    }
    return lane_mask;
}

unsigned apart(const PlacedGeometry& a, const PlacedGeometry& b, const Twist* common,
               const float* direction, const Vector* root_normal, float within, unsigned lane_mask,
               bool is_close) {
    const Vector between = a.center - b.center,
                 normal = direction ? combine(b.columns, direction) : *root_normal;
    const Geometry &of_a = *a.geometry, &of_b = *b.geometry;
    Floats gap = dot(normal, between) - (of_a.radius + of_b.radius + within);
    if ((bits(above(gap, Floats{})) & lane_mask) == 0) return 0;  // both contain their centres
    const Floats between_centers = gap,
                 top_of_b = direction ? broadcast(support_height(of_b, direction))
                                      : top_of(of_b, project(b.columns, normal), lane_mask);
    gap -= top_of_b;
    const Vector of_normal = project(a.columns, -1.0f * normal);
    Floats least = gap;
    if (common) least -= reach_in_direction(a, *common, normal);
    if (common && of_b.link >= 0) least -= reach_in_direction(b, *common, normal);
    const unsigned surely =
        bits(above(least + of_a.radius, most_top_of(of_a, of_normal))) & lane_mask;
    is_close = is_close && common;
    if (surely == lane_mask || (of_a.is_box && !is_close)) return surely;
    if (!is_close) gap = least;
    const unsigned open =
        bits(above(gap + of_a.radius, least_top_of(of_a, of_normal))) & lane_mask & ~surely;
    if (!open) return surely;
    return surely |
           (is_close ? apart_in_motion(a, b, *common, normal, between_centers, top_of_b, open)
                     : bits(above(gap, top_of(of_a, of_normal, open))) & open);
}

void reach(const PlacedGeometry& a, const PlacedGeometry& b, const Twist& common,
           const float* direction, float* results) {
    const Vector normal = direction ? combine(b.columns, direction) : Vector{};
    Floats sum{};
    const auto add = [&](const PlacedGeometry& placed) __attribute__((always_inline)) {
        const Relative by = relative(placed, common);
        sum += direction ? reach_in_direction(placed, common, normal)
                         : reach(placed, by.moves, by.turns);
    };
    add(a);
    if (b.geometry->link >= 0) add(b);
    for (int i = 0; i < width; ++i) results[i] = sum[i];
}

std::int32_t nearest(const Floats* blocks, std::size_t count, std::size_t size,
                     const double* point) {
    Floats least = broadcast(1e37f);
    Integers best{};
    for (std::size_t block = 0; block < count; ++block, blocks += size) {
        Floats sum{};
        for (std::size_t i = 0; i < size; ++i) {
            const Floats difference = blocks[i] - static_cast<float>(point[i]);
            sum += difference * difference;
        }
        const Integers nearer = above(least, sum);
        least = select(nearer, sum, least);
        best = (nearer & static_cast<std::int32_t>(block)) | (~nearer & best);
    }
    int lane = 0;
    for (int i = 1; i < width; ++i)
        if (least[i] < least[lane] || (least[i] == least[lane] && best[i] < best[lane])) lane = i;
    return width * best[lane] + lane;
}

}  // namespace

extern const Kernels TMKIT_KERNELS;
const Kernels TMKIT_KERNELS{
    place, place_geometry, enclose, overlapping_boxes, overlapping_pairs, overlap, inside,
    apart, reach,          nearest};

}  // namespace tmkit::lanes
