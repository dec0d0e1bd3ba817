// Narrow phase: contact and depth of a pair of solids.
#include <coal/BV/OBBRSS.h>
#include <coal/BVH/BVH_model.h>
#include <coal/collision.h>
#include <coal/distance.h>
#include <coal/narrowphase/support_functions.h>
#include <coal/shape/geometric_shapes.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "collision/collision_model.hpp"

namespace tmkit {
namespace {

using coal::Matrix3s;
using coal::Transform3s;
using coal::Vec3s;

constexpr double infinity = std::numeric_limits<double>::infinity();

// A solid with its pose.
struct Posed {
    const CollisionGeometry& geometry;
    const Transform3s& pose;
};

// A signed distance, infinite without a comparison; of bodies of pieces, that of the nearest or
// deepest piece.
struct Gap {
    double distance;
    Vec3s point_a, point_b;  // the nearest or deepest points
    Vec3s normal;            // from a to b
    Gap flipped() const { return {distance, point_b, point_a, -normal}; }
};

const Gap no_gap{infinity, Vec3s::Zero(), Vec3s::Zero(), Vec3s::Zero()};

// Boxes in the axes of a solid A against the oriented box of a solid B.
class BoxAgainstGeometry {
public:
    BoxAgainstGeometry(const Transform3s& pose_a, Posed b)
        : r_(pose_a.getRotation().transpose() * b.pose.getRotation()),
          absolute_(r_.cwiseAbs().array() + 1e-12),
          center_(pose_a.getRotation().transpose() *
                  (b.pose.transform(b.geometry.center) - pose_a.getTranslation())),
          half_(b.geometry.half), span_(absolute_ * b.geometry.half) {}

    // True if an axis separates the boxes by more than `margin` (sufficient, not necessary). The
    // fifteen axes of Gottschalk, Lin and Manocha, "OBBTree" (SIGGRAPH 1996); the first box is
    // grown by the margin on each side, which covers all points within that distance of it.
    bool is_apart(const Vec3s& center, const Vec3s& half, double margin) const {
        const Vec3s t = center_ - center, ha = half.array() + margin;
        for (int i = 0; i < 3; ++i)
            if (std::abs(t[i]) > ha[i] + span_[i]) return true;
        for (int j = 0; j < 3; ++j)
            if (std::abs(t[0] * r_(0, j) + t[1] * r_(1, j) + t[2] * r_(2, j)) >
                ha[0] * absolute_(0, j) + ha[1] * absolute_(1, j) + ha[2] * absolute_(2, j) +
                    half_[j])
                return true;
        for (int i = 0; i < 3; ++i) {
            const int i1 = (i + 1) % 3, i2 = (i + 2) % 3;
            for (int j = 0; j < 3; ++j) {
                const int j1 = (j + 1) % 3, j2 = (j + 2) % 3;
                if (std::abs(t[i2] * r_(i1, j) - t[i1] * r_(i2, j)) >
                    ha[i1] * absolute_(i2, j) + ha[i2] * absolute_(i1, j) +
                        half_[j1] * absolute_(i, j2) + half_[j2] * absolute_(i, j1))
                    return true;
            }
        }
        return false;
    }

    // A lower bound of the signed distance of any part of the box and any part of B: the largest
    // separation of the boxes along the axes of A. An axis that separates two bodies separates
    // their parts.
    double least_gap(const Bounds& box) const {
        double squares = 0.0, overlap = infinity;
        for (int k = 0; k < 3; ++k) {
            const double gap =
                std::max(box.min_[k] - center_[k] - span_[k], center_[k] - span_[k] - box.max_[k]);
            if (gap > 0.0) squares += gap * gap;
            overlap = std::min(overlap, -gap);
        }
        return squares > 0.0 ? std::sqrt(squares) : -overlap;
    }

