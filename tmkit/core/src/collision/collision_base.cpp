#include "collision/collision_base.hpp"

#include <algorithm>

#include "tmkit/no_fork.hpp"

namespace tmkit {

CollisionWorld::Base::Base(SceneGraph scene, CollisionOptions options)
    : rules(std::move(scene), std::move(options)),
      view(std::make_unique<CollisionView::Model>(
          rules, std::vector<bool>(rules.layout->joint_count(), true), nullptr)),
      at_zero(view.scratch()), pair_margins(margins_by_id(rules.scene, rules.options)) {
    for (const std::string& name : rules.options.movable)
        movable.push_back(rules.scene.record(name).id);
    std::sort(movable.begin(), movable.end());
    const std::vector<double> zero(rules.layout->joint_count(), 0.0);
    model().place(zero.data(), at_zero.data());
}
CollisionWorld::Base::~Base() {
    for (const Spare& spare : spares) delete spare.scratch.load();
}

FramePair CollisionWorld::Base::constant_collision() const {
    std::call_once(constant_checked_, [this] {
        const NoFork whole;
        BorrowedScratch scratch(*this);
        model().visit_constant(at_zero.data(), [&](const CollisionView::Model::Candidate& c) {
            if (!in_contact(model().shape(c.a, at_zero.data()), model().shape(c.b, at_zero.data()),
                            c.margin, (*scratch).data()))
                return false;
            constant_collision_ = model().frames(c);
            return true;
        });
    });
    return constant_collision_;
}

std::vector<CollisionWorld::Base::MarginOfPair> margins_by_id(const SceneGraph& scene,
                                                              const CollisionOptions& options) {
    std::vector<CollisionWorld::Base::MarginOfPair> margins;
    for (const PairMargin& pair : options.pair_margins) {
        const FrameRecord *a = scene.find(pair.frame_a), *b = scene.find(pair.frame_b);
        if (a && b)
            margins.push_back({std::min(a->id, b->id), std::max(a->id, b->id), pair.margin});
    }
    std::sort(margins.begin(), margins.end());
    margins.erase(std::unique(margins.begin(), margins.end()), margins.end());
    return margins;
}

}  // namespace tmkit
