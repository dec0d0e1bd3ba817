// Straight motions proved free.
//
// A pair of shapes keeps its margin in an interval of a motion when their distance in its middle
// exceeds the margin by more than they can come nearer on the way to its ends. To first order that
// is what their points move along the direction that separates them, by the twists of their links;
// beyond it a bound of the points' accelerations serves. What is not proved is divided, with the
// pairs that are left; most are gone at once. After Schwarzer, Saha and Latombe, "Exact collision
// checking of robot paths" (WAFR 2002), with distances that are measured only as far as they
// matter. Eight intervals are looked at together (lanes.hpp): a direction that separates a pair in
// one mostly does in others.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "collision/lane_pairs.hpp"

namespace tmkit {
namespace {

// Of intervals, in radians or metres of the joint that moves most: where halving begins and ends.
// Beside an end of the motion, which may be about to touch, the middles of the finest intervals
// need only be free.
constexpr double coarsest = 0.05, finest = 1e-4, end_zone = 16.0 * finest;
constexpr double tolerance = 2e-6;  // metres, of GJK
constexpr double unbounded = 1e30;

class SweptMotion : LanePairs {
public:
    SweptMotion(const Model& model, Data& data, const double* q0, const double* q1,
                double resolution)
        : LanePairs(model, data), batches_(data.lanes->batches),
          q_(q0, q0 + model.shapes->joint_count), q0_(q0), q1_(q1), resolution_(resolution) {
        for (const Model::Link& link : model.links)
            span_ = std::max(span_, std::abs(q1[link.q_index] - q0[link.q_index]));
        batches_.clear();
        for (std::int32_t i = 0; i < model.moving_count; ++i)
            workspace_.geometries[i].rest = static_cast<float>(bend(i));
    }

    FramePair find(std::int64_t& checks) {
        const int count =
            std::max(1, static_cast<int>(std::ceil(span_ / (coarsest * lanes::width))));
        const int parts = count * lanes::width;  // lanes that are left over would cost as much
        for (int i = 0; i < count; ++i) {
            // From the middle outwards: near the ends, which are free, less is in the way.
            const int batch = (count - 1) / 2 + (i % 2 ? (i + 1) / 2 : -(i / 2));
            std::array<double, lanes::width> middles{};
            for (int lane = 0; lane < lanes::width; ++lane)
                middles[lane] = (batch * lanes::width + lane + 0.5) / parts;
            add_batch(middles, lanes::width, 0.5 / parts, 0, none);
        }
        for (std::size_t i = 0; i < batches_.size(); ++i) {
            checks += std::popcount(batches_[i].used);
            if (const FramePair pair = check(i)) return pair;
        }
        return {};
    }

private:
    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    void add_batch(std::array<double, lanes::width> middles, int count, double half,
                   std::size_t first, std::size_t last) {
        std::fill(middles.begin() + count, middles.end(),
                  middles[count - 1]);  // what is not used is near to what is
        batches_.push_back({middles, half, (1u << count) - 1, first, last});
    }

    // The pair that collides in the middle of an interval of a batch, or is not proved where it is
    // the finest; what is left over goes to its parts.
    FramePair check(std::size_t number) {
        const SweptBatch now = batches_[number];
        const bool is_finest = 2.0 * now.half * span_ <= std::max(finest, resolution_);
        // Of a motion that is only sampled the finest intervals are points.
        half_ = is_finest && resolution_ > 0.0 ? 0.0 : now.half;
        for (std::size_t i = 0; i < model_.links.size(); ++i) {
            const Model::Link& link = model_.links[i];
            for (int lane = 0; lane < lanes::width; ++lane)
                workspace_.joints[i].value[lane] =
                    lane_value(link, q0_, now.middle[lane] * change(link));
            workspace_.joints[i].change =
                lanes::Floats{} + static_cast<float>(half_ * change(link));
        }
        place_lanes(half_);
        const std::size_t first = workspace_.near.size();
        FramePair found;
        const auto hit = [&](const Model::Candidate& pair, unsigned) {
            found = model_.frames(pair);
            return true;
        };
        if (now.last == none) meet_all(now.used, hit);
        for (std::size_t i = now.first; i < now.last && now.last != none && !found; ++i) {
            const NearPair near = workspace_.near[i];
            if (meet(near.pair, near.link, near.waiting)) hit(near.pair, 0);
        }
        for (int lane = 0; lane < lanes::width && !found; ++lane)
            found = check_lane(now, lane, first, is_finest);
        return found ? found : divide(now, first, is_finest);
    }

    // Pairs whose boxes meet in the middle are measured there; the others need shorter intervals.
    FramePair check_lane(const SweptBatch& now, int lane, std::size_t first, bool is_finest) {
        const unsigned bit = 1u << lane;
        bool is_placed = false;
        for (std::size_t i = first; i < workspace_.near.size(); ++i) {
            NearPair& near = workspace_.near[i];
            if (!(near.waiting & bit)) continue;
            near.waiting &= ~bit;
            if (!is_finest && !(near.middle & bit)) {
                near.open |= bit;
                continue;
            }
            if (!is_placed) place(now.middle[lane]);
            is_placed = true;
            if (measure(near, lane)) return model_.frames(near.pair);
        }
        return {};
    }