    double squared_distance_of_centers(const Vec3s& center) const {
        return (center_ - center).squaredNorm();
    }

private:
    Matrix3s r_, absolute_;  // of B in A
    Vec3s center_, half_, span_;
};

bool is_simple(const CollisionGeometry& geometry) {
    return geometry.kind == GeometryKind::convex || geometry.kind == GeometryKind::triangles;
}

Vec3s half_of(const Bounds& box) { return 0.5 * (box.max_ - box.min_); }

// --- convex solids and triangles

// Their distance by GJK alone, which stops at a proof that it exceeds the limit: then infinite. 0
// for overlap. The limit must not be negative.
double convex_distance(Posed a, Posed b, double limit, NarrowPhaseWorkspace& workspace,
                       WarmStart* warm = nullptr) {
    workspace.difference.set_shapes(static_cast<const coal::ShapeBase&>(*a.geometry.coal_geometry),
                                    static_cast<const coal::ShapeBase&>(*b.geometry.coal_geometry),
                                    a.pose, b.pose);
    coal::details::GJK& gjk = workspace.gjk;
    gjk.reset(128, 1e-6);
    gjk.setDistanceEarlyBreak(limit);
    const Vec3s guess = a.geometry.center -
                        (workspace.difference.oR1 * b.geometry.center + workspace.difference.ot1);
    const bool usable = guess.squaredNorm() > 1e-12;
    const bool is_warm = warm && !warm->ray.isZero(1e-6);
    const auto status = gjk.evaluate(workspace.difference,
                                     is_warm  ? warm->ray
                                     : usable ? guess
                                              : Vec3s(1.0, 0.0, 0.0),
                                     warm ? warm->hint : coal::support_func_guess_t(0, 0));
    if (warm) {
        warm->ray = gjk.ray;
        warm->hint = gjk.support_hint;
    }
    switch (status) {
        case coal::details::GJK::NoCollisionEarlyStopped: return infinity;
        case coal::details::GJK::Collision:
        case coal::details::GJK::CollisionWithPenetrationInformation: return 0.0;
        default: return gjk.distance;
    }
}

bool convex_contact(Posed a, Posed b, double margin, NarrowPhaseWorkspace& workspace) {
    return convex_distance(a, b, margin, workspace) <= margin;
}

// A shape against the triangles of a mesh, or the triangles of two. The margin must not be
// negative.
bool triangles_contact(Posed a, Posed b, double margin) {
    coal::CollisionRequest request(coal::CollisionRequestFlag::NO_REQUEST, 1);
    request.security_margin = margin;
    coal::CollisionResult result;
    return coal::collide(a.geometry.coal_geometry, a.pose, b.geometry.coal_geometry, b.pose,
                         request, result) > 0;
}

// Coal 3.0.3 may return the farther way out of a cylinder for a ball whose centre is inside. None
// for other pairs.
std::optional<Gap> ball_in_cylinder(const coal::CollisionGeometry* a, const Transform3s& pose_a,
                                    const coal::CollisionGeometry* b, const Transform3s& pose_b) {
    if (a->getNodeType() != coal::GEOM_SPHERE || b->getNodeType() != coal::GEOM_CYLINDER)
        return std::nullopt;
    const double radius = static_cast<const coal::Sphere*>(a)->radius;
    const auto* cylinder = static_cast<const coal::Cylinder*>(b);
    const Vec3s center = pose_b.inverseTransform(pose_a.getTranslation());
    const double across = center.head<2>().norm();
    const double to_mantle = cylinder->radius - across,
                 to_end = cylinder->halfLength - std::abs(center[2]);
    if (to_mantle <= 0.0 || to_end <= 0.0) return std::nullopt;
    Vec3s outward(0.0, 0.0, center[2] < 0.0 ? -1.0 : 1.0);
    if (to_mantle < to_end)
        outward = across > 0.0 ? Vec3s(center[0] / across, center[1] / across, 0.0)
                               : Vec3s(1.0, 0.0, 0.0);
    const double depth = std::min(to_mantle, to_end);
    const Vec3s direction = pose_b.getRotation() * outward, &middle = pose_a.getTranslation();
    return Gap{-depth - radius, middle - radius * direction, middle + depth * direction,
               -direction};
}

Gap coal_gap(const coal::CollisionGeometry* a, const Transform3s& pose_a,
             const coal::CollisionGeometry* b, const Transform3s& pose_b) {
    coal::DistanceRequest request;
    coal::DistanceResult result;
    coal::distance(a, pose_a, b, pose_b, request, result);
    if (result.min_distance < 0.0) {
        if (const auto gap = ball_in_cylinder(a, pose_a, b, pose_b)) return *gap;
        if (const auto gap = ball_in_cylinder(b, pose_b, a, pose_a)) return gap->flipped();
    }
    return {result.min_distance, result.nearest_points[0], result.nearest_points[1], result.normal};
}

// Return whether the hulls of two meshes penetrate as deep as the (negative) margin. In shallow
// contact the hulls are never less deep than the meshes, so the error is towards contact; without
// hulls it is contact.
bool hulls_are_deeper(Posed a, Posed b, double margin) {
    return !a.geometry.hull || !b.geometry.hull ||
           coal_gap(a.geometry.hull, a.pose, b.geometry.hull, b.pose).distance <= margin;
}

// --- half spaces

// The point of a solid that is farthest along a direction in the solid's axes. For triangles it is
// that of their hull, or by a scan of all if they have none, because they are in one plane.
Vec3s farthest_point(const CollisionGeometry& geometry, const Vec3s& direction) {
    const coal::CollisionGeometry* coal_geometry = geometry.coal_geometry;
    if (geometry.kind == GeometryKind::triangles)
        coal_geometry = hull_or_null(*geometry.structure->shape);
    if (coal_geometry) {
        int hint = 0;
        return coal::details::getSupport<coal::details::SupportOptions::WithSweptSphere>(
            static_cast<const coal::ShapeBase*>(coal_geometry), direction, hint);
    }
    const std::vector<double>& v = geometry.structure->shape->vertices();
    Vec3s best(v.data());
    for (std::size_t i = 3; i < v.size(); i += 3) {
        const Vec3s vertex(&v[i]);
        if (vertex.dot(direction) > best.dot(direction)) best = vertex;
    }
    return best;
}

Gap plane_gap(const Transform3s& plane, Posed b) {
    const Vec3s normal = plane.getRotation().col(2);
    const Vec3s deepest =
        b.pose.transform(farthest_point(b.geometry, -(b.pose.getRotation().transpose() * normal)));
    const double distance = normal.dot(deepest - plane.getTranslation());
    return {distance, deepest - distance * normal, deepest, normal};
}

// A lower bound of the signed distance of a half space and a box in the axes of `pose`.
double plane_least_gap(const Transform3s& plane, const Transform3s& pose, const Bounds& box) {
    const Vec3s normal = plane.getRotation().col(2),
                local = pose.getRotation().transpose() * normal;
    return normal.dot(pose.getTranslation() - plane.getTranslation()) + local.dot(box.center()) -
           local.cwiseAbs().dot(half_of(box));
}

bool plane_touches(const Transform3s& plane, Posed b, double margin) {
    const Bounds box = box_around(b.geometry.center, b.geometry.half);
    return plane_least_gap(plane, b.pose, box) <= margin && plane_gap(plane, b).distance <= margin;
}

// --- bodies of pieces

// A box of this many pieces, no larger than a fraction of the other solid, is worth a comparison:
// larger ones mostly touch the solid, and a comparison costs as much as some pieces. So is a single
// piece before its triangles are tested.
constexpr std::int32_t many = 8;
constexpr double share = 0.5;

// Boxes in the axes of a body of pieces as solids, compared with an enclosing hull of another
// solid.
class BoxAgainstHull {
public:
    BoxAgainstHull(const Transform3s& pose_a, Posed b, NarrowPhaseWorkspace& workspace)
        : box_pose_(pose_a), pose_a_(pose_a), hull_(b.geometry), b_(b), workspace_(workspace) {
        hull_.kind = GeometryKind::convex;
        if (b.geometry.kind == GeometryKind::triangles)
            hull_.coal_geometry = hull_or_null(*b.geometry.structure->shape);
        usable_ = is_simple(b.geometry) && hull_.coal_geometry;
    }

