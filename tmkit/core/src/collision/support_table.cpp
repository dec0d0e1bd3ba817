#include "collision/support_table.hpp"

#include <coal/narrowphase/support_functions.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <typeinfo>

namespace tmkit {
namespace {

using coal::Vec3s;
using Numbers = std::vector<std::uint32_t>;

// Cells to a side of the cube: so many that few corners are left in each.
int side_for(std::size_t corners) { return corners <= 16 ? 2 : corners <= 64 ? 4 : corners <= 1024 ? 8 : 16; }

// A direction to a place in a grid, from 0 to its side; faces are numbered by axis, then by sign.
Vec3s towards(int face, double u, double v, int side) {
    Vec3s direction;
    const int axis = face / 2;
    direction[axis] = face % 2 ? -1.0 : 1.0;
    direction[(axis + 1) % 3] = 2.0 * u / side - 1.0;
    direction[(axis + 2) % 3] = 2.0 * v / side - 1.0;
    return direction.normalized();
}

// Keeps the corners that are farthest along some direction in a cell. A corner is not one of them if the
// one that is farthest along the middle is farther by more than a turn to the cell's edge can make up for.
void narrow(const std::vector<Vec3s>& corners, int face, int row, int column, int side, Numbers& kept) {
    const Vec3s middle = towards(face, row + 0.5, column + 0.5, side);
    double turn = 0.0;
    for (const int u : {row, row + 1})
        for (const int v : {column, column + 1}) turn = std::max(turn, (towards(face, u, v, side) - middle).norm());
    turn *= 1.0 + 1e-9;
    const Vec3s top = corners[*std::max_element(kept.begin(), kept.end(), [&](std::uint32_t a, std::uint32_t b) {
        return corners[a].dot(middle) < corners[b].dot(middle);
    })];
    std::erase_if(kept, [&](std::uint32_t corner) {
        const Vec3s lower = top - corners[corner];
        return lower.dot(middle) > turn * lower.norm();
    });
}

void farthest_of_both(const coal::details::MinkowskiDiff& difference, const Vec3s& direction, Vec3s& point_a,
                      Vec3s& point_b, coal::support_func_guess_t& hint, coal::details::ShapeSupportData data[2]) {
    using coal::details::SupportOptions;
    constexpr int plain = SupportOptions::NoSweptSphere;
    const auto farthest = [&](int which, const Vec3s& along, Vec3s& point) {
        const auto& [table, box] = static_cast<const TabledDifference&>(difference).known[which];
        if (table) point = table->farthest(along);
        else if (box) coal::details::getShapeSupport<plain>(box, along, point, hint[which], data[which]);
        else point = coal::details::getSupport<plain>(difference.shapes[which], along, hint[which]);
    };
    farthest(0, direction, point_a);
    Vec3s point;
    farthest(1, -(difference.oR1.transpose() * direction), point);
    point_b.noalias() = difference.oR1 * point;
    point_b += difference.ot1;
}

}  // namespace

SupportTable::SupportTable(std::shared_ptr<const std::vector<Vec3s>> shared) : corners_(std::move(shared)) {
    const std::vector<Vec3s>& corners = *corners_;
    Numbers all(corners.size());
    std::iota(all.begin(), all.end(), 0u);
    std::vector<Numbers> cells(6, all);
    for (;; side_ *= 2) {
        const int area = side_ * side_;
        for (int cell = 0; cell < 6 * area; ++cell)
            narrow(corners, cell / area, cell % area / side_, cell % side_, side_, cells[cell]);
        if (side_ >= side_for(corners.size())) break;
        std::vector<Numbers> parts;
        for (int part = 0; part < 24 * area; ++part) {
            const int row = part % (4 * area) / (2 * side_), column = part % (2 * side_);
            parts.push_back(cells[part / (4 * area) * area + row / 2 * side_ + column / 2]);
        }
        cells.swap(parts);
    }
    for (const Numbers& cell : cells) {
        first_.push_back(static_cast<std::uint32_t>(farthest_.size()));
        farthest_.insert(farthest_.end(), cell.begin(), cell.end());
    }
    first_.push_back(static_cast<std::uint32_t>(farthest_.size()));
}

const Vec3s& SupportTable::farthest(const Vec3s& direction) const {
    const double x = std::abs(direction[0]), y = std::abs(direction[1]), z = std::abs(direction[2]);
    const int axis = x >= y ? (x >= z ? 0 : 2) : y >= z ? 1 : 2;
    const double most = std::abs(direction[axis]);
    const std::vector<Vec3s>& corners = *corners_;
    if (!(most > 0.0)) return corners.front();
    const double scale = 0.5 * side_ / most, half = 0.5 * side_, last = side_ - 1;
    const auto cell_at = [&](double along) {  // 0 for what is no number
        const double at = scale * along + half;
        return at > 0.0 ? static_cast<int>(std::min(at, last)) : 0;
    };
    const int row = cell_at(direction[(axis + 1) % 3]), column = cell_at(direction[(axis + 2) % 3]);
    const int face = 2 * axis + (direction[axis] < 0.0 ? 1 : 0), cell = (face * side_ + row) * side_ + column;
    const std::uint32_t* at = farthest_.data() + first_[cell];
    const std::uint32_t* end = farthest_.data() + first_[cell + 1];
    std::uint32_t best = *at;
    double height = corners[best].dot(direction);
    while (++at != end)
        if (const double other = corners[*at].dot(direction); other > height) {
            height = other;
            best = *at;
        }
    return corners[best];
}

TabledHull::TabledHull(const std::shared_ptr<std::vector<Vec3s>>& corners,
                       const std::shared_ptr<std::vector<coal::Triangle>>& triangles)
    : Convex(corners, static_cast<unsigned int>(corners->size()), triangles,
             static_cast<unsigned int>(triangles->size())),
      table(corners) {}

void TabledDifference::set_shapes(const coal::ShapeBase& a, const coal::ShapeBase& b, const coal::Transform3s& pose_a,
                                  const coal::Transform3s& pose_b) {
    set(&a, &b, pose_a, pose_b);
    for (int i = 0; i < 2; ++i) {
        const bool is_hull = typeid(*shapes[i]) == typeid(TabledHull);
        known[i] = {is_hull ? &static_cast<const TabledHull*>(shapes[i])->table : nullptr,
                    shapes[i]->getNodeType() == coal::GEOM_BOX ? static_cast<const coal::Box*>(shapes[i]) : nullptr};
    }
    if (known[0].table || known[1].table) getSupportFunc = farthest_of_both;
}

}  // namespace tmkit
