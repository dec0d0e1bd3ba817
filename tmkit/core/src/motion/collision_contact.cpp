// The narrow phase: is a pair of shapes in contact, and how deep.
#include <coal/collision.h>
#include <coal/distance.h>
#include <coal/shape/geometric_shapes.h>

#include <algorithm>
#include <cmath>

#include "collision_model.hpp"

namespace tmkit {
namespace {

using coal::Matrix3s;
using coal::Transform3s;
using coal::Vec3s;

// True when an axis separates the two oriented boxes by more than `margin` (sufficient, not necessary). The fifteen axes
// of Gottschalk, Lin and Manocha, "OBBTree" (SIGGRAPH 1996); the first box is grown by the margin on each side, which
// covers all points within that distance of it.
bool boxes_are_apart(const CollisionItem& a, const Transform3s& pose_a, const CollisionItem& b,
                     const Transform3s& pose_b, double margin) {
    const Matrix3s r = pose_a.getRotation().transpose() * pose_b.getRotation();
    const Vec3s t = pose_a.getRotation().transpose() * (pose_b.transform(b.center) - pose_a.transform(a.center));
    const Matrix3s absolute = r.cwiseAbs().array() + 1e-12;
    const Vec3s ha = a.half.array() + margin;
    const Vec3s& hb = b.half;
    for (int i = 0; i < 3; ++i)
        if (std::abs(t[i]) > ha[i] + absolute(i, 0) * hb[0] + absolute(i, 1) * hb[1] + absolute(i, 2) * hb[2])
            return true;
    for (int j = 0; j < 3; ++j)
        if (std::abs(t[0] * r(0, j) + t[1] * r(1, j) + t[2] * r(2, j)) >
            ha[0] * absolute(0, j) + ha[1] * absolute(1, j) + ha[2] * absolute(2, j) + hb[j])
            return true;
    for (int i = 0; i < 3; ++i) {
        const int i1 = (i + 1) % 3, i2 = (i + 2) % 3;
        for (int j = 0; j < 3; ++j) {
            const int j1 = (j + 1) % 3, j2 = (j + 2) % 3;
            if (std::abs(t[i2] * r(i1, j) - t[i1] * r(i2, j)) >
                ha[i1] * absolute(i2, j) + ha[i2] * absolute(i1, j) + hb[j1] * absolute(i, j2) +
                    hb[j2] * absolute(i, j1))
                return true;
        }
    }
    return false;
}

// GJK alone, stopped as soon as a distance above the margin is proved. The margin must not be negative.
bool convex_contact(const CollisionItem& a, const Transform3s& pose_a, const CollisionItem& b,
                    const Transform3s& pose_b, double margin, CollisionView::Scratch::Data& scratch) {
    scratch.difference.set(static_cast<const coal::ShapeBase*>(a.geometry),
                           static_cast<const coal::ShapeBase*>(b.geometry), pose_a, pose_b);
    coal::details::GJK& gjk = scratch.gjk;
    gjk.reset(128, 1e-6);
    gjk.setDistanceEarlyBreak(margin);
    const Vec3s guess = a.center - (scratch.difference.oR1 * b.center + scratch.difference.ot1);
    const bool usable = guess.squaredNorm() > 1e-12;
    switch (gjk.evaluate(scratch.difference, usable ? guess : Vec3s(1.0, 0.0, 0.0))) {
        case coal::details::GJK::NoCollisionEarlyStopped: return false;
        case coal::details::GJK::Collision:
        case coal::details::GJK::CollisionWithPenetrationInformation: return true;
        default: return gjk.distance <= margin;
    }
}

// A shape against the triangles of a mesh, or the triangles of two. The margin must not be negative.
bool triangles_contact(const CollisionItem& a, const Transform3s& pose_a, const CollisionItem& b,
                       const Transform3s& pose_b, double margin) {
    coal::CollisionRequest request(coal::CollisionRequestFlag::NO_REQUEST, 1);
    request.security_margin = margin;
    coal::CollisionResult result;
    return coal::collide(a.geometry, pose_a, b.geometry, pose_b, request, result) > 0;
}

// Whether the hulls of two meshes penetrate as deep as the (negative) margin. The hulls are never less deep than the
// meshes where these meet in shallow contact, so the answer errs towards contact; without hulls it is contact.
bool hulls_are_deeper(const CollisionItem& a, const Transform3s& pose_a, const CollisionItem& b,
                      const Transform3s& pose_b, double margin) {
    if (!a.hull || !b.hull) return true;
    coal::DistanceRequest request;
    coal::DistanceResult result;
    return coal::distance(a.hull, pose_a, b.hull, pose_b, request, result) <= margin;
}

Vector3 to_vector(const Vec3s& v) { return {v[0], v[1], v[2]}; }

}  // namespace

bool in_contact(const PlacedShape& sa, const PlacedShape& sb, double margin, CollisionView::Scratch::Data& scratch) {
    const CollisionItem &a = *sa.item, &b = *sb.item;
    const Transform3s &pose_a = *sa.pose, &pose_b = *sb.pose;
    if (boxes_are_apart(a, pose_a, b, pose_b, std::max(margin, 0.0))) return false;
    if (a.convex && b.convex) {
        if (!convex_contact(a, pose_a, b, pose_b, std::max(margin, 0.0), scratch)) return false;
        return margin >= 0.0 || measure(sa, sb, margin).distance <= margin;
    }
    if (margin >= 0.0) return triangles_contact(a, pose_a, b, pose_b, margin);
    if (a.convex || b.convex) return measure(sa, sb, margin).distance <= margin;
    return triangles_contact(a, pose_a, b, pose_b, 0.0) && hulls_are_deeper(a, pose_a, b, pose_b, margin);
}

Contact measure(const PlacedShape& a, const PlacedShape& b, double margin) {
    coal::DistanceRequest request;
    coal::DistanceResult result;
    coal::distance(a.item->geometry, *a.pose, b.item->geometry, *b.pose, request, result);
    const bool swapped = a.frame > b.frame;
    Contact contact{std::min(a.frame, b.frame), std::max(a.frame, b.frame), result.min_distance, margin, {}, {}};
    contact.point = to_vector(0.5 * (result.nearest_points[0] + result.nearest_points[1]));
    contact.normal = to_vector(swapped ? Vec3s(-result.normal) : result.normal);
    return contact;
}

void gather(const PlacedShape& a, const PlacedShape& b, double margin, CollisionView::Scratch::Data& scratch,
            std::vector<Contact>& contacts) {
    if (!in_contact(a, b, margin, scratch)) return;
    Contact contact = measure(a, b, margin);
    contact.distance = std::min(contact.distance, margin);  // both tests have tolerances; the first has decided
    contacts.push_back(contact);
}

}  // namespace tmkit
