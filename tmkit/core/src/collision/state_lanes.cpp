// Eight configurations looked at together.
#include "collision/lane_pairs.hpp"

namespace tmkit {
namespace {

class StateLanes : LanePairs {
public:
    StateLanes(const Model& model, Data& data) : LanePairs(model, data), states_(data.lanes->states) {}

    // What single precision says of all.
    void look_ahead(const double* const* q, int count) {
        for (std::size_t i = 0; i < model_.links.size(); ++i) {
            room_.joints[i].change = lanes::Floats{};
            for (int lane = 0; lane < lanes::width; ++lane)
                room_.joints[i].value[lane] = lane_value(model_.links[i], q[std::min(lane, count - 1)]);
        }
        place_lanes(0.0);
        states_ = {{}, {}, room_.now};
        unsigned used = (1u << count) - 1;
        meet_all(used, [&](const Model::Candidate& pair, unsigned inside) {
            for (int lane = 0; lane < count; ++lane)
                if (inside >> lane & 1) states_.found[lane] = model_.frames(pair);
            used &= ~inside;
            return used == 0;
        });
        states_.near.swap(room_.near);
    }

    // What is exact of one.
    FramePair find(const double* q, int lane) {
        bool is_placed = false;
        for (std::size_t i = 0; i < states_.near.size() && !states_.found[lane]; ++i) {
            NearPair& near = states_.near[i];
            if (!(near.waiting >> lane & 1)) continue;
            if (!is_placed) next_lane(q);
            is_placed = true;
            const auto& [a, b, margin] = near.pair;
            put(a);
            put(b);
            WarmStart cold;  // answers must not depend on what was asked before
            if (distance_within(model_.shape(a, data_), model_.shape(b, data_), margin, margin, cold, data_) <= margin)
                states_.found[lane] = model_.frames(near.pair);
            else if (!cold.ray.isZero(1e-6)) separate(near, cold.ray, states_.now == room_.now);
        }
        return states_.found[lane];
    }

private:
    StateRoom& states_;
};

}  // namespace

void CollisionView::look_ahead(const double* const* q, int count, Scratch& scratch) const {
    StateLanes(*model_, scratch.data()).look_ahead(q, count);
}

FramePair CollisionView::find_ahead(const double* q, int number, Scratch& scratch) const {
    return StateLanes(*model_, scratch.data()).find(q, number);
}

}  // namespace tmkit
