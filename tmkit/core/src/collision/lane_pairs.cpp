#include "collision/lane_pairs.hpp"

#include <algorithm>
#include <cmath>

namespace tmkit {
namespace {

// Rounding of single precision, with a safety factor.
constexpr double rounding = 1e-6;
constexpr float unbounded = 1e30f;

bool has_direction(const WarmStart& warm) {
    return warm.direction[0] != 0.0f || warm.direction[1] != 0.0f || warm.direction[2] != 0.0f;
}

void copy(const coal::Transform3s& pose, float* rotation, float* translation) {
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j)
            rotation[3 * i + j] = static_cast<float>(pose.getRotation()(i, j));
        translation[i] = static_cast<float>(pose.getTranslation()[i]);
    }
}

// Boxes that overlap nothing.
lanes::Boxes no_boxes() {
    const lanes::Floats far_corner = lanes::Floats{} + 2.0f * lanes::endless;
    return {{far_corner, far_corner, far_corner}, {-far_corner, -far_corner, -far_corner}};
}

// A number in single precision, rounded away from the middle of a box.
float round_outwards(double number, float outwards) {
    return std::nextafter(
        static_cast<float>(std::clamp<double>(number, -lanes::endless, lanes::endless)),
        2.0f * outwards);
}

LaneWorkspace& workspace_of(CollisionView::Scratch::Data& data) {
    if (!data.lanes) data.lanes = std::make_shared<CollisionView::Scratch::Lanes>();
    return data.lanes->workspace;
}

}  // namespace

LanePairs::LanePairs(const Model& model, Data& data)
    : model_(model), data_(data), workspace_(workspace_of(data)) {
    workspace_.near.clear();
    if (workspace_.twists.empty()) make_workspace();
}

void LanePairs::make_workspace() {
    const std::size_t links = model_.links.size(),
                      moving = static_cast<std::size_t>(model_.moving_count);
    workspace_.twists.resize(links + 1);
    workspace_.joints.resize(links);
    workspace_.poses.resize(links);
    workspace_.boxes.resize(moving);
    workspace_.shapes.resize(moving);
    workspace_.placed_at.assign(moving, -1);
    workspace_.still_number.assign(model_.placed.size() - moving, -1);
    for (const Model::Link& link : model_.links) {
        lanes::Link& item = workspace_.links.emplace_back();
        item.parent = link.parent;
        item.prismatic = link.prismatic;
        copy(link.parent_from_joint, item.rotation, item.translation);
        workspace_.extent +=
            workspace_.lengths.emplace_back(link.parent_from_joint.getTranslation().norm());
    }
    double largest = 1.0;
    for (std::int32_t i = 0; i < model_.moving_count; ++i) {
        workspace_.geometries.push_back(geometry_of(i));
        const CollisionGeometry& geometry = model_.collision_shape(i);
        workspace_.sizes.push_back(
            model_.placed[i].link_from_shape.transform(geometry.center).norm() +
            geometry.half.norm());
        largest = std::max(largest, workspace_.sizes.back());
    }
    workspace_.extent += largest;
    for (const auto& pair : model_.moving_pairs) {
        workspace_.common.push_back(model_.common_link(pair.a, pair.b));
        workspace_.pairs.push_back({pair.a, pair.b});
    }
    make_groups();
}

// Few boxes are compared eight at a time, which costs less than a tree's branches.
void LanePairs::make_groups() {
    constexpr std::size_t most = 64;
    const std::size_t moving = static_cast<std::size_t>(model_.moving_count),
                      still = model_.still_bounds.size();
    if (still > most) return;
    workspace_.still_order = model_.tree.leaves();
    workspace_.still_groups.assign((still + lanes::width - 1) / lanes::width, no_boxes());
    workspace_.among.assign(moving, 0);
    for (std::size_t number = 0; number < still; ++number) {
        const std::int32_t shape = workspace_.still_order[number];
        const Bounds& box = model_.still_bounds[shape];
        lanes::Boxes& group = workspace_.still_groups[number / lanes::width];
        for (int k = 0; k < 3; ++k) {
            group.lower[k][number % lanes::width] = round_outwards(box.min_[k], -lanes::endless);
            group.upper[k][number % lanes::width] = round_outwards(box.max_[k], lanes::endless);
        }
        const std::int32_t object = model_.collision_shape(model_.moving_count + shape).object;
        for (std::size_t a = 0; a < moving; ++a)
            if (model_.table[std::size_t(model_.row[a]) * model_.shapes->object_count() + object])
                workspace_.among[a] |= std::uint64_t{1} << number;
    }
}

