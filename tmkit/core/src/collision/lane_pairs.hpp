// Pairs of a view that may be in contact in eight lanes at once: see lanes.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <deque>
#include <numbers>
#include <vector>

#include "collision/collision_model.hpp"
#include "collision/lanes.hpp"

namespace tmkit {

// A pair that may be in contact in some lanes.
struct NearPair {
    CollisionView::Model::Candidate pair;
    std::int32_t link;  // that carries both
    // Lanes to check, and those of them in which the boxes overlap in the middle.
    unsigned waiting, middle;
    unsigned open;  // lanes that are not proved
};

// Scratch of the lanes. Kept for all queries of a search.
struct LaneWorkspace {
    std::vector<lanes::Link> links;
    std::vector<double> lengths;  // by link: length from its parent [m]
    // By moving shape: upper bound of the distance of its points from its link [m].
    std::vector<double> sizes;
    std::vector<lanes::Joint> joints;  // by link
    std::vector<lanes::Pose> poses;
    std::vector<lanes::Twist> twists;              // by link, after that of the root
    std::vector<std::int32_t> common;              // by moving pair: the link that carries both
    std::vector<lanes::Geometry> geometries;       // by moving shape
    std::deque<lanes::Geometry> still_geometries;  // those near a moving shape
    std::vector<lanes::PlacedGeometry> shapes;     // by moving shape, then static ones
    // By moving shape: the number of the lanes that it was placed in.
    std::vector<std::int64_t> placed_at;
    std::int64_t now = 0;  // the number of the present lanes
    float slack = 0.0f;    // tolerance for rounding in these [m]
    // By static shape: its number among `shapes`, or -1.
    std::vector<std::int32_t> still_number;
    // By moving shape: its box in all lanes, lower and upper corner.
    std::vector<std::array<float, 6>> boxes;
    std::vector<lanes::Pair> pairs;               // of moving shapes
    std::vector<std::int32_t> overlapping_pairs;  // of these, those that may be near
    // By moving shape: the static shapes that are checked with it.
    std::vector<std::uint64_t> among;
    std::vector<std::int32_t> still_order;   // these, in the order of the tree
    std::vector<lanes::Boxes> still_groups;  // their boxes; empty for more than 64
    std::vector<NearPair> near;
    std::array<WarmStart, 512> warm;  // of the last pairs
    // By moving shape: whether it is placed exactly, in the present lane.
    std::vector<std::uint8_t> exact;
    // Upper bound of the distance of moving shapes from the root, without slides [m].
    double extent = 0.0;
};

// Intervals of a motion in lanes, with the pairs that may touch in them; see swept_motion.cpp.
struct SweptBatch {
    std::array<double, lanes::width> middle;  // fractions of the motion
    double half;                              // of an interval
    unsigned used;
    std::size_t first, last;  // of the pairs; empty for a batch that searches for its own
};

// Configurations in lanes; see state_lanes.cpp.
struct StateWorkspace {
    std::vector<NearPair> near;
    std::array<FramePair, lanes::width> found;  // by lane
    std::int64_t now = 0;                       // the number of their lanes
};

// What bounds the motion of the points on a link in half of a motion beyond the first order; see
// swept_motion.cpp.
struct RemainderBound {
    double turns = 0.0;         // of the joints from the root [rad]
    double length = 0.0;        // the largest distance from its parent [m]
    double slide = 0.0;         // of its joint [m]
    double without_size = 0.0;  // of the link's origin [m]
};

struct CollisionView::Scratch::Lanes {
    LaneWorkspace workspace;
    StateWorkspace states;
    std::vector<SweptBatch> batches;
    std::vector<RemainderBound> remainders;  // by link, after that of the root
    std::vector<double> q;                   // in the middle of an interval
};

class LanePairs {
protected:
    using Model = CollisionView::Model;
    using Data = CollisionView::Scratch::Data;

    LanePairs(const Model& model, Data& data);

    // The value of a joint and its change, in single precision: an angle without whole turns.
    static float lane_value(const Model::Link& link, const double* q, double changed_by = 0.0) {
        double value = link.multiplier * q[link.q_index] + link.offset + changed_by;
        if (!link.prismatic && std::abs(value) > 4.0)
            value -= 2.0 * std::numbers::pi * std::nearbyint(value * (0.5 / std::numbers::pi));
        return static_cast<float>(value);
    }

    // Place the links at the values of the joints, with their changes in `half` of the motion.
    void place_lanes(double half);

    // Add a pair to the near ones if it may touch in some lanes; return the lanes in which it
    // certainly overlaps.
    unsigned meet(const Model::Candidate& pair, std::int32_t link, unsigned used);
    // Return only the lanes in which a pair certainly overlaps.
    unsigned overlap(const Model::Candidate& pair);

    // Test all pairs, until hit(pair, lanes) returns true for one that certainly overlaps there.
    template <class Hit> bool meet_all(const unsigned& used, Hit&& hit) {
        return any_pair([&](const Model::Candidate& pair, std::int32_t link) {
            const unsigned inside = meet(pair, link, used);
            return inside && hit(pair, inside);
        });
    }

