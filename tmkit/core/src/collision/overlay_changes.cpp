// Differences of two versions with a common base.
//
// A pair of shapes that is neither own here nor hidden there has the same poses in both versions,
// those of the base: a proof for it there holds here. Motions that were proved free in one version
// are therefore checked again only with the own shapes of the other, and with the hidden ones of
// the first.
#include "collision/collision_overlay.hpp"

namespace tmkit {

std::unique_ptr<const CollisionView::Model> CollisionOverlay::changes(
    const CollisionWorld::Base& base, const CollisionOverlay* now, const CollisionOverlay* before) {
    const Model& model = base.model();
    const auto objects = static_cast<std::int32_t>(base.rules.object_count());
    const auto is_hidden = [](const CollisionOverlay* overlay, std::int32_t object) {
        return overlay && overlay->hides(object);
    };
    auto shapes = std::make_unique<CollisionShapes>();
    shapes->joint_count = base.rules.joint_count;
    shapes->margins = now ? *now->margins_ : base.rules.margins;
    shapes->largest_margin = now ? now->largest_margin_ : base.rules.largest_margin;
    for (std::int32_t object = 0; object < objects; ++object)
        shapes->object_frame.push_back(now ? now->frame_of(model, object)
                                           : base.rules.object_frame[object]);

    std::vector<Model::Placed> still;
    shapes->shapes = base.rules.shapes;  // with unchanged numbers
    for (std::int32_t number = 0; before && number < static_cast<std::int32_t>(model.placed.size());
         ++number) {
        const CollisionShape& shape = model.collision_shape(number);
        if (!before->hides(shape.object) || is_hidden(now, shape.object)) continue;
        if (number < model.moving_count) return nullptr;
        still.push_back(model.placed[number]);
    }
    for (std::size_t own = 0; now && own < now->shapes_.size(); ++own) {
        const CarriedShape& shape = now->shapes_[own];
        if (shape.link >= 0) return nullptr;
        still.push_back(
            {static_cast<std::int32_t>(shapes->shapes.size()), -1, shape.link_from_shape});
        shapes->shapes.push_back(shape.shape);
        shapes->shapes.back().object += objects;
    }
    if (now)
        for (const Object& object : now->objects_) shapes->object_frame.push_back(object.frame);

    auto result = std::make_unique<Model>(model, std::move(shapes), still);
    const std::size_t columns = result->shapes->object_count();
    result->table.assign(model.table.size() / std::max<std::size_t>(1, objects) * columns, 0);
    for (std::int32_t a = 0; a < model.moving_count; ++a) {
        const std::int32_t object = model.collision_shape(a).object;
        if (is_hidden(now, object)) continue;
        MarginClass* row = result->table.data() + std::size_t(model.row[a]) * columns;
        const MarginClass* in_base = model.table.data() + std::size_t(model.row[a]) * objects;
        for (const Model::Placed& still_shape : still) {
            const std::int32_t other_object = result->shapes->shapes[still_shape.shape].object;
            row[other_object] =
                other_object < objects
                    ? in_base[other_object]
                    : now->table_[std::size_t(other_object - objects) * objects + object];
        }
    }
    return result;
}

void CollisionOverlay::add_changed(const CollisionWorld::Base& base,
                                   std::vector<FrameId>& frames) const {
    for (std::size_t object = 0; object < hidden_.size(); ++object)
        if (hidden_[object])
            frames.push_back(base.rules.layout->ids[base.rules.object_frame[object]]);
    for (const Object& object : objects_) frames.push_back(object.id);
}

}  // namespace tmkit