lanes::Geometry LanePairs::geometry_of(std::int32_t number) const {
    const CollisionShape& shape = model_.collision_shape(number);
    const CoalStructure& structure = *shape.structure;
    lanes::Geometry item{};
    item.link = model_.placed[number].link;
    coal::Transform3s pose = model_.placed[number].link_from_shape;
    pose.translation() = pose.transform(shape.center);
    copy(pose, item.rotation, item.center);
    item.radius = static_cast<float>(structure.radius);
    item.axis = structure.axis;
    item.ball_count = static_cast<std::int32_t>(structure.balls.size());
    for (std::size_t i = 0; i < structure.balls.size(); ++i) {
        item.offsets[i] = static_cast<float>(structure.balls[i].first);
        item.radii[i] = static_cast<float>(structure.balls[i].second);
    }
    item.fuzz = static_cast<float>(rounding * (shape.half.norm() + pose.getTranslation().norm()));
    item.is_box =
        structure.coal_geometry && structure.coal_geometry->getNodeType() == coal::GEOM_BOX;
    for (int k = 0; k < 3; ++k) item.half[k] = static_cast<float>(shape.half[k]);
    item.points = structure.points.data();
    item.count = static_cast<std::int32_t>(structure.points.size() / 3);
    if (const auto* hull = dynamic_cast<const TabledHull*>(structure.coal_geometry.get())) {
        item.first = hull->table.first();
        item.farthest = hull->table.corners();
        item.side = hull->table.side();
    }
    return item;
}

void LanePairs::place_lanes(double half) {
    half_ = lanes::Floats{} + static_cast<float>(half);
    ++workspace_.now;
    double extent = workspace_.extent;
    for (std::size_t i = 0; i < workspace_.links.size(); ++i)
        if (workspace_.links[i].prismatic) {
            float farthest = 0.0f;
            for (int lane = 0; lane < lanes::width; ++lane)
                farthest = std::max(farthest, std::abs(workspace_.joints[i].value[lane]));
            extent += static_cast<double>(farthest);
        }
    workspace_.slack =
        static_cast<float>(rounding * static_cast<double>(workspace_.links.size() + 3) * extent);
    moves_ = half > 0.0;
    kernels_.place(workspace_.links.data(), workspace_.links.size(), workspace_.joints.data(),
                   workspace_.poses.data(), moves_ ? workspace_.twists.data() : nullptr);
}

void LanePairs::place_in_lanes(std::int32_t number) {
    if (number < model_.moving_count) {
        kernels_.place_geometry(workspace_.geometries[number], workspace_.poses.data(),
                                moves_ ? workspace_.twists.data() : nullptr, half_,
                                workspace_.shapes[number]);
        workspace_.placed_at[number] = workspace_.now;
        return;
    }
    workspace_.still_number[number - model_.moving_count] =
        static_cast<std::int32_t>(workspace_.shapes.size());
    workspace_.shapes.emplace_back();
    kernels_.place_geometry(workspace_.still_geometries.emplace_back(geometry_of(number)), nullptr,
                            nullptr, half_, workspace_.shapes.back());
}

Bounds LanePairs::enclose(std::int32_t shape) {
    float* box = workspace_.boxes[shape].data();
    kernels_.enclose(workspace_.shapes[place_number(shape)], box);
    Bounds around;
    for (int k = 0; k < 3; ++k) {
        around.min_[k] = box[k] -= workspace_.slack;
        around.max_[k] = box[k + 3] += workspace_.slack;
    }
    return around;
}

