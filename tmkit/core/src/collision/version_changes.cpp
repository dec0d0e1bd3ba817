// What differs between two versions that were compared with one base.
//
// A pair of shapes that are neither parts here nor hidden there stands as in the base in both: what was proved of it
// there holds here. So motions that were proved free in one version are looked at again only with what has parts in the
// other, and with what was hidden in the first.
#include "collision/moved_parts.hpp"

namespace tmkit {

std::unique_ptr<const CollisionView::Model> MovedParts::changes(const CollisionWorld::Base& base, const MovedParts* now,
                                                                const MovedParts* before) {
    const Model& model = base.model();
    const auto objects = static_cast<std::int32_t>(base.rules.object_count());
    const auto is_hidden = [](const MovedParts* parts, std::int32_t object) { return parts && parts->hides(object); };
    auto shapes = std::make_unique<CollisionShapes>();
    shapes->joint_count = base.rules.joint_count;
    shapes->margins = now ? *now->margins_ : base.rules.margins;
    shapes->largest_margin = now ? now->largest_margin_ : base.rules.largest_margin;
    for (std::int32_t object = 0; object < objects; ++object)
        shapes->object_frame.push_back(now ? now->frame_of(model, object) : base.rules.object_frame[object]);

    std::vector<Model::Placed> still;
    shapes->items = base.rules.items;  // which keep their numbers
    for (std::int32_t number = 0; before && number < static_cast<std::int32_t>(model.placed.size()); ++number) {
        const CollisionItem& item = model.item(number);
        if (!before->hides(item.object) || is_hidden(now, item.object)) continue;
        if (number < model.moving_count) return nullptr;
        still.push_back(model.placed[number]);
    }
    for (std::size_t own = 0; now && own < now->items_.size(); ++own) {
        const Item& item = now->items_[own];
        if (item.link >= 0) return nullptr;
        still.push_back({static_cast<std::int32_t>(shapes->items.size()), -1, item.link_from_shape});
        shapes->items.push_back(item.item);
        shapes->items.back().object += objects;
    }
    if (now)
        for (const Object& object : now->objects_) shapes->object_frame.push_back(object.frame);

    auto made = std::make_unique<Model>(model, std::move(shapes), still);
    const std::size_t columns = made->shapes->object_count();
    made->table.assign(model.table.size() / std::max<std::size_t>(1, objects) * columns, 0);
    for (std::int32_t a = 0; a < model.moving_count; ++a) {
        const std::int32_t object = model.item(a).object;
        if (is_hidden(now, object)) continue;
        MarginClass* row = made->table.data() + std::size_t(model.row[a]) * columns;
        const MarginClass* in_base = model.table.data() + std::size_t(model.row[a]) * objects;
        for (const Model::Placed& one : still) {
            const std::int32_t other = made->shapes->items[one.item].object;
            row[other] =
                other < objects ? in_base[other] : now->table_[std::size_t(other - objects) * objects + object];
        }
    }
    return made;
}

void MovedParts::add_changed(const CollisionWorld::Base& base, std::vector<FrameId>& frames) const {
    for (std::size_t object = 0; object < hidden_.size(); ++object)
        if (hidden_[object]) frames.push_back(base.rules.layout->ids[base.rules.object_frame[object]]);
    for (const Object& object : objects_) frames.push_back(object.id);
}

}  // namespace tmkit
