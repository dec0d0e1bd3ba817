// Solids of shapes: the input of coal for each kind at each level of detail.
#include "collision/collision_geometry.hpp"

#include <coal/BV/OBBRSS.h>
#include <coal/BVH/BVH_model.h>
#include <coal/shape/geometric_shapes.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "collision/convex_hull.hpp"

namespace tmkit {
namespace {

// Represents an infinite extent: sums and differences of it are still finite.
constexpr double endless = 1e300;
// Smallest thickness of a box [m], the tolerance of touching contact.
constexpr double thinnest = 1e-6;

std::string describe(const Shape& shape) {
    return shape.source().empty() ? std::string("a mesh") : "mesh '" + shape.source() + "'";
}

std::shared_ptr<std::vector<coal::Vec3s>> points_of(const Shape& shape) {
    const std::vector<double>& v = shape.vertices();
    auto points = std::make_shared<std::vector<coal::Vec3s>>(v.size() / 3);
    for (std::size_t i = 0; i < points->size(); ++i) (*points)[i] = coal::Vec3s(&v[3 * i]);
    return points;
}

// Coal stores the number of a corner's neighbours in one byte.
constexpr std::size_t most_neighbours = 254;

std::size_t largest_neighbourhood(const Hull& hull) {
    std::vector<std::size_t> neighbours(hull.vertices.size(), 0);
    for (const auto& triangle : hull.triangles)
        for (const std::int32_t corner : triangle) ++neighbours[corner];
    return *std::max_element(neighbours.begin(), neighbours.end());
}

std::unique_ptr<coal::CollisionGeometry> build_hull(const Shape& shape) {
    const auto points = points_of(shape);
    const Hull hull = convex_hull(shape.vertices().data(), points->size(), most_neighbours);
    const auto refuse = [&](const std::string& why) {
        return Error(ErrorKind::shape, describe(shape) + why)
            .with({{"source", shape.source()}, {"vertices", points->size()}});
    };
    if (hull.triangles.empty())
        throw refuse(
            " has no convex hull with a volume: its " + std::to_string(points->size()) +
            " vertices lie in one plane; use a box instead, or check it at the level 'exact'");
    if (largest_neighbourhood(hull) > most_neighbours)
        throw refuse(" has a convex hull where more than " + std::to_string(most_neighbours) +
                     " edges meet in one corner; use a cone or cylinder instead, or a mesh with "
                     "fewer facets");
    auto corners = std::make_shared<std::vector<coal::Vec3s>>();
    for (const std::int32_t vertex : hull.vertices) corners->push_back((*points)[vertex]);
    auto triangles = std::make_shared<std::vector<coal::Triangle>>();
    for (const auto& [a, b, c] : hull.triangles) triangles->emplace_back(a, b, c);
    return std::make_unique<TabledHull>(corners, triangles);
}

std::unique_ptr<coal::CollisionGeometry> build_triangles(const Shape& shape) {
    const std::vector<std::int32_t>& f = shape.faces();
    std::vector<coal::Triangle> triangles;
    for (std::size_t i = 0; i + 2 < f.size(); i += 3)
        triangles.emplace_back(f[i], f[i + 1], f[i + 2]);
    const auto points = points_of(shape);
    auto model = std::make_unique<coal::BVHModel<coal::OBBRSS>>();
    model->beginModel(static_cast<unsigned int>(triangles.size()),
                      static_cast<unsigned int>(points->size()));
    model->addSubModel(*points, triangles);
    model->endModel();
    return model;
}

void fill_box(CoalStructure& structure, const Shape& shape) {
    for (int k = 0; k < 3; ++k) {
        structure.offset[k] = 0.5 * (shape.lower()[k] + shape.upper()[k]);
        structure.half[k] = 0.5 * std::max(shape.upper()[k] - shape.lower()[k], thinnest);
        structure.center[k] = 0.0;
    }
    structure.coal_geometry = std::make_unique<coal::Box>(2.0 * structure.half);
}

void fill_pieces(CoalStructure& structure, const Shape& shape) {
    structure.kind = GeometryKind::pieces;
    structure.pieces = std::make_unique<Pieces>(shape);
    for (int k = 0; k < 3; ++k) {
        structure.center[k] = 0.5 * (shape.lower()[k] + shape.upper()[k]);
        structure.half[k] = 0.5 * (shape.upper()[k] - shape.lower()[k]);
    }
}

std::unique_ptr<coal::CollisionGeometry> build_geometry(const Shape& shape) {
    const std::vector<double>& d = shape.dimensions();
    switch (shape.kind()) {
        case ShapeKind::box: return std::make_unique<coal::Box>(d[0], d[1], d[2]);
        case ShapeKind::sphere: return std::make_unique<coal::Sphere>(d[0]);
        case ShapeKind::cylinder: return std::make_unique<coal::Cylinder>(d[0], d[1]);
        case ShapeKind::cone: return std::make_unique<coal::Cone>(d[0], d[1]);
        case ShapeKind::capsule: return std::make_unique<coal::Capsule>(d[0], d[1]);
        default: return nullptr;
    }
}

void fill(CoalStructure& structure, const Shape& shape, CollisionLevel level) {
    const bool detailed = shape.kind() >= ShapeKind::mesh;
    if (shape.kind() == ShapeKind::plane) {
        structure.kind = GeometryKind::plane;
        return;
    }
    if (detailed && level == CollisionLevel::box) return fill_box(structure, shape);
    if (detailed && shape.kind() != ShapeKind::mesh) return fill_pieces(structure, shape);
    if (!detailed) {
        structure.coal_geometry = build_geometry(shape);
    } else if (level == CollisionLevel::hull) {
        structure.coal_geometry = build_hull(shape);
    } else {
        structure.kind = GeometryKind::triangles;
        structure.coal_geometry = build_triangles(shape);
    }
    structure.coal_geometry->computeLocalAABB();
    const coal::AABB& box = structure.coal_geometry->aabb_local;
    structure.center = box.center();
    structure.half = 0.5 * (box.max_ - box.min_);
}

// The radius of the largest ball about a point that is within a hull; negative outside.
double depth_of(const coal::Convex<coal::Triangle>& hull, const coal::Vec3s& center) {
    double least = std::numeric_limits<double>::infinity();
    const std::vector<coal::Vec3s>& points = *hull.points;
    for (const coal::Triangle& face : *hull.polygons) {
        const coal::Vec3s &p = points[face[0]],
                          normal = (points[face[1]] - p).cross(points[face[2]] - p);
        if (!normal.isZero(1e-14)) least = std::min(least, normal.dot(p - center) / normal.norm());
    }
    return least;
}

// Points that enclose the solid: those of a hull or of the axis of a ball or capsule, else the
// corners of its box; and a ball within it.
void enclose(CoalStructure& structure, const Shape& shape) {
    std::vector<coal::Vec3s> points;
    const auto* hull =
        dynamic_cast<const coal::Convex<coal::Triangle>*>(structure.coal_geometry.get());
    const std::vector<double>& d = shape.dimensions();
    const coal::Vec3s &center = structure.center, &half = structure.half;
    const bool is_round = shape.kind() == ShapeKind::sphere || shape.kind() == ShapeKind::capsule;
    if (hull) points.assign(hull->points->begin(), hull->points->begin() + hull->num_points);
    else if (structure.kind == GeometryKind::plane) points = {center};
    else if (is_round)
        for (const double side : {-0.5, 0.5})
            points.push_back(
                center +
                coal::Vec3s(0.0, 0.0, shape.kind() == ShapeKind::capsule ? side * d[1] : 0.0));
    else
        for (int corner = 0; corner < 8; ++corner)
            points.push_back(center + half.cwiseProduct(coal::Vec3s(corner & 1 ? 1.0 : -1.0,
                                                                    corner & 2 ? 1.0 : -1.0,
                                                                    corner & 4 ? 1.0 : -1.0)));
    for (const coal::Vec3s& point : points)
        for (int k = 0; k < 3; ++k)
            structure.points.push_back(static_cast<float>(point[k] - center[k]));
    if (is_round) structure.radius = d[0];
    if (structure.kind != GeometryKind::convex || shape.kind() == ShapeKind::cone) return;
    structure.axis = static_cast<std::int32_t>(longest_side(Bounds(-half, half)));
    const double thin = half.minCoeff(), long_half = half[structure.axis];
    const double middle = half.sum() - thin - long_half;
    for (const double side : {0.0, -1.0, 1.0}) {
        const double offset = side * (long_half - (hull ? middle : thin));
        coal::Vec3s ball_center = center;
        ball_center[structure.axis] += offset;
        const double radius = hull ? depth_of(*hull, ball_center) : thin;
        if (radius > 0.0 && (side == 0.0 || std::abs(offset) > 0.3 * thin))
            structure.balls.emplace_back(offset, radius);
    }
}

const CoalStructure& find_structure(const Shape& shape, CollisionLevel level) {
    const auto build = [level](const Shape& from) -> std::unique_ptr<CollisionStructure> {
        auto structure = std::make_unique<CoalStructure>();
        structure->shape = &from;
        structure->center.setZero();
        structure->half.setZero();
        try {
            fill(*structure, from, level);
            enclose(*structure, from);
        } catch (const Error& error) {  // stored, to raise it again
            structure->failure = error;
        }
        return structure;
    };
    return static_cast<const CoalStructure&>(shape.collision_structure(level, build));
}

}  // namespace

const CoalStructure& collision_structure(const Shape& shape, CollisionLevel level) {
    const CoalStructure& structure = find_structure(shape, level);
    if (structure.failure) throw *structure.failure;
    return structure;
}

const coal::CollisionGeometry* hull_or_null(const Shape& shape) {
    return find_structure(shape, CollisionLevel::hull).coal_geometry.get();
}

coal::Transform3s to_coal(const Pose& pose) {
    const Matrix3 rotation = pose.rotation();
    return {Eigen::Matrix<double, 3, 3, Eigen::RowMajor>(rotation.data()),
            coal::Vec3s(pose.translation.data())};
}

// A plane has a finite bound only if its normal is along an axis, to 1e-6 m within a thousand
// kilometres.
Bounds bounds_of(const CollisionGeometry& geometry, const coal::Transform3s& pose) {
    if (geometry.kind == GeometryKind::plane) {
        Bounds bounds = box_around(coal::Vec3s::Zero(), coal::Vec3s::Constant(endless));
        const coal::Vec3s normal = pose.getRotation().col(2);
        for (int k = 0; k < 3; ++k) {
            if (std::abs(normal[(k + 1) % 3]) > 1e-12 || std::abs(normal[(k + 2) % 3]) > 1e-12)
                continue;
            const double end = pose.getTranslation()[k];
            if (normal[k] > 0.0) bounds.max_[k] = end + thinnest;
            else bounds.min_[k] = end - thinnest;
        }
        return bounds;
    }
    return box_around(pose.transform(geometry.center),
                      pose.getRotation().cwiseAbs() * geometry.half);
}

}  // namespace tmkit
