// What a version of a scene changes in a collision world that was made for another version.
//
// A world of the new version keeps what was worked out for an old one (its *base*) and holds in an
// overlay the parts that differ: base objects that changed are *hidden*; their shapes as they are
// now, and those of new frames, are *own* shapes, each carried by a link of the base or standing
// still, with a row of margin classes against the objects of the base.
//
// What is compared is always the base and the new version, so nothing accumulates, and the
// comparison skips what they share. A pair whose rule changed makes one of its frames an own one.
// When a joint, a body or what a joint carries changed, or more than a few frames did, there is no
// overlay, and the world is made anew.
//
// Invariant: a pair of shapes has the poses, the order and the margin that a world made anew would
// give them, so answers agree to the last bit.
#pragma once

#include <memory>
#include <vector>

#include "collision/collision_base.hpp"

namespace tmkit {

class CollisionOverlay {
public:
    using Model = CollisionView::Model;
    using Data = CollisionView::Scratch::Data;

    // What differs from the base, or null when it is too much.
    static std::unique_ptr<const CollisionOverlay> find(const CollisionWorld::Base& base,
                                                        const SceneGraph& scene,
                                                        const CollisionOptions& options);

    // The moving shapes of the base, among those that stand elsewhere than in another version of
    // it, or that other rules hold for; null where such a shape moves. Either version may be that
    // of the base, whose overlay is null.
    static std::unique_ptr<const Model> changes(const CollisionWorld::Base& base,
                                                const CollisionOverlay* now,
                                                const CollisionOverlay* before);
    // Adds the frames with own shapes, and those that are hidden.
    void add_changed(const CollisionWorld::Base& base, std::vector<FrameId>& frames) const;

    bool hides(std::int32_t base_object) const { return hidden_[base_object]; }
    // The number in this version of the frame of an object of the base.
    std::int32_t frame_of(const Model& model, std::int32_t base_object) const {
        return frame_numbers_.empty() ? model.rules->object_frame[base_object]
                                      : frame_numbers_[base_object];
    }
    bool changes_numbers() const { return changes_numbers_; }
    bool removes_frames() const { return removes_frames_; }

    // Puts the own shapes where the links are.
    void place(const std::vector<coal::Transform3s>& link_pose, Data& scratch) const;

    // Visit the pairs of this version as visit(shape, shape, margin), those that joints can change
    // or the constant ones, which they cannot, after both have been placed; stops when visit
    // returns true.
    template <class Visit>
    bool visit(bool constant, const Model& model, const Data& scratch, Visit&& visit) const;
    // Only those that have an own shape; `poses`: where the shapes of the base stand.
    template <class Visit>
    bool visit_own(bool constant, const Model& model, const Data& poses, const Data& scratch,
                   Visit&& visit) const;
    template <class Visit>
    bool visit_pairs(bool constant, const Data& scratch, Visit&& visit) const;

private:
    friend class OverlayBuilder;
    CollisionOverlay() = default;

    struct Object {
        FrameId id;
        std::int32_t frame;        // number in this version
        std::int32_t base_object;  // -1 when it is new
        BodyId body;
        FrameId cluster;
    };
    struct CarriedShape {
        CollisionShape shape;  // its object is an own one
        std::int32_t link;     // of the base; -1: the world
        coal::Transform3s link_from_shape;
        Bounds still_bounds;  // when link is -1
    };
    struct Pair {
        std::int32_t a, b;  // own shapes
        MarginClass margin;
    };

    const coal::Transform3s& pose(std::size_t own, const Data& scratch) const {
        return shapes_[own].link < 0 ? shapes_[own].link_from_shape : scratch.own_pose[own];
    }
    const Bounds& bounds(std::size_t own, const Data& scratch) const {
        return shapes_[own].link < 0 ? shapes_[own].still_bounds : scratch.own_bounds[own];
    }
    PlacedShape own_shape(std::size_t own, const Data& scratch) const {
        return {&shapes_[own].shape, &pose(own, scratch),
                objects_[shapes_[own].shape.object].frame};
    }
    PlacedShape base_shape(const Model& model, std::int32_t number, const Data& scratch) const {
        return {&model.collision_shape(number), &model.pose(number, scratch),
                frame_of(model, model.collision_shape(number).object)};
    }
    MarginClass class_of(std::size_t own, const Model& model, std::int32_t number) const {
        return table_[std::size_t(shapes_[own].shape.object) * hidden_.size() +
                      model.collision_shape(number).object];
    }
    // Whether the boxes of two shapes, the second on this link, come within the margin of a class:
    // for what stands still, within the largest, as the tree of the base is asked.
    bool are_near(const Bounds& a, const Bounds& b, std::int32_t link, MarginClass margin) const {
        return inflated(a, link < 0 ? largest_margin_ : std::max((*margins_)[margin], 0.0))
            .overlap(b);
    }

