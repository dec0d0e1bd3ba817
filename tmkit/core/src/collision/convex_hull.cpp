// Quickhull in exact integer arithmetic.
//
// Meshes of robots have many coplanar, collinear and repeated points, for which a hull with rounded
// predicates can be inconsistent: a horizon that is no loop, faces that face inwards. Therefore the
// points are first rounded to a grid of 2^26 steps to each side of their centre (15 nanometres for
// a part of one metre). Every predicate is then an integer determinant below 2^85, exact in 128
// bits, and the topology is always consistent. The hull consists of the original points; the grid
// only decides which of them are corners.
//
// Quickhull (Barber, Dobkin and Huhdanpaa, ACM TOMS 1996): each face stores the points outside it;
// the farthest of them becomes a corner; the faces visible from it are replaced by a fan from it to
// their horizon. A face whose plane contains the new corner counts as visible, so no new face is
// degenerate. A corner collinear with an edge of the horizon would be in the plane of the face
// behind that edge, which then would not be part of the hull.
//
// A flat side with many corners becomes one fan, whose apex would have that many edges. Flipping
// every other edge of the fan halves them, and so on until no corner exceeds the limit.
#include "collision/convex_hull.hpp"

#include <algorithm>
#include <cmath>

namespace tmkit {
namespace {

using Wide = __int128;
using Point = std::array<std::int64_t, 3>;

Point difference(const Point& a, const Point& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }

Point cross_product(const Point& a, const Point& b) {
    return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

Wide dot_product(const Point& a, const Point& b) {
    return Wide(a[0]) * b[0] + Wide(a[1]) * b[1] + Wide(a[2]) * b[2];
}

std::vector<Point> on_grid(const double* coordinates, std::size_t count) {
    Vector3 lower{coordinates[0], coordinates[1], coordinates[2]}, upper = lower;
    for (std::size_t i = 0; i < 3 * count; ++i) {
        lower[i % 3] = std::min(lower[i % 3], coordinates[i]);
        upper[i % 3] = std::max(upper[i % 3], coordinates[i]);
    }
    const double extent = std::max({upper[0] - lower[0], upper[1] - lower[1], upper[2] - lower[2]});
    const double scale = extent > 0.0 ? 0x1.0p27 / extent : 0.0;
    std::vector<Point> points(count);
    for (std::size_t i = 0; i < 3 * count; ++i)
        points[i / 3][i % 3] =
            std::llround((coordinates[i] - 0.5 * (lower[i % 3] + upper[i % 3])) * scale);
    return points;
}

struct Face {
    std::array<std::int32_t, 3> corner;
    std::array<std::int32_t, 3> beyond;  // the face across the edge from corner i to the next
    Point normal;                        // outwards, not unit
    std::vector<std::int32_t> sees;      // points outside, each listed by one face
    bool alive = true;
    bool marked = false;
};

class Builder {
public:
    explicit Builder(std::vector<Point> points) : points_(std::move(points)) {}

    bool build() {
        if (!start()) return false;
        for (std::size_t face = 0; face < faces_.size(); ++face)
            while (faces_[face].alive && !faces_[face].sees.empty())
                add_corner(static_cast<std::int32_t>(face));
        return true;
    }

    // Flip edges inside flat sides until at most `most` faces meet in a corner, if possible.
    void lower_degrees(std::size_t most) {
        for (bool flipped = true; flipped;) {
            flipped = false;
            std::vector<std::size_t> degree(points_.size(), 0);
            for (const Face& face : faces_)
                if (face.alive)
                    for (const std::int32_t corner : face.corner) ++degree[corner];
            std::vector<bool> touched(faces_.size(), false);
            for (std::size_t f = 0; f < faces_.size(); ++f)
                for (int i = 0; i < 3 && faces_[f].alive && !touched[f]; ++i) {
                    const std::int32_t g = faces_[f].beyond[(i + 2) % 3];
                    if (degree[faces_[f].corner[i]] <= most || touched[g] ||
                        !flip(static_cast<std::int32_t>(f), i))
                        continue;
                    flipped = touched[f] = touched[g] = true;
                }
        }
    }

    Hull hull() const {
        Hull result;
        std::vector<std::int32_t> number(points_.size(), -1);
        for (const Face& face : faces_)
            if (face.alive)
                for (const std::int32_t corner : face.corner) number[corner] = 0;
        for (std::size_t i = 0; i < points_.size(); ++i)
            if (number[i] == 0) {
                number[i] = static_cast<std::int32_t>(result.vertices.size());
                result.vertices.push_back(static_cast<std::int32_t>(i));
            }
        for (const Face& face : faces_)
            if (face.alive)
                result.triangles.push_back(
                    {number[face.corner[0]], number[face.corner[1]], number[face.corner[2]]});
        return result;
    }

private:
    // Positive if the point is outside the face.
    Wide height(const Face& face, std::int32_t point) const {
        return dot_product(face.normal, difference(points_[point], points_[face.corner[0]]));
    }

    std::int32_t make_face(std::int32_t a, std::int32_t b, std::int32_t c) {
        const Point normal =
            cross_product(difference(points_[b], points_[a]), difference(points_[c], points_[a]));
        faces_.push_back({{a, b, c}, {-1, -1, -1}, normal, {}, true, false});
        return static_cast<std::int32_t>(faces_.size()) - 1;
    }

    // The number of the point for which measure(point) is greatest, or -1 if none is above zero.
    template <class Measure> std::int32_t greatest(Measure&& measure) const {
        std::int32_t best = -1;
        Wide most = 0;
        for (std::size_t i = 0; i < points_.size(); ++i) {
            const Wide value = measure(points_[i]);
            if (value > most) {
                most = value;
                best = static_cast<std::int32_t>(i);
            }
        }
        return best;
    }

    // A tetrahedron of far-apart points; false if all points are in one plane.
    bool start() {
        const Point& origin = points_[0];
        const std::int32_t a = 0;
        const std::int32_t b = greatest([&](const Point& p) {
            const Point d = difference(p, origin);
            return dot_product(d, d);
        });
        if (b < 0) return false;
        const Point edge = difference(points_[b], origin);
        const std::int32_t c = greatest([&](const Point& p) {
            const Point n = cross_product(edge, difference(p, origin));
            return dot_product(n, n);
        });
        if (c < 0) return false;
        const Point normal = cross_product(edge, difference(points_[c], origin));
        const std::int32_t d = greatest([&](const Point& p) {
            const Wide h = dot_product(normal, difference(p, origin));
            return h < 0 ? -h : h;
        });
        if (d < 0) return false;
        const bool above = dot_product(normal, difference(points_[d], origin)) > 0;
        const std::array<std::int32_t, 4> t =
            above ? std::array{a, c, b, d} : std::array{a, b, c, d};
        make_face(t[0], t[1], t[2]);
        make_face(t[0], t[3], t[1]);
        make_face(t[1], t[3], t[2]);
        make_face(t[2], t[3], t[0]);
        faces_[0].beyond = {1, 2, 3};
        faces_[1].beyond = {3, 2, 0};
        faces_[2].beyond = {1, 3, 0};
        faces_[3].beyond = {2, 1, 0};
        for (std::size_t i = 0; i < points_.size(); ++i)
            give_to_a_face(static_cast<std::int32_t>(i), 0);
        return true;
    }

    void give_to_a_face(std::int32_t point, std::size_t first_face) {
        for (std::size_t f = first_face; f < faces_.size(); ++f)
            if (faces_[f].alive && height(faces_[f], point) > 0) {
                faces_[f].sees.push_back(point);
                return;
            }
    }

    void add_corner(std::int32_t seen_from) {
        std::int32_t corner = -1;
        Wide most = 0;
        for (const std::int32_t point : faces_[seen_from].sees) {
            const Wide h = height(faces_[seen_from], point);
            if (h > most) {
                most = h;
                corner = point;
            }
        }
        const std::vector<std::int32_t> visible = visible_from(corner, seen_from);
        const std::size_t first_new = faces_.size();
        fan_to_horizon(corner, visible);
        for (const std::int32_t f : visible) {
            faces_[f].alive = false;
            const std::vector<std::int32_t> orphans = std::move(faces_[f].sees);
            for (const std::int32_t point : orphans)
                if (point != corner) give_to_a_face(point, first_new);
        }
    }

    std::vector<std::int32_t> visible_from(std::int32_t corner, std::int32_t first) {
        std::vector<std::int32_t> visible{first};
        faces_[first].marked = true;
        for (std::size_t i = 0; i < visible.size(); ++i)
            for (const std::int32_t next : faces_[visible[i]].beyond)
                if (!faces_[next].marked && height(faces_[next], corner) >= 0) {
                    faces_[next].marked = true;
                    visible.push_back(next);
                }
        return visible;
    }

    void fan_to_horizon(std::int32_t corner, const std::vector<std::int32_t>& visible) {
        // First corner of the horizon's edge, new face.
        std::vector<std::array<std::int32_t, 2>> by_start;
        const std::size_t first_new = faces_.size();
        for (const std::int32_t f : visible)
            for (int i = 0; i < 3; ++i) {
                const std::int32_t behind = faces_[f].beyond[i];
                if (faces_[behind].marked) continue;
                const std::int32_t a = faces_[f].corner[i], b = faces_[f].corner[(i + 1) % 3];
                const std::int32_t new_face = make_face(a, b, corner);
                faces_[new_face].beyond[0] = behind;
                for (int k = 0; k < 3; ++k)
                    if (faces_[behind].corner[k] == b) faces_[behind].beyond[k] = new_face;
                by_start.push_back({a, new_face});
            }
        std::sort(by_start.begin(), by_start.end());
        for (std::size_t f = first_new; f < faces_.size(); ++f) {
            const std::array<std::int32_t, 2> wanted{faces_[f].corner[1], -1};
            const std::int32_t next =
                (*std::lower_bound(by_start.begin(), by_start.end(), wanted))[1];
            faces_[f].beyond[1] = next;
            faces_[next].beyond[2] = static_cast<std::int32_t>(f);
        }
    }

    void replace_beyond(std::int32_t face, std::int32_t before, std::int32_t after) {
        for (std::int32_t& beyond : faces_[face].beyond)
            if (beyond == before) {
                beyond = after;
                return;
            }
    }

    // Turns the faces (v, a, p) and (v, p, b) into (v, a, b) and (a, p, b), where v is corner i of
    // face f, if they lie in one plane and their union is a strictly convex quadrilateral.
    bool flip(std::int32_t f, int i) {
        const std::int32_t v = faces_[f].corner[i], a = faces_[f].corner[(i + 1) % 3],
                           p = faces_[f].corner[(i + 2) % 3];
        const std::int32_t over_va = faces_[f].beyond[i], over_ap = faces_[f].beyond[(i + 1) % 3];
        const std::int32_t g = faces_[f].beyond[(i + 2) % 3];
        int k = 0;
        while (faces_[g].corner[k] != v) ++k;
        const std::int32_t b = faces_[g].corner[(k + 2) % 3];
        const std::int32_t over_pb = faces_[g].beyond[(k + 1) % 3],
                           over_bv = faces_[g].beyond[(k + 2) % 3];
        if (height(faces_[f], b) != 0) return false;
        const auto normal = [&](std::int32_t x, std::int32_t y, std::int32_t z) {
            return cross_product(difference(points_[y], points_[x]),
                                 difference(points_[z], points_[x]));
        };
        const Point first = normal(v, a, b), second = normal(a, p, b);
        if (dot_product(first, faces_[f].normal) <= 0 || dot_product(second, faces_[f].normal) <= 0)
            return false;
        faces_[f] = {{v, a, b}, {over_va, g, over_bv}, first, {}, true, false};
        faces_[g] = {{a, p, b}, {over_ap, over_pb, f}, second, {}, true, false};
        replace_beyond(over_ap, f, g);
        replace_beyond(over_bv, g, f);
        return true;
    }

    std::vector<Point> points_;
    std::vector<Face> faces_;
};

}  // namespace

Hull convex_hull(const double* coordinates, std::size_t count, std::size_t most_edges) {
    if (count < 4) return {};
    Builder builder(on_grid(coordinates, count));
    if (!builder.build()) return {};
    builder.lower_degrees(most_edges);
    return builder.hull();
}

}  // namespace tmkit
