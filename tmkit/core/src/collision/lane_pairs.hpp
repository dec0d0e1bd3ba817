// The pairs of a view that may be in contact at eight places at once: see lanes.hpp.
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
    std::int32_t link;         // that carries both
    unsigned waiting, middle;  // lanes: to be looked at, and of those where their boxes meet in the middle
    unsigned open;             // lanes that are not proved
};

// Where lanes are looked at. Kept for all queries of a search.
struct LaneRoom {
    std::vector<lanes::Link> links;
    std::vector<double> lengths;       // by link: metres from its parent
    std::vector<double> sizes;         // by moving item: metres from its link to its farthest point, at most
    std::vector<lanes::Joint> joints;  // by link
    std::vector<lanes::Pose> poses;
    std::vector<lanes::Twist> twists;         // by link, after that of the root
    std::vector<std::int32_t> common;         // by moving pair: the link that carries both
    std::vector<lanes::Solid> solids;         // by moving item
    std::deque<lanes::Solid> still_solids;    // those that something came near to
    std::vector<lanes::Item> items;           // by moving item, then those that stand still
    std::vector<std::int64_t> placed_at;      // by moving item: the number of the lanes that it was placed in
    std::int64_t now = 0;                     // the number of the present lanes
    float slack = 0.0f;                       // metres, for what rounding does in these
    std::vector<std::int32_t> still_number;   // by item that stands still: its number among `items`, or -1
    std::vector<std::array<float, 6>> boxes;  // by moving item: around it in all lanes, lower and upper corner
    std::vector<lanes::Pair> pairs;           // of moving items
    std::vector<std::int32_t> beside;         // of these, those that may be near
    std::vector<std::uint64_t> among;         // by moving item: which of those that stand still are checked with it
    std::vector<std::int32_t> still_order;    // these, as the tree has them
    std::vector<lanes::Boxes> still_groups;   // their boxes; none where there are more than 64
    std::vector<NearPair> near;
    std::array<WarmStart, 512> warm;  // of the pairs looked at last
    std::vector<std::uint8_t> exact;  // by moving item: whether it is placed exactly, in the lane that is looked at
    double extent = 0.0;              // metres, no point of a moving item is farther from the root but for slides
};

// Intervals of a motion in lanes, with the pairs that may meet in them; see swept_motion.cpp.
struct SweptBatch {
    std::array<double, lanes::width> middle;  // fractions of the motion
    double half;                              // of an interval
    unsigned used;
    std::size_t first, last;  // of the pairs; none for a batch that finds its own
};

// Configurations in lanes; see state_lanes.cpp.
struct StateRoom {
    std::vector<NearPair> near;
    std::array<FramePair, lanes::width> found;  // by lane
    std::int64_t now = 0;                       // the number of their lanes
};

struct CollisionView::Scratch::Lanes {
    LaneRoom room;
    StateRoom states;
    std::vector<SweptBatch> batches;
};

class LanePairs {
protected:
    using Model = CollisionView::Model;
    using Data = CollisionView::Scratch::Data;

    LanePairs(const Model& model, Data& data);

    // The value of a joint, changed by so much, in single precision: an angle without whole turns.
    static float lane_value(const Model::Link& link, const double* q, double changed_by = 0.0) {
        double value = link.multiplier * q[link.q_index] + link.offset + changed_by;
        if (!link.prismatic && std::abs(value) > 4.0)
            value -= 2.0 * std::numbers::pi * std::nearbyint(value * (0.5 / std::numbers::pi));
        return static_cast<float>(value);
    }

    // Puts the links at the values of the joints, which change by so much in `half` of the motion.
    void place_lanes(double half);

    // Where a pair may meet in some lanes it is added to the near ones; the lanes where it surely overlaps.
    unsigned meet(const Model::Candidate& pair, std::int32_t link, unsigned used);

