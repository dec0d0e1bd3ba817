#include "collision/support_table.hpp"

#include <coal/narrowphase/support_functions.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>
#include <typeinfo>

namespace tmkit {
namespace {

using coal::Vec3s;
using Numbers = std::vector<std::uint32_t>;

// Cells to a side of the cube, enough for few corners in each.
int side_for(std::size_t corners) {
    return corners <= 16 ? 2 : corners <= 64 ? 8 : corners <= 256 ? 16 : 32;
}

// A direction to a position in a grid, from 0 to its side; faces are numbered by axis, then by
// sign.
Vec3s towards(int face, double u, double v, int side) {
    Vec3s direction;
    const int axis = face / 2;
    direction[axis] = face % 2 ? -1.0 : 1.0;
    direction[(axis + 1) % 3] = 2.0 * u / side - 1.0;
    direction[(axis + 2) % 3] = 2.0 * v / side - 1.0;
    return direction.normalized();
}

// Add the corners that are farthest along some direction in a cell. A corner is excluded if another
// one is farther along all four edges of the cell's cone: then it is farther along their sums,
// which are all directions in the cell. The others are those that are farthest along an edge or
// along the middle.
void add_farthest(const std::vector<Vec3s>& corners, std::span<const std::uint32_t> of, int face,
                  int row, int column, int side, Numbers& results) {
    constexpr double rounding = 1e-9;  // of directions, relative
    const std::array<Vec3s, 5> directions{
        towards(face, row, column, side), towards(face, row, column + 1, side),
        towards(face, row + 1, column, side), towards(face, row + 1, column + 1, side),
        towards(face, row + 0.5, column + 0.5, side)};
    std::array<const Vec3s*, 5> tops;
    tops.fill(&corners[of.front()]);
    for (const std::uint32_t corner : of)
        for (int k = 0; k < 5; ++k)
            if (corners[corner].dot(directions[k]) > tops[k]->dot(directions[k]))
                tops[k] = &corners[corner];
    const auto is_farther = [&](const Vec3s& a, const Vec3s& b) {
        const Vec3s by = a - b;
        const double least = rounding * by.norm();
        for (int k = 0; k < 4; ++k)
            if (by.dot(directions[k]) <= least) return false;
        return true;
    };
    for (const std::uint32_t corner : of)
        if (std::none_of(tops.begin(), tops.end(),
                         [&](const Vec3s* top) { return is_farther(*top, corners[corner]); }))
            results.push_back(corner);
}

void farthest_of_both(const coal::details::MinkowskiDiff& difference, const Vec3s& direction,
                      Vec3s& point_a, Vec3s& point_b, coal::support_func_guess_t& hint,
                      coal::details::ShapeSupportData data[2]) {
    using coal::details::SupportOptions;
    constexpr int plain = SupportOptions::NoSweptSphere;
    const auto farthest = [&](int which, const Vec3s& direction, Vec3s& point) {
        const auto& [table, box] = static_cast<const TabledDifference&>(difference).hulls[which];
        if (table) point = table->farthest(direction);
        else if (box)
            coal::details::getShapeSupport<plain>(box, direction, point, hint[which], data[which]);
        else
            point =
                coal::details::getSupport<plain>(difference.shapes[which], direction, hint[which]);
    };
    farthest(0, direction, point_a);
    Vec3s point;
    farthest(1, -(difference.oR1.transpose() * direction), point);
    point_b.noalias() = difference.oR1 * point;
    point_b += difference.ot1;
}

}  // namespace

SupportTable::SupportTable(std::shared_ptr<const std::vector<Vec3s>> shared)
    : corners_(std::move(shared)) {
    const std::vector<Vec3s>& corners = *corners_;
    Numbers wider(corners.size()), begins{0, static_cast<std::uint32_t>(corners.size())};
    std::iota(wider.begin(), wider.end(), 0u);
    for (;; side_ *= 2) {  // each cell tests the corners of the cell of which it is a quarter
        first_.clear();
        farthest_.clear();
        for (int face = 0; face < 6; ++face)
            for (int row = 0; row < side_; ++row)
                for (int column = 0; column < side_; ++column) {
                    const int half = side_ / 2,
                              of = half ? (face * half + row / 2) * half + column / 2 : 0;
                    first_.push_back(static_cast<std::uint32_t>(farthest_.size()));
                    add_farthest(corners,
                                 {wider.data() + begins[of], wider.data() + begins[of + 1]}, face,
                                 row, column, side_, farthest_);
                }
        first_.push_back(static_cast<std::uint32_t>(farthest_.size()));
        if (side_ >= side_for(corners.size())) break;
        wider = farthest_;
        begins = first_;
    }
    farthest_.shrink_to_fit();
}

const Vec3s& SupportTable::farthest(const Vec3s& direction) const {
    const double x = std::abs(direction[0]), y = std::abs(direction[1]), z = std::abs(direction[2]);
    const int axis = x >= y ? (x >= z ? 0 : 2) : y >= z ? 1 : 2;
    const double most = std::abs(direction[axis]);
    const std::vector<Vec3s>& corners = *corners_;
    if (!(most > 0.0)) return corners.front();
    const double scale = 0.5 * side_ / most, half = 0.5 * side_, last = side_ - 1;
    const auto cell_at = [&](double component) {  // 0 for NaN
        const double position = scale * component + half;
        return position > 0.0 ? static_cast<int>(std::min(position, last)) : 0;
    };
    const int row = cell_at(direction[(axis + 1) % 3]), column = cell_at(direction[(axis + 2) % 3]);
    const int face = 2 * axis + (direction[axis] < 0.0 ? 1 : 0),
              cell = (face * side_ + row) * side_ + column;
    const std::uint32_t* cursor = farthest_.data() + first_[cell];
    const std::uint32_t* end = farthest_.data() + first_[cell + 1];
    std::uint32_t best = *cursor;
    double height = corners[best].dot(direction);
    while (++cursor != end)
        if (const double projection = corners[*cursor].dot(direction); projection > height) {
            height = projection;
            best = *cursor;
        }
    return corners[best];
}

TabledHull::TabledHull(const std::shared_ptr<std::vector<Vec3s>>& corners,
                       const std::shared_ptr<std::vector<coal::Triangle>>& triangles)
    : Convex(corners, static_cast<unsigned int>(corners->size()), triangles,
             static_cast<unsigned int>(triangles->size())),
      table(corners) {}

void TabledDifference::set_shapes(const coal::ShapeBase& a, const coal::ShapeBase& b,
                                  const coal::Transform3s& pose_a,
                                  const coal::Transform3s& pose_b) {
    set(&a, &b, pose_a, pose_b);
    for (int i = 0; i < 2; ++i) {
        const bool is_hull = typeid(*shapes[i]) == typeid(TabledHull);
        hulls[i] = {is_hull ? &static_cast<const TabledHull*>(shapes[i])->table : nullptr,
                    shapes[i]->getNodeType() == coal::GEOM_BOX
                        ? static_cast<const coal::Box*>(shapes[i])
                        : nullptr};
    }
    if (hulls[0].table || hulls[1].table) getSupportFunc = farthest_of_both;
}

}  // namespace tmkit
