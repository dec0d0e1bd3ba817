// Straight motions proved free.
//
// A pair of shapes keeps its margin in an interval of a motion if their distance in its middle
// exceeds the margin by more than their approach towards its ends. To first order the approach is
// the motion of their points along the separating direction, by the twists of their links; beyond
// it, a bound of the points' accelerations is used. Intervals that are not proved are divided, with
// their remaining pairs; most pairs are proved at once. After Schwarzer, Saha and Latombe, "Exact
// collision checking of robot paths" (WAFR 2002), with distances computed only up to the required
// limit. Eight intervals are checked together (lanes.hpp): a direction that separates a pair in one
// mostly does in others.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "collision/lane_pairs.hpp"

namespace tmkit {
namespace {

// Lengths of intervals, in the joint that moves most [rad or m]: the first and the last of the
// bisection. Next to a free end of the motion, which may be nearly in contact, only the middles of
// the finest intervals must be free.
constexpr double coarsest = 0.125, finest = 1e-4, end_zone = 16.0 * finest;
constexpr double tolerance = 2e-6;  // [m], of GJK
constexpr double unbounded = 1e30;

class SweptMotion : LanePairs {
public:
    SweptMotion(const Model& model, Data& data, const double* q0, const double* q1,
                double resolution, bool end_is_free)
        : LanePairs(model, data), batches_(data.lanes->batches), q_(data.lanes->q), q0_(q0),
          q1_(q1), resolution_(resolution), end_is_free_(end_is_free) {
        q_.assign(q0, q0 + model.shapes->joint_count);
        for (const Model::Link& link : model.links)
            span_ = std::max(span_, std::abs(q1[link.q_index] - q0[link.q_index]));
        batches_.clear();
        bound_remainders();
    }

    FramePair find(std::int64_t& checks) {
        const int count =
            std::max(1, static_cast<int>(std::ceil(span_ / (coarsest * lanes::width))));
        const int parts = count * lanes::width;  // unused lanes would cost as much
        for (int i = 0; i < count; ++i) {
            // From the middle outwards: near the ends, which are free, collisions are less likely.
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
    // The lanes in the order of their checks: a direction that separates a pair in one lane mostly
    // does in those beside it.
    static constexpr std::array<int, lanes::width> bisection{4, 2, 6, 1, 5, 3, 7, 0};

    void add_batch(std::array<double, lanes::width> middles, int count, double half,
                   std::size_t first, std::size_t last) {
        // Unused lanes are near used ones.
        std::fill(middles.begin() + count, middles.end(), middles[count - 1]);
        batches_.push_back({middles, half, (1u << count) - 1, first, last});
    }

    // The pair that collides in the middle of an interval of a batch, or is not proved in a finest
    // one; the other pairs are passed on to parts of the interval.
    FramePair check(std::size_t number) {
        const SweptBatch now = batches_[number];
        const bool is_finest = 2.0 * now.half * span_ <= std::max(finest, resolution_);
        // For a motion that is only sampled, the finest intervals are points.
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
        FramePair contact_pair;
        const auto hit = [&](const Model::Candidate& pair, unsigned) {
            contact_pair = model_.frames(pair);
            return true;
        };
        if (now.last == none) meet_all(now.used, hit);
        for (std::size_t i = now.first; i < now.last && now.last != none && !contact_pair; ++i) {
            const NearPair near_pair = workspace_.near[i];
            if (meet(near_pair.pair, near_pair.link, near_pair.waiting)) hit(near_pair.pair, 0);
        }
        for (std::size_t i = first; i < workspace_.near.size() && half_ > 0.0 && !contact_pair; ++i)
            separate_closely(workspace_.near[i]);
        for (const int lane : bisection)
            if (!contact_pair) contact_pair = check_lane(now, lane, first, is_finest);
        return contact_pair ? contact_pair : divide(now, first, is_finest);
    }

    // Pairs whose boxes overlap in the middle are measured there; the others need shorter
    // intervals.
    FramePair check_lane(const SweptBatch& now, int lane, std::size_t first, bool is_finest) {
        const unsigned bit = 1u << lane;
        bool is_placed = false;
        for (std::size_t i = first; i < workspace_.near.size(); ++i) {
            NearPair& near_pair = workspace_.near[i];
            if (!(near_pair.waiting & bit)) continue;
            near_pair.waiting &= ~bit;
            if (!is_finest && !(near_pair.middle & bit)) {
                near_pair.open |= bit;
                continue;
            }
            if (!is_placed) place(now.middle[lane]);
            is_placed = true;
            if (measure(near_pair, lane)) return model_.frames(near_pair.pair);
        }
        return {};
    }

    // Return whether a pair collides in a lane, at the poses of the links.
    bool measure(NearPair& near_pair, int lane) {
        const auto& [a, b, margin] = near_pair.pair;
        const unsigned bit = 1u << lane;
        place_exactly(a);
        place_exactly(b);
        // The effect of single precision on a movement is a fraction of that on a position.
        const double least =
            margin + tolerance + static_cast<double>(workspace_.slack) * half_ * span_;
        const double limit = least + reach(near_pair, lane, nullptr);
        WarmStart& warm = warm_of(a, b);
        const double distance = distance_within(model_.shape(a, data_), model_.shape(b, data_),
                                                margin, limit, warm, data_);
        if (distance <= margin) return true;
        if (distance <= limit) near_pair.waiting |= bit;
        const float* direction = warm.ray.isZero(1e-6) ? nullptr : separate(near_pair, warm.ray);
        if ((near_pair.waiting & bit) &&
            (!direction || distance <= least + reach(near_pair, lane, direction)))
            near_pair.open |= bit;
        near_pair.waiting &= ~bit;
        return false;
    }

    // Pass open lanes on to parts of their intervals, which fill the lanes of one batch or two.
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
                NearPair near_pair = workspace_.near[i];
                near_pair.waiting = 0;
                for (int k = 0; k < count; ++k)
                    near_pair.waiting |= (near_pair.open >> lane_of[k] & 1u) << k;
                near_pair.open = 0;
                if (near_pair.waiting) workspace_.near.push_back(near_pair);
            }
            add_batch(middles, count, now.half / parts, begin, workspace_.near.size());
        }
        return {};
    }

