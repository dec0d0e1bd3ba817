// Views: the queries over the pairs that can change while some joints move and all others stay.
//
// A view has a model of its own (collision_model.hpp), worked out for the joints that move. A query places the moving
// shapes in the caller's scratch, goes over the pairs whose boxes come near each other, and asks the narrow phase. Here
// too is what views and worlds make of the answers: one contact for each pair of frames, and the nearest of many.
//
// Invariant: a view is not changed by a query, so threads with scratches of their own may share it.
#include <algorithm>

#include "collision/collision_model.hpp"

namespace tmkit {

std::vector<Contact> deepest_of_each(std::vector<Contact> contacts) {
    std::stable_sort(contacts.begin(), contacts.end(), [](const Contact& a, const Contact& b) {
        if (a.frame_a != b.frame_a) return a.frame_a < b.frame_a;
        return a.frame_b != b.frame_b ? a.frame_b < b.frame_b : a.distance < b.distance;
    });
    const auto same = [](const Contact& a, const Contact& b) {
        return a.frame_a == b.frame_a && a.frame_b == b.frame_b;
    };
    contacts.erase(std::unique(contacts.begin(), contacts.end(), same), contacts.end());
    return contacts;
}

void CollisionView::Model::keep_nearest(const Candidate& candidate, const Scratch::Data& scratch,
                                        std::optional<Contact>& best) const {
    const double limit = best ? best->distance : std::numeric_limits<double>::infinity();
    if (bounds(candidate.a, scratch).distance(bounds(candidate.b, scratch)) > std::max(limit, 0.0)) return;
    const Contact contact = measure(candidate, scratch, limit);
    if (contact.distance < limit) best = contact;
}

CollisionView::Scratch::Scratch(const Model& model) : data_(std::make_unique<Data>()) {
    data_->link_pose.resize(model.links.size());
    data_->shape_pose.resize(model.moving_count);
    data_->shape_bounds.resize(model.moving_count);
}
CollisionView::Scratch::Scratch(Scratch&&) noexcept = default;
CollisionView::Scratch::~Scratch() = default;

CollisionView::CollisionView(const CollisionWorld& world, const std::vector<std::int32_t>& entries,
                             const double* base) {
    std::vector<bool> moves(world.joint_count(), false);
    for (const std::int32_t entry : entries) moves[entry] = true;
    model_ = std::make_unique<Model>(world.rules(), moves, base);
}
CollisionView::CollisionView(std::unique_ptr<const Model> model) : model_(std::move(model)) {}
CollisionView::CollisionView(CollisionView&&) noexcept = default;
CollisionView::~CollisionView() = default;

CollisionView::Scratch CollisionView::scratch() const { return Scratch(*model_); }

FramePair CollisionView::find_collision(const double* q, Scratch& scratch) const {
    place(q, scratch);
    return find_collision(scratch);
}

void CollisionView::place(const double* q, Scratch& scratch) const { model_->place(q, scratch.data()); }

bool CollisionView::carries(std::int32_t frame) const { return model_->frame_link[frame] >= 0; }

Vector3 CollisionView::origin(std::int32_t frame, const Scratch& scratch) const {
    const coal::Transform3s& link = scratch.data().link_pose[model_->frame_link[frame]];
    const coal::Vec3s origin = link.transform(coal::Vec3s(model_->link_from_frame[frame].translation.data()));
    return {origin[0], origin[1], origin[2]};
}

FramePair CollisionView::find_collision(Scratch& scratch) const {
    FramePair found;
    Scratch::Data& data = scratch.data();
    model_->visit_variable(data, [&](const Model::Candidate& candidate) {
        if (!model_->in_contact(candidate, data)) return false;
        found = model_->frames(candidate);
        return true;
    });
    return found;
}

}  // namespace tmkit