    // Meets all pairs, until hit(pair, lanes) returns true for one that surely overlaps there.
    template <class Hit> bool meet_all(const unsigned& used, Hit&& hit) {
        const CollisionShapes& shapes = *model_.shapes;
        const auto meets = [&](const Model::Candidate& pair, std::int32_t link) {
            const unsigned inside = meet(pair, link, used);
            return inside && hit(pair, inside);
        };
        const auto largest = static_cast<float>(shapes.largest_margin);
        for (std::int32_t a = model_.moving_count - 1; a >= 0; --a) {  // as visit_variable()
            const MarginClass* of_object = model_.table.data() + std::size_t(model_.row[a]) * shapes.object_count();
            const auto meets_still = [&](std::int32_t still) {
                const std::int32_t b = model_.moving_count + still;
                const MarginClass margin = of_object[model_.item(b).object];
                return margin && meets({a, b, shapes.margins[margin]}, -1);
            };
            const Bounds around = enclose(a);
            const bool stops = room_.still_groups.empty()
                                   ? model_.tree.visit(inflated(around, shapes.largest_margin), meets_still)
                                   : any_of_bits(meeting(a, largest, room_.still_groups) & room_.among[a],
                                                 [&](int number) { return meets_still(room_.still_order[number]); });
            if (stops) return true;
        }
        room_.beside.resize(room_.pairs.size() + 1);
        const std::size_t count = kernels_.beside(room_.items.data(), room_.pairs.data(), room_.pairs.size(),
                                                  largest + room_.slack, room_.beside.data());
        for (std::size_t i = 0; i < count; ++i) {
            const auto number = static_cast<std::size_t>(room_.beside[i]);
            const auto& [a, b, margin] = model_.moving_pairs[number];
            if (meets({a, b, shapes.margins[margin]}, room_.common[number])) return true;
        }
        return false;
    }

    // Places a moving item exactly where the links are, once after each next_lane().
    void put(std::int32_t item) {
        if (item >= model_.moving_count || room_.exact[item]++) return;
        if (const std::int32_t link = model_.placed[item].link; link >= placed_links_) {
            model_.place_links(exact_, placed_links_, link + 1, data_);
            placed_links_ = link + 1;
        }
        model_.place_item(item, data_);
    }
    // Puts the links where a configuration has them, which stays as it is until the next.
    void next_lane(const double* q) {
        room_.exact.assign(model_.moving_count, 0);
        exact_ = q;
        placed_links_ = 0;
    }

    WarmStart& warm_of(std::int32_t a, std::int32_t b) const {
        WarmStart& warm = room_.warm[static_cast<std::size_t>(61 * a + b) % room_.warm.size()];
        if (warm.a != a || warm.b != b) warm = {a, b};
        return warm;
    }

    // Where a ray separates a pair: lanes that the same direction separates need not be looked at. The direction.
    const float* separate(NearPair& near, const coal::Vec3s& ray, bool in_present_lanes = true);
    // How much nearer a pair comes in half an interval at most, along a direction if it is given.
    double reach(const NearPair& near, int lane, const float* direction);

    const Model& model_;
    Data& data_;
    LaneRoom& room_;
    const lanes::Kernels& kernels_ = lanes::kernels();

private:
    void make_room();
    void make_groups();
    lanes::Solid solid_of(std::int32_t number) const;
    // The number among `items` of one that is placed in the present lanes.
    std::int32_t placed(std::int32_t number) {
        const std::int32_t still = number - model_.moving_count;
        const bool is_placed = still < 0 ? room_.placed_at[number] == room_.now : room_.still_number[still] >= 0;
        if (!is_placed) put_in_lanes(number);
        return still < 0 ? number : room_.still_number[still];
    }
    void put_in_lanes(std::int32_t number);
    // The box around a moving item in all lanes.
    Bounds enclose(std::int32_t item);
    // Those of some boxes that come near to that of a moving item.
    std::uint64_t meeting(std::int32_t item, float within, const std::vector<lanes::Boxes>& groups) const {
        return kernels_.meeting(room_.boxes[item].data(), within, groups.data(), groups.size());
    }
    template <class Is> static bool any_of_bits(std::uint64_t bits, Is&& is) {
        for (; bits; bits &= bits - 1)
            if (is(std::countr_zero(bits))) return true;
        return false;
    }
    float within(double margin, const lanes::Item& b) const {
        return static_cast<float>(std::max(margin, 0.0)) + room_.slack + b.solid->fuzz;
    }

    // Of what carries a pair; null where nothing moves.
    const lanes::Twist* twist(std::int32_t link) const { return moves_ ? &room_.twists[link + 1] : nullptr; }

    lanes::Floats half_{};
    bool moves_ = false;
    const double* exact_ = nullptr;
    std::int32_t placed_links_ = 0;  // of a configuration, those before
};

}  // namespace tmkit
