// Straight motions proved free.
//
// A pair of shapes keeps its margin in an interval of a motion when their distance in its middle exceeds the margin by
// more than they can come nearer on the way to its ends. To first order that is what their points move along the
// direction that separates them, by the twists of their links; beyond it a bound of the points' accelerations serves.
// What is not proved is halved, with the pairs that are left; most are gone at once. After Schwarzer, Saha and Latombe,
// "Exact collision checking of robot paths" (WAFR 2002), with distances that are measured only as far as they matter.
#include <algorithm>
#include <cmath>

#include "collision/collision_model.hpp"

namespace tmkit {
namespace {

using Model = CollisionView::Model;
using Data = CollisionView::Scratch::Data;
using coal::Vec3s;

// Of intervals, in radians or metres of the joint that moves most: where halving begins and ends. Beside an end of the
// motion, which may be about to touch, the middles of the finest intervals need only be free.
constexpr double coarsest = 0.1, finest = 1e-4, end_zone = 16.0 * finest;
constexpr double tolerance = 2e-6;  // metres, of GJK
constexpr double unbounded = 1e100;

class SweptMotion {
public:
    SweptMotion(const Model& model, Data& data, const double* q0, const double* q1)
        : model_(model), data_(data), room_(data.swept), q0_(q0), q1_(q1) {
        for (const Model::Link& link : model.links)
            span_ = std::max(span_, std::abs(q1[link.q_index] - q0[link.q_index]));
        room_.q.resize(model.rules->layout->joint_count());
        room_.bounds.resize(model.moving_count);
        room_.reach.resize(model.moving_count);
        room_.twists.resize(model.links.size() + 1);
        room_.near.clear();
        room_.intervals.clear();
    }

    FramePair find(std::int64_t& checks) {
        select();
        const auto parts = room_.near.empty() ? 0 : static_cast<int>(std::ceil(span_ / coarsest));
        for (int i = 0; i < parts; ++i)
            room_.intervals.push_back({(i + 0.5) / parts, 0.5 / parts, 0, room_.near.size()});
        for (std::size_t i = 0; i < room_.intervals.size(); ++i, ++checks)
            if (const FramePair pair = halve(room_.intervals[i])) return pair;
        return {};
    }

private:
    // Pairs that may meet anywhere on the way.
    void select() {
        place(0.5, 0.5);
        const CollisionWorld::Rules& rules = *model_.rules;
        for (std::int32_t a = 0; a < model_.moving_count; ++a) {
            const MarginClass* of_object = model_.table.data() + std::size_t(model_.row[a]) * rules.object_count();
            put(a);
            room_.bounds[a] = bound_of(a);
            const Bounds query = inflated(data_.shape_bounds[a], rules.largest_margin + room_.bounds[a].most);
            model_.tree.visit(query, [&](std::int32_t still) {
                const std::int32_t b = model_.moving_count + still;
                if (const MarginClass margin = of_object[model_.item(b).object])
                    room_.near.push_back({{a, b, rules.margins[margin]}, -1});
                return false;
            });
        }
        for (const auto& [a, b, margin] : model_.moving_pairs)
            if (boxes_meet({a, b, rules.margins[margin]}, room_.bounds[a].most + room_.bounds[b].most))
                room_.near.push_back({{a, b, rules.margins[margin]}, model_.common_link(a, b)});
    }

    // The pair that collides in the middle of an interval, or is not proved where it is the finest; pairs that are left
    // over go to its halves.
    FramePair halve(const SweptInterval now) {
        place(now.middle, now.half);
        const std::size_t kept = room_.near.size();
        for (std::size_t i = now.first; i < now.last; ++i) {
            const NearPair near = room_.near[i];
            const auto& [a, b, margin] = near.pair;
            put(a);
            put(b);
            const double limit = margin + (near.link < 0 ? room_.reach[a] : reach(near, nullptr));
            if (!boxes_meet(near.pair, limit - margin)) continue;
            WarmStart& warm = room_.warm[static_cast<std::size_t>(61 * a + b) % room_.warm.size()];
            if (warm.a != a || warm.b != b) warm = {a, b};
            const double distance =
                distance_within(model_.shape(a, data_), model_.shape(b, data_), margin, limit, warm, data_);
            if (distance <= margin) return model_.frames(near.pair);
            if (distance > limit) continue;
            const Vec3s direction = data_.shape_pose[a].getRotation() * warm.ray.normalized();
            if (warm.ray.isZero(1e-6) || distance <= margin + reach(near, &direction)) room_.near.push_back(near);
        }
        if (room_.near.size() == kept) return {};
        if (2.0 * now.half * span_ <= finest) {
            const bool at_end = std::min(now.middle, 1.0 - now.middle) * span_ < end_zone;
            return at_end ? FramePair{} : model_.frames(room_.near[kept].pair);
        }
        for (const double side : {-0.5, 0.5})
            room_.intervals.push_back({now.middle + side * now.half, 0.5 * now.half, kept, room_.near.size()});
        return {};
    }

