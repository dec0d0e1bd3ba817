// Views and worlds: the queries.
#include "tmkit/collision_world.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>

#include "collision_model.hpp"

namespace tmkit {
namespace {

// One contact for each pair of frames, the deepest, in frame order.
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

void keep_nearest(const CollisionView::Model& model, const CollisionView::Model::Candidate& candidate,
                  const CollisionView::Scratch::Data& scratch, std::optional<Contact>& best) {
    const double limit = best ? best->distance : std::numeric_limits<double>::infinity();
    if (model.bounds(candidate.a, scratch).distance(model.bounds(candidate.b, scratch)) > std::max(limit, 0.0)) return;
    const Contact contact = model.measure(candidate, scratch, limit);
    if (contact.distance < limit) best = contact;
}

}  // namespace

CollisionView::Scratch::Scratch(const Model& model) : data_(std::make_unique<Data>()) {
    data_->link_pose.resize(model.links.size());
    data_->shape_pose.resize(model.moving_count);
    data_->shape_bounds.resize(model.moving_count);
}
CollisionView::Scratch::Scratch(Scratch&&) noexcept = default;
CollisionView::Scratch::~Scratch() = default;

CollisionView::CollisionView(const CollisionWorld& world, const std::vector<bool>& moves, const double* base)
    : model_(std::make_unique<Model>(world.rules(), moves, base)) {}
CollisionView::CollisionView(CollisionView&&) noexcept = default;
CollisionView::~CollisionView() = default;

CollisionView::Scratch CollisionView::scratch() const { return Scratch(*model_); }

FramePair CollisionView::find_collision(const double* q, Scratch& scratch) const {
    FramePair found;
    Scratch::Data& data = scratch.data();
    model_->place(q, data);
    model_->visit_variable(data, [&](const Model::Candidate& candidate) {
        if (!model_->in_contact(candidate, data)) return false;
        found = model_->frames(candidate);
        return true;
    });
    return found;
}

std::vector<Contact> CollisionView::contacts(const double* q, Scratch& scratch) const {
    std::vector<Contact> contacts;
    Scratch::Data& data = scratch.data();
    model_->place(q, data);
    model_->visit_variable(data, [&](const Model::Candidate& candidate) {
        model_->gather(candidate, data, contacts);
        return false;
    });
    return deepest_of_each(std::move(contacts));
}

void CollisionView::nearest(const double* q, Scratch& scratch, std::optional<Contact>& best) const {
    const Scratch::Data& data = scratch.data();
    model_->place(q, scratch.data());
    const std::int32_t count = static_cast<std::int32_t>(model_->placed.size());
    for (std::int32_t a = 0; a < model_->moving_count; ++a)
        for (std::int32_t b = model_->moving_count; b < count; ++b) {
            const MarginClass margin =
                model_->table[std::size_t(model_->row[a]) * model_->rules->object_count() + model_->item(b).object];
            if (margin != 0) keep_nearest(*model_, {a, b, model_->rules->margins[margin]}, data, best);
        }
    for (const Model::MovingPair& pair : model_->moving_pairs)
        keep_nearest(*model_, {pair.a, pair.b, model_->rules->margins[pair.margin]}, data, best);
}

struct CollisionWorld::State {
    explicit State(CollisionView v) : view(std::move(v)) {}
    ~State() { delete spare.load(); }