    bool is_worthwhile(const Bounds& bounds, std::int32_t count) const {
        if (!usable_ || count <= many)
            return usable_ && count == 1 && b_.geometry.kind == GeometryKind::triangles;
        return half_of(bounds).squaredNorm() < share * share * b_.geometry.half.squaredNorm();
    }

    bool touches(const Bounds& bounds, std::int32_t count, double margin) {
        const CollisionGeometry box = geometry_of(bounds);
        return convex_contact({box, box_pose_}, {hull_, b_.pose}, margin, workspace_) &&
               (b_.geometry.kind == GeometryKind::convex || count == 1 ||
                triangles_contact({box, box_pose_}, b_, margin));
    }

    // A lower bound of the signed distance of any parts of the two: an axis that separates two
    // bodies separates their parts.
    double least_gap(const Bounds& bounds) {
        return coal_gap(geometry_of(bounds).coal_geometry, box_pose_, hull_.coal_geometry, b_.pose)
            .distance;
    }

private:
    CollisionGeometry geometry_of(const Bounds& bounds) {
        CollisionGeometry box;
        box.half = workspace_.box.halfSide = half_of(bounds);
        box.coal_geometry = &workspace_.box;
        box_pose_.translation() = pose_a_.transform(bounds.center());
        return box;
    }