    // Puts the links at a place of the motion, with the twists that take them to the end of half an interval.
    void place(double fraction, double half) {
        half_ = half;
        for (const Model::Link& link : model_.links) {
            const auto i = static_cast<std::size_t>(link.q_index);
            room_.q[i] = q0_[i] + fraction * (q1_[i] - q0_[i]);
        }
        model_.place_links(room_.q.data(), data_);
        room_.placed.assign(model_.moving_count, 0);
        for (std::size_t i = 0; i < model_.links.size(); ++i) {
            const Model::Link& link = model_.links[i];
            const Vec3s turn = half * change(link) * data_.link_pose[i].getRotation().col(2);
            SweptRoom::Twist& twist = room_.twists[i + 1] = room_.twists[link.parent + 1];
            twist.linear += link.prismatic ? turn : data_.link_pose[i].getTranslation().cross(turn);
            if (!link.prismatic) twist.angular += turn;
        }
    }
    double change(const Model::Link& link) const { return link.multiplier * (q1_[link.q_index] - q0_[link.q_index]); }

    // Places a moving item, once in each interval.
    void put(std::int32_t item) {
        if (item >= model_.moving_count || room_.placed[item]++) return;
        model_.place_item(item, data_);
        room_.reach[item] = reach({{item, model_.moving_count, 0.0}, -1}, nullptr);
    }
    Vec3s center(std::int32_t item) const { return data_.shape_pose[item].transform(model_.item(item).center); }

    // How far any point of an item moves from the middle of the motion to an end; and beyond the first order: its
    // acceleration is at most the sum over the joints of its speed by that joint times the turns of those before,
    // twice, and of that joint. Its distance from an axis is changed by the joints beyond alone.
    SweptRoom::Bound bound_of(std::int32_t item) const {
        const Solid& solid = model_.item(item);
        const double radius = solid.kind == SolidKind::plane ? unbounded : solid.half.norm();
        SweptRoom::Bound bound;
        for (std::int32_t at = model_.placed[item].link; at >= 0; at = model_.links[at].parent) {
            const Model::Link& joint = model_.links[at];
            const Vec3s arm = center(item) - data_.link_pose[at].getTranslation();
            const double value = 0.5 * std::abs(change(joint));
            const double speed = data_.link_pose[at].getRotation().col(2).cross(arm).norm() + radius + bound.most;
            const double moved = joint.prismatic ? value : value * speed;
            if (!joint.prismatic) bound.rest += value * (bound.most + 0.5 * moved);
            bound.most += moved;
        }
        return bound;
    }

    // How much nearer the shapes of a pair come in half an interval at most, along a direction if it is given.
    double reach(const NearPair& near, const Vec3s* direction) const {
        double sum = tolerance;
        for (const std::int32_t item : {near.pair.a, near.pair.b}) {
            if (item >= model_.moving_count) continue;
            const SweptRoom::Twist &own = room_.twists[model_.placed[item].link + 1],
                                   &common = room_.twists[near.link + 1];
            const Vec3s turns = own.angular - common.angular, half = model_.item(item).half;
            const Vec3s moves = own.linear - common.linear + turns.cross(center(item));
            sum += 4.0 * half_ * half_ * room_.bounds[item].rest;
            if (!direction) sum += moves.norm() + turns.norm() * half.norm();
            else
                sum +=
                    std::abs(direction->dot(moves)) +
                    (data_.shape_pose[item].getRotation().transpose() * turns.cross(*direction)).cwiseAbs().dot(half);
        }
        return sum;
    }

    bool boxes_meet(const Model::Candidate& pair, double reach) const {
        return inflated(model_.bounds(pair.a, data_), std::max(pair.margin + reach, 0.0))
            .overlap(model_.bounds(pair.b, data_));
    }

    const Model& model_;
    Data& data_;
    SweptRoom& room_;
    const double *q0_, *q1_;
    double span_ = 0.0, half_ = 0.5;
};

}  // namespace

FramePair CollisionView::find_unproved(const double* q0, const double* q1, Scratch& scratch,
                                       std::int64_t& checks) const {
    return SweptMotion(*model_, scratch.data(), q0, q1).find(checks);
}

}  // namespace tmkit
