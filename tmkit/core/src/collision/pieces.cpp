// Bodies of many convex pieces: the trees of point clouds and height fields.
#include <coal/shape/geometric_shapes.h>

#include <algorithm>

#include "collision/collision_geometry.hpp"

namespace tmkit {
namespace {

constexpr std::int32_t points_in_leaf = 4, cells_in_leaf = 2;

// The prism under a triangle: corners 0 to 2 on the surface, 3 to 5 below them; counter-clockwise
// from outside.
constexpr std::array<std::array<unsigned int, 3>, 8> prism_faces{
    {{0, 1, 2}, {3, 5, 4}, {0, 3, 1}, {1, 3, 4}, {1, 4, 2}, {2, 4, 5}, {2, 5, 0}, {0, 5, 3}}};

}  // namespace

const coal::Convex<coal::Triangle>& PrismWorkspace::prism(const std::array<coal::Vec3s, 3>& top,
                                                          double bottom) {
    if (!corners_) corners_ = std::make_shared<std::vector<coal::Vec3s>>(6);
    for (int i = 0; i < 3; ++i) {
        (*corners_)[i] = top[i];
        (*corners_)[i + 3] = coal::Vec3s(top[i][0], top[i][1], bottom);
    }
    if (!prism_) {
        auto triangles = std::make_shared<std::vector<coal::Triangle>>();
        for (const auto& [a, b, c] : prism_faces) triangles->emplace_back(a, b, c);
        prism_ = std::make_unique<coal::Convex<coal::Triangle>>(
            corners_, 6, triangles, static_cast<unsigned int>(triangles->size()));
    }
    return *prism_;
}

Pieces::Pieces(const Shape& shape) : shape_(&shape) {
    if (shape.kind() == ShapeKind::point_cloud) {
        ball_ = std::make_unique<coal::Sphere>(shape.dimensions()[0]);
        order_.resize(shape.points().size() / 3);
        for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<std::int32_t>(i);
        build_points(0, static_cast<std::int32_t>(order_.size()));
    } else {
        order_.reserve(2 * (shape.rows() - 1) * (shape.columns() - 1));
        build_cells({0, static_cast<std::int32_t>(shape.rows()) - 1, 0,
                     static_cast<std::int32_t>(shape.columns()) - 1});
    }
    nodes_.shrink_to_fit();
}

std::int32_t Pieces::add_leaf(std::int32_t begin) {
    const auto end =
        static_cast<std::int32_t>(shape_->kind() == ShapeKind::point_cloud ? begin : order_.size());
    const auto node_number = static_cast<std::int32_t>(nodes_.size());
    nodes_.push_back({{}, begin, end, 0});
    return node_number;
}

void Pieces::join(std::int32_t node, std::int32_t first, std::int32_t second) {
    nodes_[node].bounds = nodes_[first].bounds + nodes_[second].bounds;
    nodes_[node].second = second;
}

// Halves the points at their median along the longest side. Ties are broken by number, so the tree
// is reproducible.
std::int32_t Pieces::build_points(std::int32_t begin, std::int32_t end) {
    const double* points = shape_->points().data();
    const std::int32_t node_number = add_leaf(begin);
    nodes_[node_number].end = end;
    Bounds all = bounds(order_[begin]);
    for (std::int32_t i = begin; i < end; ++i) all += bounds(order_[i]);
    nodes_[node_number].bounds = all;
    if (end - begin <= points_in_leaf) return node_number;
    const Eigen::Index side = longest_side(all);
    const std::int32_t middle = begin + (end - begin) / 2;
    std::nth_element(order_.begin() + begin, order_.begin() + middle, order_.begin() + end,
                     [&](std::int32_t a, std::int32_t b) {
        const double x = points[3 * std::size_t(a) + side], y = points[3 * std::size_t(b) + side];
        return x != y ? x < y : a < b;
    });
    const std::int32_t first = build_points(begin, middle), second = build_points(middle, end);
    join(node_number, first, second);
    return node_number;
}

// Halve the grid across its longer side; heights are read only in the leaves.
std::int32_t Pieces::build_cells(const Cells& cells) {
    const std::int32_t rows = cells.row_end - cells.row_begin,
                       columns = cells.column_end - cells.column_begin;
    const std::int32_t node_number = add_leaf(static_cast<std::int32_t>(order_.size()));
    if (rows * columns <= cells_in_leaf) {
        const auto across = static_cast<std::int32_t>(shape_->columns()) - 1;
        for (std::int32_t row = cells.row_begin; row < cells.row_end; ++row)
            for (std::int32_t column = cells.column_begin; column < cells.column_end; ++column)
                for (std::int32_t half = 0; half < 2; ++half)
                    order_.push_back(2 * (row * across + column) + half);
        Bounds all = bounds(order_[nodes_[node_number].begin]);
        for (auto i = static_cast<std::size_t>(nodes_[node_number].begin); i < order_.size(); ++i)
            all += bounds(order_[i]);
        nodes_[node_number].bounds = all;
        nodes_[node_number].end = static_cast<std::int32_t>(order_.size());
        return node_number;
    }
    Cells low = cells, high = cells;
    if (rows > columns) low.row_end = high.row_begin = cells.row_begin + rows / 2;
    else low.column_end = high.column_begin = cells.column_begin + columns / 2;
    const std::int32_t first = build_cells(low), second = build_cells(high);
    nodes_[node_number].end = static_cast<std::int32_t>(order_.size());
    join(node_number, first, second);
    return node_number;
}

// Corners 0 to 2 of prism 2 * cell + half, on the surface.
coal::Vec3s Pieces::prism_corner(std::int32_t number, int corner) const {
    const std::size_t across = shape_->columns() - 1, cell = static_cast<std::size_t>(number) / 2;
    const std::size_t row = cell / across, column = cell % across;
    const bool second = number % 2;  // the half beyond the diagonal
    const Vector3 point = corner == 0   ? shape_->surface_point(row, column)
                          : corner == 1 ? shape_->surface_point(row + second, column + 1)
                                        : shape_->surface_point(row + 1, column + !second);
    return coal::Vec3s(point.data());
}

Bounds Pieces::bounds(std::int32_t number) const {
    if (ball_)
        return inflated(Bounds(coal::Vec3s(&shape_->points()[3 * std::size_t(number)])),
                        shape_->dimensions()[0]);
    Bounds box(prism_corner(number, 0), prism_corner(number, 1), prism_corner(number, 2));
    box.min_[2] = shape_->dimensions()[2];
    return box;
}

CollisionGeometry Pieces::piece(std::int32_t number, const coal::Transform3s& pose,
                                PrismWorkspace& workspace, coal::Transform3s& piece_pose) const {
    CollisionGeometry piece;
    piece_pose.rotation() = pose.getRotation();
    if (ball_) {
        piece_pose.translation() =
            pose.transform(coal::Vec3s(&shape_->points()[3 * std::size_t(number)]));
        piece.coal_geometry = ball_.get();
        piece.half.setConstant(shape_->dimensions()[0]);
        return piece;
    }
    // The prism's own origin is its middle, where numbers are small.
    const Bounds box = bounds(number);
    const coal::Vec3s middle = box.center();
    std::array<coal::Vec3s, 3> top;
    for (int corner = 0; corner < 3; ++corner) top[corner] = prism_corner(number, corner) - middle;
    piece_pose.translation() = pose.transform(middle);
    piece.coal_geometry = &workspace.prism(top, box.min_[2] - middle[2]);
    piece.half = 0.5 * (box.max_ - box.min_);
    return piece;
}

}  // namespace tmkit