    Transform3s box_pose_;
    const Transform3s& pose_a_;
    CollisionGeometry hull_;
    Posed b_;
    NarrowPhaseWorkspace& workspace_;
    bool usable_;
};

bool touch(Posed a, Posed b, double margin, NarrowPhaseWorkspace& workspace, int depth);

// The pieces of `a` against the whole of `b`, which may consist of pieces itself.
bool pieces_touch(Posed a, Posed b, double margin, NarrowPhaseWorkspace& workspace, int depth) {
    const BoxAgainstGeometry against(a.pose, b);
    BoxAgainstHull closely(a.pose, b, workspace);
    const auto key = [&](const Bounds& box) {
        if (b.geometry.kind == GeometryKind::plane) {
            const double gap = plane_least_gap(b.pose, a.pose, box);
            return gap > margin ? infinity : gap;
        }
        const Vec3s center = box.center();
        if (against.is_apart(center, half_of(box), margin)) return infinity;
        return against.squared_distance_of_centers(center);
    };
    const auto enter = [&](const Bounds& box, std::int32_t count) {
        return !closely.is_worthwhile(box, count) || closely.touches(box, count, margin);
    };
    const double limit = std::numeric_limits<double>::max();
    return a.geometry.structure->pieces->visit(limit, key, enter, [&](std::int32_t number) {
        Transform3s pose;
        const CollisionGeometry piece =
            a.geometry.structure->pieces->piece(number, a.pose, workspace.prisms[depth], pose);
        return touch({piece, pose}, b, margin, workspace, depth + 1);
    });
}

bool touch(Posed a, Posed b, double margin, NarrowPhaseWorkspace& workspace, int depth) {
    if (a.geometry.kind == GeometryKind::plane && b.geometry.kind == GeometryKind::plane)
        return false;
    if (a.geometry.kind == GeometryKind::pieces)
        return pieces_touch(a, b, margin, workspace, depth);
    if (b.geometry.kind == GeometryKind::pieces)
        return pieces_touch(b, a, margin, workspace, depth);
    if (a.geometry.kind == GeometryKind::plane) return plane_touches(a.pose, b, margin);
    if (b.geometry.kind == GeometryKind::plane) return plane_touches(b.pose, a, margin);
    if (a.geometry.kind == GeometryKind::convex && b.geometry.kind == GeometryKind::convex)
        return convex_contact(a, b, margin, workspace);
    return triangles_contact(a, b, margin);
}

Gap gap_within(Posed a, Posed b, double limit, NarrowPhaseWorkspace& workspace, int depth);

Gap pieces_gap(Posed a, Posed b, double limit, NarrowPhaseWorkspace& workspace, int depth) {
    const BoxAgainstGeometry against(a.pose, b);
    BoxAgainstHull closely(a.pose, b, workspace);
    const auto key = [&](const Bounds& box) {
        return b.geometry.kind == GeometryKind::plane ? plane_least_gap(b.pose, a.pose, box)
                                                      : against.least_gap(box);
    };
    const auto enter = [&](const Bounds& box, std::int32_t count) {
        return !closely.is_worthwhile(box, count) || closely.least_gap(box) <= limit;
    };
    Gap best = no_gap;
    a.geometry.structure->pieces->visit(limit, key, enter, [&](std::int32_t number) {
        Transform3s pose;
        const CollisionGeometry piece =
            a.geometry.structure->pieces->piece(number, a.pose, workspace.prisms[depth], pose);
        const Gap gap = gap_within({piece, pose}, b, limit, workspace, depth + 1);
        if (gap.distance < best.distance) best = gap;
        limit = std::min(limit, best.distance);
        return false;
    });
    return best;
}

Gap gap_within(Posed a, Posed b, double limit, NarrowPhaseWorkspace& workspace, int depth) {
    if (a.geometry.kind == GeometryKind::plane && b.geometry.kind == GeometryKind::plane)
        return no_gap;
    if (a.geometry.kind == GeometryKind::pieces) return pieces_gap(a, b, limit, workspace, depth);
    if (b.geometry.kind == GeometryKind::pieces)
        return pieces_gap(b, a, limit, workspace, depth).flipped();
    if (a.geometry.kind == GeometryKind::plane) return plane_gap(a.pose, b);
    if (b.geometry.kind == GeometryKind::plane) return plane_gap(b.pose, a).flipped();
    return coal_gap(a.geometry.coal_geometry, a.pose, b.geometry.coal_geometry, b.pose);
}

Vector3 to_vector(const Vec3s& v) { return {v[0], v[1], v[2]}; }

}  // namespace

bool in_contact(const PlacedShape& shape_a, const PlacedShape& shape_b, double margin,
                CollisionView::Scratch::Data& scratch) {
    const Posed a{*shape_a.shape, *shape_a.pose}, b{*shape_b.shape, *shape_b.pose};
    NarrowPhaseWorkspace& workspace = scratch.narrow;
    const double reach = std::max(margin, 0.0);
    if (is_simple(a.geometry) && is_simple(b.geometry) &&
        BoxAgainstGeometry(a.pose, b).is_apart(a.geometry.center, a.geometry.half, reach))
        return false;
    if (!touch(a, b, reach, workspace, 0)) return false;
    if (margin >= 0.0) return true;
    if (a.geometry.kind == GeometryKind::triangles && b.geometry.kind == GeometryKind::triangles)
        return hulls_are_deeper(a, b, margin);
    return gap_within(a, b, infinity, workspace, 0).distance <= margin;
}

double distance_within(const PlacedShape& a, const PlacedShape& b, double margin, double limit,
                       WarmStart& warm, CollisionView::Scratch::Data& scratch) {
    const Posed first{*a.shape, *a.pose}, second{*b.shape, *b.pose};
    if (margin < 0.0 || first.geometry.kind != GeometryKind::convex ||
        second.geometry.kind != GeometryKind::convex)
        return !in_contact(a, b, limit, scratch)   ? infinity
               : in_contact(a, b, margin, scratch) ? margin
                                                   : limit;
    if (BoxAgainstGeometry(first.pose, second)
            .is_apart(first.geometry.center, first.geometry.half, limit))
        return infinity;
    return convex_distance(first, second, limit, scratch.narrow, &warm);
}

Contact measure(const PlacedShape& a, const PlacedShape& b, double margin, double limit) {
    NarrowPhaseWorkspace workspace;
    Gap nearest_gap = gap_within({*a.shape, *a.pose}, {*b.shape, *b.pose}, limit, workspace, 0);
    if (!nearest_gap.normal.allFinite()) {  // e.g. of a ball whose centre is on the face of a box
        nearest_gap.normal = Vec3s(0.0, 0.0, 1.0);
        nearest_gap.point_a = nearest_gap.point_b =
            0.5 * (a.pose->transform(a.shape->center) + b.pose->transform(b.shape->center));
    }
    const Gap gap = a.frame > b.frame ? nearest_gap.flipped() : nearest_gap;
    return {std::min(a.frame, b.frame),
            std::max(a.frame, b.frame),
            gap.distance,
            margin,
            to_vector(0.5 * (gap.point_a + gap.point_b)),
            to_vector(gap.normal)};
}

void gather(const PlacedShape& a, const PlacedShape& b, double margin,
            CollisionView::Scratch::Data& scratch, std::vector<Contact>& contacts) {
    if (!in_contact(a, b, margin, scratch)) return;
    Contact contact = measure(a, b, margin);
    // Both tests have tolerances; the first one decides.
    contact.distance = std::min(contact.distance, margin);
    contacts.push_back(contact);
}

}  // namespace tmkit