    // An own shape and one of the base in the order of a world made anew: by link, then by frame.
    template <class Visit>
    bool offer(std::size_t own, const PlacedShape& mine, std::int32_t number,
               const PlacedShape& other, const Model& model, MarginClass margin,
               Visit&& visit) const {
        const auto my_link = static_cast<std::uint32_t>(shapes_[own].link);
        const auto other_link = static_cast<std::uint32_t>(model.placed[number].link);
        const bool first = my_link != other_link ? my_link < other_link : mine.frame < other.frame;
        return first ? visit(mine, other, (*margins_)[margin])
                     : visit(other, mine, (*margins_)[margin]);
    }

    std::vector<Object> objects_;
    std::vector<CarriedShape> shapes_;
    std::vector<Pair> pairs_;           // of own shapes, in the order of a world made anew
    std::vector<MarginClass> table_;    // own objects x objects of the base; 0 where that is hidden
    std::vector<std::uint8_t> hidden_;  // by object of the base
    const std::vector<double>* margins_;  // by margin class: those of the base, or these:
    std::vector<double> own_margins_;     // those of the base and more
    double largest_margin_ = 0.0;
    bool changes_numbers_ = false, removes_frames_ = false;
    std::vector<std::int32_t>
        frame_numbers_;  // by object of the base; empty when they are those of the base
};

template <class Visit>
bool CollisionOverlay::visit(bool constant, const Model& model, const Data& scratch,
                             Visit&& visit) const {
    const auto of_base = [&](const Model::Candidate& c) {
        if (hides(model.collision_shape(c.a).object) || hides(model.collision_shape(c.b).object))
            return false;
        return visit(base_shape(model, c.a, scratch), base_shape(model, c.b, scratch), c.margin);
    };
    const bool stopped =
        constant ? model.visit_constant(scratch, of_base) : model.visit_variable(scratch, of_base);
    return stopped || visit_own(constant, model, scratch, scratch, visit);
}

// Constant are the pairs of one link; what stands still has the link -1, and those of the base are
// in its tree.
template <class Visit>
bool CollisionOverlay::visit_own(bool constant, const Model& model, const Data& poses,
                                 const Data& scratch, Visit&& visit) const {
    for (std::size_t own = 0; own < shapes_.size(); ++own) {
        const std::int32_t link = shapes_[own].link;
        const PlacedShape mine = own_shape(own, scratch);
        const Bounds& around = bounds(own, scratch);
        const auto meets = [&](std::int32_t number, MarginClass margin) {
            return margin != 0 &&
                   offer(own, mine, number, base_shape(model, number, poses), model, margin, visit);
        };
        if ((link < 0) == constant &&
            model.tree.visit(inflated(around, largest_margin_), [&](std::int32_t still) {
            return meets(model.moving_count + still,
                         class_of(own, model, model.moving_count + still));
        }))
            return true;
        for (std::int32_t a = 0; a < model.moving_count; ++a) {
            if ((model.placed[a].link == link) != constant) continue;
            const MarginClass margin = class_of(own, model, a);
            if (!constant && !are_near(poses.shape_bounds[a], around, link, margin)) continue;
            if (meets(a, margin)) return true;
        }
    }
    return visit_pairs(constant, scratch, visit);
}

// Of those, the pairs of two own shapes.
template <class Visit>
bool CollisionOverlay::visit_pairs(bool constant, const Data& scratch, Visit&& visit) const {
    for (const Pair& pair : pairs_) {
        const std::int32_t link = shapes_[pair.b].link;
        if ((shapes_[pair.a].link == link) != constant) continue;
        if (!(constant && link >= 0) &&
            !are_near(bounds(pair.a, scratch), bounds(pair.b, scratch), link, pair.margin))
            continue;
        if (visit(own_shape(pair.a, scratch), own_shape(pair.b, scratch), (*margins_)[pair.margin]))
            return true;
    }
    return false;
}

}  // namespace tmkit
