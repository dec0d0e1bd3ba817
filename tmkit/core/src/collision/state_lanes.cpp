// Collision checks of eight configurations at once.
#include "collision/lane_pairs.hpp"

namespace tmkit {
namespace {

class StateLanes : LanePairs {
public:
    StateLanes(const Model& model, Data& data)
        : LanePairs(model, data), states_(data.lanes->states) {}

    // Check all in single precision.
    void check_batch(const double* const* q, int count) {
        place(q, count);
        states_ = {{}, {}, workspace_.now};
        unsigned used = (1u << count) - 1;
        meet_all(used, [&](const Model::Candidate& pair, unsigned inside) {
            for (int lane = 0; lane < count; ++lane)
                if (inside >> lane & 1) states_.found[lane] = model_.frames(pair);
            used &= ~inside;
            return used == 0;
        });
        states_.near.swap(workspace_.near);
    }

    // Check one exactly.
    FramePair find(const double* q, int lane) {
        bool is_placed = false;
        for (std::size_t i = 0; i < states_.near.size() && !states_.found[lane]; ++i) {
            NearPair& near_pair = states_.near[i];
            if (!(near_pair.waiting >> lane & 1)) continue;
            if (!is_placed) next_lane(q);
            is_placed = true;
            const auto& [a, b, margin] = near_pair.pair;
            place_exactly(a);
            place_exactly(b);
            WarmStart cold;  // results must not depend on earlier queries
            if (distance_within(model_.shape(a, data_), model_.shape(b, data_), margin, margin,
                                cold, data_) <= margin)
                states_.found[lane] = model_.frames(near_pair.pair);
            else if (!cold.ray.isZero(1e-6))
                separate(near_pair, cold.ray, states_.now == workspace_.now);
        }
        return states_.found[lane];
    }

    // Find pairs that certainly overlap.
    void find_deep(const double* const* q, int count, FramePair* pairs) {
        place(q, count);
        unsigned open = (1u << count) - 1;
        any_pair([&](const Model::Candidate& pair, std::int32_t) {
            const unsigned inside = overlap(pair) & open;
            for (int lane = 0; inside && lane < count; ++lane)
                if (inside >> lane & 1) pairs[lane] = model_.frames(pair);
            open &= ~inside;
            return open == 0;
        });
    }

private:
    void place(const double* const* q, int count) {
        for (std::size_t i = 0; i < model_.links.size(); ++i) {
            workspace_.joints[i].change = lanes::Floats{};
            for (int lane = 0; lane < lanes::width; ++lane)
                workspace_.joints[i].value[lane] =
                    lane_value(model_.links[i], q[std::min(lane, count - 1)]);
        }
        place_lanes(0.0);
    }

    StateWorkspace& states_;
};

}  // namespace

void CollisionView::check_batch(const double* const* q, int count, Scratch& scratch) const {
    StateLanes(*model_, scratch.data()).check_batch(q, count);
}

void CollisionView::find_deep(const double* const* q, int count, FramePair* pairs,
                              Scratch& scratch) const {
    StateLanes(*model_, scratch.data()).find_deep(q, count, pairs);
}

FramePair CollisionView::find_in_batch(const double* q, int number, Scratch& scratch) const {
    return StateLanes(*model_, scratch.data()).find(q, number);
}

}  // namespace tmkit