    // Visit pairs whose boxes are near in some lane as meets(pair, link), until it returns true.
    template <class Meets> bool any_pair(Meets&& meets) {
        const CollisionShapes& shapes = *model_.shapes;
        const auto largest = static_cast<float>(shapes.largest_margin);
        // In the order of visit_variable().
        for (std::int32_t a = model_.moving_count - 1; a >= 0; --a) {
            const MarginClass* of_object =
                model_.table.data() + std::size_t(model_.row[a]) * shapes.object_count();
            const auto meets_still = [&](std::int32_t still) {
                const std::int32_t b = model_.moving_count + still;
                const MarginClass margin = of_object[model_.collision_shape(b).object];
                return margin && meets({a, b, shapes.margins[margin]}, -1);
            };
            const Bounds around = enclose(a);
            const bool stops =
                workspace_.still_groups.empty()
                    ? model_.tree.visit(inflated(around, shapes.largest_margin), meets_still)
                    : any_of_bits(
                          overlapping_boxes(a, largest, workspace_.still_groups) &
                              workspace_.among[a],
                          [&](int number) { return meets_still(workspace_.still_order[number]); });
            if (stops) return true;
        }
        workspace_.overlapping_pairs.resize(workspace_.pairs.size() + 1);
        const std::size_t count = kernels_.overlapping_pairs(
            workspace_.shapes.data(), workspace_.pairs.data(), workspace_.pairs.size(),
            largest + workspace_.slack, workspace_.overlapping_pairs.data());
        for (std::size_t i = 0; i < count; ++i) {
            const auto number = static_cast<std::size_t>(workspace_.overlapping_pairs[i]);
            const auto& [a, b, margin] = model_.moving_pairs[number];
            if (meets({a, b, shapes.margins[margin]}, workspace_.common[number])) return true;
        }
        return false;
    }

    // Place a moving shape exactly on its link, once after each next_lane().
    void place_exactly(std::int32_t shape) {
        if (shape >= model_.moving_count || workspace_.exact[shape]++) return;
        if (const std::int32_t link = model_.placed[shape].link; link >= placed_links_) {
            model_.place_links(exact_, placed_links_, link + 1, data_);
            placed_links_ = link + 1;
        }
        model_.place_shape(shape, data_);
    }
    // Place the links at a configuration, which must exist until the next call.
    void next_lane(const double* q) {
        workspace_.exact.assign(model_.moving_count, 0);
        exact_ = q;
        placed_links_ = 0;
    }

    WarmStart& warm_of(std::int32_t a, std::int32_t b) const {
        WarmStart& warm =
            workspace_.warm[static_cast<std::size_t>(61 * a + b) % workspace_.warm.size()];
        if (warm.a != a || warm.b != b) warm = {a, b};
        return warm;
    }

    // Remove the lanes in which the last direction separates a pair: they need no further check.
    void separate_closely(NearPair& near_pair);
    // The same by a ray, which is the last direction then; return it.
    const float* separate(NearPair& near_pair, const coal::Vec3s& ray,
                          bool in_present_lanes = true);
    // Upper bound of the approach of a pair in half an interval, along a direction if given.
    double reach(const NearPair& near_pair, int lane, const float* direction);

    const Model& model_;
    Data& data_;
    LaneWorkspace& workspace_;
    const lanes::Kernels& kernels_ = lanes::kernels();

private:
    void make_workspace();
    void make_groups();
    lanes::Geometry geometry_of(std::int32_t number) const;
    // The number among `shapes` of a shape placed in the present lanes.
    std::int32_t place_number(std::int32_t number) {
        const std::int32_t still = number - model_.moving_count;
        const bool is_placed = still < 0 ? workspace_.placed_at[number] == workspace_.now
                                         : workspace_.still_number[still] >= 0;
        if (!is_placed) place_in_lanes(number);
        return still < 0 ? number : workspace_.still_number[still];
    }
    void place_in_lanes(std::int32_t number);
    // The box around a moving shape in all lanes.
    Bounds enclose(std::int32_t shape);
    // Those of some boxes that are near that of a moving shape.
    std::uint64_t overlapping_boxes(std::int32_t shape, float within,
                                    const std::vector<lanes::Boxes>& groups) const {
        return kernels_.overlapping_boxes(workspace_.boxes[shape].data(), within, groups.data(),
                                          groups.size());
    }
    template <class Is> static bool any_of_bits(std::uint64_t bits, Is&& is) {
        for (; bits; bits &= bits - 1)
            if (is(std::countr_zero(bits))) return true;
        return false;
    }
    float within(double margin, const lanes::PlacedGeometry& b) const {
        return static_cast<float>(std::max(margin, 0.0)) + workspace_.slack + b.geometry->fuzz;
    }

    // The twist of the link of a pair; null if nothing moves.
    const lanes::Twist* twist(std::int32_t link) const {
        return moves_ ? &workspace_.twists[link + 1] : nullptr;
    }

    // Upper bound of the approach of a pair in half an interval beyond the first order, in the
    // frame of the link that carries both; and of the motion of a shape in half of the motion.
    float remainder(std::int32_t a, std::int32_t b, std::int32_t common) const;
    float remainder_from(std::int32_t common, std::int32_t shape) const;

    lanes::Floats half_{};
    bool moves_ = false;
    const double* exact_ = nullptr;
    std::int32_t placed_links_ = 0;  // of a configuration, those before
};

}  // namespace tmkit
