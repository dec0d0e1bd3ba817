#include "collision/lane_pairs.hpp"

#include <algorithm>
#include <cmath>

namespace tmkit {
namespace {

// Of single precision, a few times over.
constexpr double rounding = 1e-6;

bool has_direction(const WarmStart& warm) {
    return warm.direction[0] != 0.0f || warm.direction[1] != 0.0f || warm.direction[2] != 0.0f;
}

void copy(const coal::Transform3s& pose, float* rotation, float* translation) {
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) rotation[3 * i + j] = static_cast<float>(pose.getRotation()(i, j));
        translation[i] = static_cast<float>(pose.getTranslation()[i]);
    }
}

// Boxes that meet nothing.
lanes::Boxes no_boxes() {
    const lanes::Floats far = lanes::Floats{} + 2.0f * lanes::endless;
    return {{far, far, far}, {-far, -far, -far}};
}

// A number in single precision, no nearer to the middle of a box.
float rounded(double number, float outwards) {
    return std::nextafter(static_cast<float>(std::clamp<double>(number, -lanes::endless, lanes::endless)),
                          2.0f * outwards);
}

LaneRoom& room_of(CollisionView::Scratch::Data& data) {
    if (!data.lanes) data.lanes = std::make_unique<CollisionView::Scratch::Lanes>();
    return data.lanes->room;
}

}  // namespace

LanePairs::LanePairs(const Model& model, Data& data) : model_(model), data_(data), room_(room_of(data)) {
    room_.near.clear();
    if (room_.twists.empty()) make_room();
}

void LanePairs::make_room() {
    const std::size_t links = model_.links.size(), moving = static_cast<std::size_t>(model_.moving_count);
    room_.twists.resize(links + 1);
    room_.joints.resize(links);
    room_.poses.resize(links);
    room_.boxes.resize(moving);
    room_.items.resize(moving);
    room_.placed_at.assign(moving, -1);
    room_.still_number.assign(model_.placed.size() - moving, -1);
    for (const Model::Link& link : model_.links) {
        lanes::Link& made = room_.links.emplace_back();
        made.parent = link.parent;
        made.prismatic = link.prismatic;
        copy(link.parent_from_joint, made.rotation, made.translation);
        room_.extent += room_.lengths.emplace_back(link.parent_from_joint.getTranslation().norm());
    }
    double largest = 1.0;
    for (std::int32_t i = 0; i < model_.moving_count; ++i) {
        room_.solids.push_back(solid_of(i));
        const Solid& solid = model_.item(i);
        room_.sizes.push_back(model_.placed[i].link_from_shape.transform(solid.center).norm() + solid.half.norm());
        largest = std::max(largest, room_.sizes.back());
    }
    room_.extent += largest;
    for (const auto& pair : model_.moving_pairs) {
        room_.common.push_back(model_.common_link(pair.a, pair.b));
        room_.pairs.push_back({pair.a, pair.b});
    }
    make_groups();
}

// Few boxes are compared eight at a time, which costs less than a tree's branches.
void LanePairs::make_groups() {
    constexpr std::size_t most = 64;
    const std::size_t moving = static_cast<std::size_t>(model_.moving_count), still = model_.still_bounds.size();
    if (still > most) return;
    room_.still_order = model_.tree.items();
    room_.still_groups.assign((still + lanes::width - 1) / lanes::width, no_boxes());
    room_.among.assign(moving, 0);
    for (std::size_t number = 0; number < still; ++number) {
        const std::int32_t item = room_.still_order[number];
        const Bounds& box = model_.still_bounds[item];
        lanes::Boxes& group = room_.still_groups[number / lanes::width];
        for (int k = 0; k < 3; ++k) {
            group.lower[k][number % lanes::width] = rounded(box.min_[k], -lanes::endless);
            group.upper[k][number % lanes::width] = rounded(box.max_[k], lanes::endless);
        }
        const std::int32_t object = model_.item(model_.moving_count + item).object;
        for (std::size_t a = 0; a < moving; ++a)
            if (model_.table[std::size_t(model_.row[a]) * model_.shapes->object_count() + object])
                room_.among[a] |= std::uint64_t{1} << number;
    }
}

lanes::Solid LanePairs::solid_of(std::int32_t number) const {
    const CollisionItem& item = model_.item(number);
    const CoalStructure& structure = *item.structure;
    lanes::Solid made{};
    made.link = model_.placed[number].link;
    coal::Transform3s pose = model_.placed[number].link_from_shape;
    pose.translation() = pose.transform(item.center);
    copy(pose, made.rotation, made.center);
    made.radius = static_cast<float>(structure.radius);
    made.axis = structure.axis;
    made.ball_count = static_cast<std::int32_t>(structure.balls.size());
    for (std::size_t i = 0; i < structure.balls.size(); ++i) {
        made.offsets[i] = static_cast<float>(structure.balls[i].first);
        made.radii[i] = static_cast<float>(structure.balls[i].second);
    }
    made.fuzz = static_cast<float>(rounding * (item.half.norm() + pose.getTranslation().norm()));
    made.is_box = structure.geometry && structure.geometry->getNodeType() == coal::GEOM_BOX;
    for (int k = 0; k < 3; ++k) made.half[k] = static_cast<float>(item.half[k]);
    made.points = structure.points.data();
    made.count = static_cast<std::int32_t>(structure.points.size() / 3);
    if (const auto* hull = dynamic_cast<const TabledHull*>(structure.geometry.get())) {
        made.first = hull->table.first();
        made.farthest = hull->table.corners();
        made.side = hull->table.side();
    }
    return made;
}