    CollisionView view;  // all joints move
    std::once_flag constant_checked;
    FramePair constant_collision;
    std::atomic<CollisionView::Scratch*> spare{nullptr};
};

namespace {

// A scratch borrowed from the one the world keeps, or a new one while another thread has it.
class Borrowed {
public:
    Borrowed(std::atomic<CollisionView::Scratch*>& spare, const CollisionView& view)
        : spare_(spare), scratch_(spare.exchange(nullptr)) {
        if (!scratch_) scratch_ = new CollisionView::Scratch(view.scratch());
    }
    Borrowed(const Borrowed&) = delete;
    ~Borrowed() { delete spare_.exchange(scratch_); }
    CollisionView::Scratch& operator*() { return *scratch_; }

private:
    std::atomic<CollisionView::Scratch*>& spare_;
    CollisionView::Scratch* scratch_;
};

}  // namespace

CollisionWorld::CollisionWorld(SceneGraph scene, CollisionOptions options)
    : rules_(std::make_unique<Rules>(std::move(scene), std::move(options))) {
    const std::vector<bool> all(joint_count(), true);
    const std::vector<double> zero(joint_count(), 0.0);
    state_ = std::make_unique<State>(CollisionView(*this, all, zero.data()));
}
CollisionWorld::~CollisionWorld() = default;

const SceneGraph& CollisionWorld::scene() const { return rules_->scene; }
const CollisionOptions& CollisionWorld::options() const { return rules_->options; }
std::size_t CollisionWorld::joint_count() const { return rules_->layout->joint_count(); }
std::string CollisionWorld::frame_name(std::int32_t frame) const {
    return rules_->scene.record(rules_->layout->ids[frame]).name->text;
}

std::vector<Contact> CollisionWorld::pairs() const {
    std::vector<Contact> result;
    const std::int32_t count = static_cast<std::int32_t>(rules_->object_count());
    for (std::int32_t a = 0; a < count; ++a)
        for (std::int32_t b = a + 1; b < count; ++b)
            if (const MarginClass margin = rules_->margin_class(a, b))
                result.push_back({rules_->object_frame[a], rules_->object_frame[b], 0.0, rules_->margins[margin],
                                  {}, {}});
    return result;
}

FramePair CollisionWorld::constant_collision() const {
    std::call_once(state_->constant_checked, [this] {
        const CollisionView::Model& model = state_->view.model();
        Borrowed scratch(state_->spare, state_->view);
        CollisionView::Scratch::Data& data = (*scratch).data();
        const std::vector<double> zero(joint_count(), 0.0);
        model.place(zero.data(), data);
        model.visit_constant(data, [&](const CollisionView::Model::Candidate& candidate) {
            if (!model.in_contact(candidate, data)) return false;
            state_->constant_collision = model.frames(candidate);
            return true;
        });
    });
    return state_->constant_collision;
}

FramePair CollisionWorld::find_collision(const double* q) const {
    if (const FramePair constant = constant_collision()) return constant;
    Borrowed scratch(state_->spare, state_->view);
    return state_->view.find_collision(q, *scratch);
}

std::vector<Contact> CollisionWorld::contacts(const double* q) const {
    Borrowed scratch(state_->spare, state_->view);
    std::vector<Contact> all = state_->view.contacts(q, *scratch);
    const CollisionView::Model& model = state_->view.model();
    CollisionView::Scratch::Data& data = (*scratch).data();
    model.visit_constant(data, [&](const CollisionView::Model::Candidate& candidate) {
        model.gather(candidate, data, all);
        return false;
    });
    return deepest_of_each(std::move(all));
}

std::optional<Contact> CollisionWorld::nearest(const double* q) const {
    std::optional<Contact> best;
    Borrowed scratch(state_->spare, state_->view);
    state_->view.nearest(q, *scratch, best);
    const CollisionView::Model& model = state_->view.model();
    const CollisionView::Scratch::Data& data = (*scratch).data();
    const std::int32_t count = static_cast<std::int32_t>(model.placed.size());
    for (std::int32_t a = 0; a < count; ++a)
        for (std::int32_t b = a + 1; b < count && model.placed[b].link == model.placed[a].link; ++b)
            if (const MarginClass margin = rules_->margin_class(model.item(a).object, model.item(b).object))
                keep_nearest(model, {a, b, rules_->margins[margin]}, data, best);
    return best;
}

Contact CollisionWorld::contact(FramePair pair, const double* q) const {
    std::optional<Contact> best;
    Borrowed scratch(state_->spare, state_->view);
    const CollisionView::Model& model = state_->view.model();
    CollisionView::Scratch::Data& data = (*scratch).data();
    model.place(q, data);
    const auto frame = [&](std::int32_t item) { return rules_->object_frame[model.item(item).object]; };
    const std::int32_t count = static_cast<std::int32_t>(model.placed.size());
    for (std::int32_t a = 0; a < count; ++a) {
        if (frame(a) != pair.a) continue;
        for (std::int32_t b = 0; b < count; ++b) {
            if (frame(b) != pair.b) continue;
            const MarginClass margin = rules_->margin_class(model.item(a).object, model.item(b).object);
            keep_nearest(model, {a, b, rules_->margins[margin]}, data, best);
        }
    }
    return best.value_or(Contact{pair.a, pair.b, std::numeric_limits<double>::infinity(), 0.0, {}, {}});
}

std::int64_t edge_steps(const double* q0, const double* q1, std::size_t size, double resolution) {
    double longest = 0.0;
    for (std::size_t i = 0; i < size; ++i) longest = std::max(longest, std::abs(q1[i] - q0[i]));
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(longest / resolution - 1e-9)));
}

bool CollisionWorld::edge_free(const double* q0, const double* q1, double resolution) const {
    if (in_collision(q0) || in_collision(q1)) return false;
    const std::size_t n = joint_count();
    const std::int64_t steps = edge_steps(q0, q1, n, resolution);
    std::vector<double> q(n);
    Borrowed scratch(state_->spare, state_->view);
    return visit_bisecting(steps, [&](std::int64_t k) {
        const double fraction = static_cast<double>(k) / static_cast<double>(steps);
        for (std::size_t i = 0; i < n; ++i) q[i] = q0[i] + fraction * (q1[i] - q0[i]);
        return !state_->view.find_collision(q.data(), *scratch);
    });
}

std::optional<EdgeCollision> CollisionWorld::find_edge_collision(const double* q0, const double* q1,
                                                                 double resolution) const {
    const std::size_t n = joint_count();
    if (const FramePair constant = constant_collision()) return EdgeCollision{0.0, {q0, q0 + n}, constant};
    const std::int64_t steps = edge_steps(q0, q1, n, resolution);
    std::vector<double> q(n);
    Borrowed scratch(state_->spare, state_->view);
    for (std::int64_t k = 0; k <= steps; ++k) {
        const double fraction = static_cast<double>(k) / static_cast<double>(steps);
        for (std::size_t i = 0; i < n; ++i) q[i] = k == steps ? q1[i] : q0[i] + fraction * (q1[i] - q0[i]);
        if (const FramePair pair = state_->view.find_collision(q.data(), *scratch)) return EdgeCollision{fraction, q, pair};
    }
    return std::nullopt;
}

CollisionView CollisionWorld::view(const std::vector<bool>& moves, const double* base) const {
    return CollisionView(*this, moves, base);
}

}  // namespace tmkit