    // Whether a pair collides in a lane, where the links are.
    bool measure(NearPair& near, int lane) {
        const auto& [a, b, margin] = near.pair;
        place_exactly(a);
        place_exactly(b);
        // What single precision does to a movement is a share of what it does to a place.
        const double least =
            margin + tolerance + static_cast<double>(workspace_.slack) * half_ * span_;
        const double limit = least + reach(near, lane, nullptr);
        WarmStart& warm = warm_of(a, b);
        const double distance = distance_within(model_.shape(a, data_), model_.shape(b, data_),
                                                margin, limit, warm, data_);
        if (distance <= margin) return true;
        const float* direction = warm.ray.isZero(1e-6) ? nullptr : separate(near, warm.ray);
        if (distance <= limit && (!direction || distance <= least + reach(near, lane, direction)))
            near.open |= 1u << lane;
        return false;
    }

    // What is open goes to parts of its intervals, which fill the lanes of one batch or two.
    FramePair divide(const SweptBatch& now, std::size_t first, bool is_finest) {
        unsigned open = 0;
        std::size_t last = first;
        for (std::size_t i = first; i < workspace_.near.size(); ++i)
            if (workspace_.near[i].open) {
                open |= workspace_.near[i].open;
                workspace_.near[last++] = workspace_.near[i];
            }
        workspace_.near.resize(last);
        if (is_finest) return judge(now, first, open);
        const int parts = std::max(
            2, lanes::width / static_cast<int>(std::bit_ceil(unsigned(std::popcount(open)))));
        while (open) {
            std::array<double, lanes::width> middles{};
            unsigned lane_of[lanes::width];
            int count = 0;
            for (unsigned lane = 0; lane < lanes::width && count + parts <= lanes::width; ++lane) {
                if (!(open >> lane & 1)) continue;
                open &= ~(1u << lane);
                for (int k = 0; k < parts; ++k, ++count) {
                    middles[count] = now.middle[lane] + now.half * ((2.0 * k + 1.0) / parts - 1.0);
                    lane_of[count] = lane;
                }
            }
            const std::size_t begin = workspace_.near.size();
            for (std::size_t i = first; i < last; ++i) {
                NearPair near = workspace_.near[i];
                near.waiting = 0;
                for (int k = 0; k < count; ++k) near.waiting |= (near.open >> lane_of[k] & 1u) << k;
                near.open = 0;
                if (near.waiting) workspace_.near.push_back(near);
            }
            add_batch(middles, count, now.half / parts, begin, workspace_.near.size());
        }
        return {};
    }

    // What is open in the finest intervals is free where it is only sampled, and beside the ends.
    FramePair judge(const SweptBatch& now, std::size_t first, unsigned open) {
        for (int lane = 0; lane < lanes::width && resolution_ == 0.0; ++lane) {
            const double middle = now.middle[lane];
            if (!(open >> lane & 1) || std::min(middle, 1.0 - middle) * span_ < end_zone) continue;
            for (std::size_t i = first; i < workspace_.near.size(); ++i)
                if (workspace_.near[i].open >> lane & 1)
                    return model_.frames(workspace_.near[i].pair);
        }
        return {};
    }

    // Puts the links at a place of the motion.
    void place(double fraction) {
        for (const Model::Link& link : model_.links) {
            const auto i = static_cast<std::size_t>(link.q_index);
            q_[i] = q0_[i] + fraction * (q1_[i] - q0_[i]);
        }
        next_lane(q_.data());
    }
    double change(const Model::Link& link) const {
        return link.multiplier * (q1_[link.q_index] - q0_[link.q_index]);
    }

    // How far the points of an shape move at most from the middle of the motion to an end beyond
    // the first order: their acceleration is at most the sum over the joints of their speed by that
    // joint times the turns of those before, twice, and of that joint. Their distance from an axis
    // is at most the lengths of the links between.
    double bend(std::int32_t shape) const {
        if (model_.collision_shape(shape).kind == GeometryKind::plane) return unbounded;
        double arm = workspace_.sizes[shape];
        double most = 0.0, rest = 0.0;
        for (std::int32_t at = model_.placed[shape].link; at >= 0; at = model_.links[at].parent) {
            const Model::Link& joint = model_.links[at];
            const double value = 0.5 * std::abs(change(joint)),
                         moved = joint.prismatic ? value : value * arm;
            if (!joint.prismatic) rest += value * (most + 0.5 * moved);
            most += moved;
            arm += workspace_.lengths[at];
            if (joint.prismatic)
                arm += std::abs(joint.offset) +
                       std::abs(joint.multiplier) *
                           std::max(std::abs(q0_[joint.q_index]), std::abs(q1_[joint.q_index]));
        }
        return rest;
    }

    std::vector<SweptBatch>& batches_;
    std::vector<double> q_;
    const double *q0_, *q1_;
    double resolution_;  // of samples; 0 where the motion is to be proved
    double span_ = 0.0, half_ = 0.0;
};

}  // namespace

FramePair CollisionView::find_unproved(const double* q0, const double* q1, Scratch& scratch,
                                       std::int64_t& checks, double resolution) const {
    return SweptMotion(*model_, scratch.data(), q0, q1, resolution).find(checks);
}

}  // namespace tmkit