    // Open lanes in the finest intervals are free if they are only sampled, and next to free ends.
    FramePair judge(const SweptBatch& now, std::size_t first, unsigned open) {
        for (int lane = 0; lane < lanes::width && resolution_ == 0.0; ++lane) {
            const double middle = now.middle[lane];
            const double to_end = end_is_free_ ? std::min(middle, 1.0 - middle) : middle;
            if (!(open >> lane & 1) || to_end * span_ < end_zone) continue;
            for (std::size_t i = first; i < workspace_.near.size(); ++i)
                if (workspace_.near[i].open >> lane & 1)
                    return model_.frames(workspace_.near[i].pair);
        }
        return {};
    }

    // Place the links at a fraction of the motion.
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

    // Upper bounds of the motion of points from the middle of the motion to an end, beyond the
    // first order. Their acceleration is at most the sum over the joints of their speed by that
    // joint times the rotations of those before, twice, and of that joint. Their distance from an
    // axis is at most the size of the shape and the lengths of the links between. The rotations sum
    // up to half the square of all turns; seen from another link, only of those after it. Links
    // follow their parents.
    void bound_remainders() {
        std::vector<RemainderBound>& bounds = data_.lanes->remainders;
        bounds.assign(model_.links.size() + 1, {});  // after that of the root
        for (std::size_t i = 0; i < model_.links.size(); ++i) {
            const Model::Link& joint = model_.links[i];
            const int parent_row = joint.parent + 1;
            const RemainderBound& parent = bounds[std::size_t(parent_row)];
            RemainderBound& bound = bounds[i + 1];
            const double value = 0.5 * std::abs(change(joint));
            bound.turns = parent.turns;
            bound.length = workspace_.lengths[i];
            if (joint.prismatic) {
                bound.slide = value;
                bound.length += std::abs(joint.offset) +
                                std::abs(joint.multiplier) * std::max(std::abs(q0_[joint.q_index]),
                                                                      std::abs(q1_[joint.q_index]));
            } else {
                bound.turns += value;
            }
            bound.without_size = parent.without_size +
                                 parent.turns * (0.5 * parent.turns * bound.length + bound.slide);
        }
        for (std::int32_t i = 0; i < model_.moving_count; ++i) {
            const int row = model_.placed[i].link + 1;
            const RemainderBound& bound = bounds[std::size_t(row)];
            const double most =
                0.5 * bound.turns * bound.turns * workspace_.sizes[i] + bound.without_size;
            const bool is_plane = model_.collision_shape(i).kind == GeometryKind::plane;
            workspace_.geometries[i].remainder = static_cast<float>(is_plane ? unbounded : most);
        }
    }

    std::vector<SweptBatch>& batches_;
    std::vector<double>& q_;
    const double *q0_, *q1_;
    double resolution_;  // of samples; 0 if the motion is to be proved
    bool end_is_free_;
    double span_ = 0.0, half_ = 0.0;
};

}  // namespace

FramePair CollisionView::find_unproved(const double* q0, const double* q1, Scratch& scratch,
                                       std::int64_t& checks, double resolution,
                                       bool end_is_free) const {
    return SweptMotion(*model_, scratch.data(), q0, q1, resolution, end_is_free).find(checks);
}

}  // namespace tmkit