unsigned LanePairs::meet(const Model::Candidate& pair, std::int32_t link, unsigned used) {
    const auto& [a, b, margin] = pair;
    const std::int32_t at_a = place_number(a), at_b = place_number(b);
    const lanes::PlacedGeometry &shape_a = workspace_.shapes[at_a],
                                &shape_b = workspace_.shapes[at_b];
    const lanes::Twist* common = twist(link);
    const bool is_plane = shape_b.geometry->count == 1;
    lanes::Overlap overlap{used, used};
    lanes::Vector normal;
    unsigned inside = 0;
    if (!is_plane && shape_a.geometry->count > 1) {
        overlap = kernels_.overlap(shape_a, shape_b, common, within(margin, shape_b), normal);
        overlap.swept &= used;
        if (overlap.middle && margin >= 0.0)
            inside = kernels_.inside(shape_a, shape_b, within(margin, shape_b)) & used;
        overlap.swept &= ~inside;
        if (!overlap.swept) return inside;
    }
    WarmStart& warm = warm_of(a, b);
    if (is_plane) warm.direction[2] = 1.0f;
    const float distance = within(margin, shape_b) + remainder(a, b, link);
    if (has_direction(warm))
        overlap.swept &= ~kernels_.apart(shape_a, shape_b, common, warm.direction, nullptr,
                                         distance, overlap.swept, false);
    if (overlap.swept && !is_plane && shape_a.geometry->count > 1)
        overlap.swept &= ~kernels_.apart(shape_a, shape_b, common, nullptr, &normal, distance,
                                         overlap.swept, false);
    if (overlap.swept)
        workspace_.near.push_back({pair, link, overlap.swept, overlap.middle & overlap.swept, 0});
    return inside;
}

unsigned LanePairs::overlap(const Model::Candidate& pair) {
    const auto& [a, b, margin] = pair;
    if (margin < 0.0) return 0;
    const std::int32_t at_a = place_number(a), at_b = place_number(b);
    const lanes::PlacedGeometry& shape_b = workspace_.shapes[at_b];
    return kernels_.inside(workspace_.shapes[at_a], shape_b, within(margin, shape_b));
}

const float* LanePairs::separate(NearPair& near_pair, const coal::Vec3s& ray,
                                 bool in_present_lanes) {
    const auto& [a, b, margin] = near_pair.pair;
    const coal::Vec3s direction = data_.shape_pose[a].getRotation() * ray.normalized();
    const coal::Vec3s local = model_.pose(b, data_).getRotation().transpose() * direction;
    WarmStart& warm = warm_of(a, b);
    for (int k = 0; k < 3; ++k) warm.direction[k] = static_cast<float>(local[k]);
    if (in_present_lanes) separate_closely(near_pair);
    return warm.direction;
}

void LanePairs::separate_closely(NearPair& near_pair) {
    const auto& [a, b, margin] = near_pair.pair;
    const WarmStart& warm = warm_of(a, b);
    if (!near_pair.waiting || !has_direction(warm)) return;
    const std::int32_t at_a = place_number(a), at_b = place_number(b);
    near_pair.waiting &= ~kernels_.apart(
        workspace_.shapes[at_a], workspace_.shapes[at_b], twist(near_pair.link), warm.direction,
        nullptr, within(margin, workspace_.shapes[at_b]) + remainder(a, b, near_pair.link),
        near_pair.waiting, true);
}

double LanePairs::reach(const NearPair& near_pair, int lane, const float* direction) {
    if (!moves_) return 0.0;
    const std::int32_t at_a = place_number(near_pair.pair.a), at_b = place_number(near_pair.pair.b);
    std::array<float, lanes::width> by{};
    kernels_.reach(workspace_.shapes[at_a], workspace_.shapes[at_b],
                   workspace_.twists[near_pair.link + 1], direction, by.data());
    return static_cast<double>(by[static_cast<std::size_t>(lane)] +
                               remainder(near_pair.pair.a, near_pair.pair.b, near_pair.link));
}

float LanePairs::remainder(std::int32_t a, std::int32_t b, std::int32_t common) const {
    if (!moves_) return 0.0f;
    const bool both_move = b < model_.moving_count;
    const float most = both_move ? remainder_from(common, a) + remainder_from(common, b)
                                 : workspace_.geometries[a].remainder;
    return 4.0f * most * half_[0] * half_[0];
}

float LanePairs::remainder_from(std::int32_t common, std::int32_t shape) const {
    if (model_.collision_shape(shape).kind == GeometryKind::plane) return unbounded;
    const std::vector<RemainderBound>& bounds = data_.lanes->remainders;
    const auto bound_of = [&](std::int32_t link) -> const RemainderBound& {
        const std::int32_t row = link + 1;
        return bounds[std::size_t(row)];
    };
    const auto turns = [&](std::int32_t link) {
        return bound_of(link).turns - bound_of(common).turns;
    };
    std::int32_t link = model_.placed[shape].link;
    double sum = 0.5 * turns(link) * turns(link) * workspace_.sizes[shape];
    while (link != common) {
        const RemainderBound& bound = bound_of(link);
        link = model_.links[link].parent;
        sum += turns(link) * (0.5 * turns(link) * bound.length + bound.slide);
    }
    return static_cast<float>(sum);
}

}  // namespace tmkit
