// Changes of a version of a scene relative to the collision world of another version.
//
// A world of the new version keeps the structures of an old one (its *base*) and holds the
// differences in an overlay. Changed base objects are *hidden*. Their present shapes, and those of
// new frames, are *own* shapes. Each is carried by a link of the base or static, with a row of
// margin classes against the objects of the base.
//
// The comparison is always between the base and the new version, so nothing accumulates, and it
// skips their shared parts. A pair with a changed rule makes one of its frames an own one. If a
// joint, a body or a shape carried by a joint changed, or more than a few frames did, there is no
// overlay, and a new world is made.
//
// Invariant: a pair of shapes has the poses, the order and the margin of a new world, so results
// agree to the last bit.
#pragma once

#include <memory>
#include <vector>

#include "collision/collision_base.hpp"

namespace tmkit {

class CollisionOverlay {
public:
    using Model = CollisionView::Model;
    using Data = CollisionView::Scratch::Data;

    // Return the differences from the base, or null if they are too many.
    static std::unique_ptr<const CollisionOverlay> find(const CollisionWorld::Base& base,
                                                        const SceneGraph& scene,
                                                        const CollisionOptions& options);

    // The moving shapes of the base, among static ones whose pose or rules differ between two
    // versions of it; null if such a shape moves. Either version may be that of the base, whose
    // overlay is null.
    static std::unique_ptr<const Model> changes(const CollisionWorld::Base& base,
                                                const CollisionOverlay* now,
                                                const CollisionOverlay* before);
    // Add the frames with own shapes, and the hidden ones.
    void add_changed(const CollisionWorld::Base& base, std::vector<FrameId>& frames) const;

    bool hides(std::int32_t base_object) const { return hidden_[base_object]; }
    // The number in this version of the frame of an object of the base.
    std::int32_t frame_of(const Model& model, std::int32_t base_object) const {
        return frame_numbers_.empty() ? model.rules->object_frame[base_object]
                                      : frame_numbers_[base_object];
    }
    bool changes_numbers() const { return changes_numbers_; }
    bool removes_frames() const { return removes_frames_; }

    // Place the own shapes on the links.
    void place(const std::vector<coal::Transform3s>& link_pose, Data& scratch) const;

    // Visit the pairs of this version as visit(shape, shape, margin), either those that joints can
    // change or the constant ones, after both have been placed; stops if visit returns true.
    template <class Visit>
    bool visit(bool constant, const Model& model, const Data& scratch, Visit&& visit) const;
    // Visit only those with an own shape; `poses`: poses of the shapes of the base.
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
        std::int32_t base_object;  // -1 if it is new
        BodyId body;
        FrameId cluster;
    };
    struct CarriedShape {
        CollisionShape shape;  // its object is an own one
        std::int32_t link;     // of the base; -1: the world
        coal::Transform3s link_from_shape;
        Bounds still_bounds;  // if link is -1
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
    // Return whether the boxes of two shapes, the second on this link, are within the margin of a
    // class. For static shapes the largest margin applies, as in the tree of the base.
    bool are_near(const Bounds& a, const Bounds& b, std::int32_t link, MarginClass margin) const {
        return inflated(a, link < 0 ? largest_margin_ : std::max((*margins_)[margin], 0.0))
            .overlap(b);
    }

    // An own shape and one of the base in the order of a new world: by link, then by frame.
    template <class Visit>
    bool offer(std::size_t own, const PlacedShape& mine, std::int32_t number,
               const PlacedShape& other_shape, const Model& model, MarginClass margin,
               Visit&& visit) const {
        const auto my_link = static_cast<std::uint32_t>(shapes_[own].link);
        const auto other_link = static_cast<std::uint32_t>(model.placed[number].link);
        const bool first =
            my_link != other_link ? my_link < other_link : mine.frame < other_shape.frame;
        return first ? visit(mine, other_shape, (*margins_)[margin])
                     : visit(other_shape, mine, (*margins_)[margin]);
    }

    std::vector<Object> objects_;
    std::vector<CarriedShape> shapes_;
    std::vector<Pair> pairs_;             // of own shapes, in the order of a new world
    std::vector<MarginClass> table_;      // own objects x objects of the base; 0 for hidden ones
    std::vector<std::uint8_t> hidden_;    // by object of the base
    const std::vector<double>* margins_;  // by margin class: those of the base, or own_margins_
    std::vector<double> own_margins_;     // those of the base and new ones
    double largest_margin_ = 0.0;
    bool changes_numbers_ = false, removes_frames_ = false;
    // By object of the base; empty if they are those of the base.
    std::vector<std::int32_t> frame_numbers_;
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

// Pairs within one link are constant; static shapes have the link -1, and those of the base are in
// its tree.
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

// Of these, the pairs of two own shapes.
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