void LanePairs::place_lanes(double half) {
    half_ = lanes::Floats{} + static_cast<float>(half);
    ++room_.now;
    double extent = room_.extent;
    for (std::size_t i = 0; i < room_.links.size(); ++i)
        if (room_.links[i].prismatic) {
            float farthest = 0.0f;
            for (int lane = 0; lane < lanes::width; ++lane)
                farthest = std::max(farthest, std::abs(room_.joints[i].value[lane]));
            extent += static_cast<double>(farthest);
        }
    room_.slack = static_cast<float>(rounding * static_cast<double>(room_.links.size() + 3) * extent);
    moves_ = half > 0.0;
    kernels_.place(room_.links.data(), room_.links.size(), room_.joints.data(), room_.poses.data(),
                   moves_ ? room_.twists.data() : nullptr);
}

void LanePairs::put_in_lanes(std::int32_t number) {
    if (number < model_.moving_count) {
        kernels_.put(room_.solids[number], room_.poses.data(), moves_ ? room_.twists.data() : nullptr, half_,
                     room_.items[number]);
        room_.placed_at[number] = room_.now;
        return;
    }
    room_.still_number[number - model_.moving_count] = static_cast<std::int32_t>(room_.items.size());
    room_.items.emplace_back();
    kernels_.put(room_.still_solids.emplace_back(solid_of(number)), nullptr, nullptr, half_, room_.items.back());
}

Bounds LanePairs::enclose(std::int32_t item) {
    float* box = room_.boxes[item].data();
    kernels_.enclose(room_.items[placed(item)], box);
    Bounds around;
    for (int k = 0; k < 3; ++k) {
        around.min_[k] = box[k] -= room_.slack;
        around.max_[k] = box[k + 3] += room_.slack;
    }
    return around;
}

unsigned LanePairs::meet(const Model::Candidate& pair, std::int32_t link, unsigned used) {
    const auto& [a, b, margin] = pair;
    const std::int32_t at_a = placed(a), at_b = placed(b);
    const lanes::Item &item_a = room_.items[at_a], &item_b = room_.items[at_b];
    const lanes::Twist* common = twist(link);
    const bool is_plane = item_b.solid->count == 1;
    lanes::Overlap overlap{used, used};
    lanes::Vector normal;
    unsigned inside = 0;
    if (!is_plane && item_a.solid->count > 1) {
        overlap = kernels_.overlap(item_a, item_b, common, within(margin, item_b), normal);
        overlap.swept &= used;
        if (overlap.middle && margin >= 0.0) inside = kernels_.inside(item_a, item_b, within(margin, item_b)) & used;
        overlap.swept &= ~inside;
        if (!overlap.swept) return inside;
    }
    WarmStart& warm = warm_of(a, b);
    if (is_plane) warm.direction[2] = 1.0f;
    if (has_direction(warm))
        overlap.swept &=
            ~kernels_.apart(item_a, item_b, common, warm.direction, nullptr, within(margin, item_b), overlap.swept);
    if (overlap.swept && !is_plane && item_a.solid->count > 1)
        overlap.swept &=
            ~kernels_.apart(item_a, item_b, common, nullptr, &normal, within(margin, item_b), overlap.swept);
    if (overlap.swept) room_.near.push_back({pair, link, overlap.swept, overlap.middle & overlap.swept, 0});
    return inside;
}

const float* LanePairs::separate(NearPair& near, const coal::Vec3s& ray, bool in_present_lanes) {
    const auto& [a, b, margin] = near.pair;
    const coal::Vec3s direction = data_.shape_pose[a].getRotation() * ray.normalized();
    const coal::Vec3s local = model_.pose(b, data_).getRotation().transpose() * direction;
    WarmStart& warm = warm_of(a, b);
    for (int k = 0; k < 3; ++k) warm.direction[k] = static_cast<float>(local[k]);
    if (!near.waiting || !in_present_lanes) return warm.direction;
    const std::int32_t at_a = placed(a), at_b = placed(b);
    near.waiting &= ~kernels_.apart(room_.items[at_a], room_.items[at_b], twist(near.link), warm.direction, nullptr,
                                    within(margin, room_.items[at_b]), near.waiting);
    return warm.direction;
}

double LanePairs::reach(const NearPair& near, int lane, const float* direction) {
    if (!moves_) return 0.0;
    const std::int32_t at_a = placed(near.pair.a), at_b = placed(near.pair.b);
    std::array<float, lanes::width> by{};
    kernels_.reach(room_.items[at_a], room_.items[at_b], room_.twists[near.link + 1], direction, by.data());
    return static_cast<double>(by[static_cast<std::size_t>(lane)]);
}

}  // namespace tmkit
