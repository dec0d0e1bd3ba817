// Worlds: the queries over all pairs, of one version or of one that was moved to.
//
// A world is a base with the changes of its version (collision_overlay.hpp). If the overlay does
// not suffice, the structures of the version itself are made, once. Scratches are borrowed from the
// base, so threads rarely create their own.
//
// Invariant: results do not depend on the version of the base, nor on other threads.
#include "tmkit/collision_world.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <numeric>
#include <thread>

#include "collision/collision_overlay.hpp"

namespace tmkit {
namespace {

// A base whose shapes are placed at a configuration.
struct PlacedBase {
    PlacedBase(const CollisionWorld::Base& of, const double* q) : base(of) { model.place(q, data); }

    std::int32_t count() const { return static_cast<std::int32_t>(model.placed.size()); }
    std::int32_t frame_of(std::int32_t shape) const {
        return base.rules.object_frame[model.collision_shape(shape).object];
    }
    MarginClass margin_class(std::int32_t a, std::int32_t b) const {
        return base.rules.margin_class(model.collision_shape(a).object,
                                       model.collision_shape(b).object);
    }
    void keep_nearest(std::int32_t a, std::int32_t b, MarginClass margin,
                      std::optional<Contact>& best) const {
        model.keep_nearest({a, b, base.rules.margins[margin]}, data, best);
    }

    const CollisionWorld::Base& base;
    const CollisionView::Model& model = base.model();
    BorrowedScratch scratch{base};
    CollisionView::Scratch::Data& data = (*scratch).data();
};

// Stops at the first pair in contact, and stores its frames.
auto first_contact(CollisionView::Scratch::Data& data, FramePair& contact_pair) {
    return [&](const PlacedShape& a, const PlacedShape& b, double margin) {
        if (!in_contact(a, b, margin, data)) return false;
        contact_pair = {std::min(a.frame, b.frame), std::max(a.frame, b.frame)};
        return true;
    };
}

// The options without the frames that are not in the scene.
std::shared_ptr<const CollisionOptions> reduce_options(const CollisionOptions& options,
                                                       const SceneGraph& scene) {
    auto remaining_options = std::make_shared<CollisionOptions>(options);
    std::erase_if(remaining_options->movable,
                  [&](const std::string& frame) { return !scene.find(frame); });
    std::erase_if(remaining_options->pair_margins, [&](const PairMargin& pair) {
        return !scene.find(pair.frame_a) || !scene.find(pair.frame_b);
    });
    return remaining_options;
}

std::shared_ptr<const CollisionOptions> change_options(const CollisionOptions& options,
                                                       const CollisionChanges& changes,
                                                       const SceneGraph& scene) {
    auto new_options = std::make_shared<CollisionOptions>(*reduce_options(options, scene));
    if (changes.movable) new_options->movable = *changes.movable;
    if (changes.margin) new_options->margin = *changes.margin;
    if (changes.pair_margins) new_options->pair_margins = *changes.pair_margins;
    check_options(*new_options);
    for (const std::string& frame : new_options->movable) scene.record(frame);
    for (const PairMargin& pair : new_options->pair_margins) {
        scene.record(pair.frame_a);
        scene.record(pair.frame_b);
    }
    return new_options;
}

}  // namespace

// A world is a base with the changes of its version.
struct CollisionWorld::State {
    static constexpr FramePair unknown{-2, -2};

    SceneGraph scene;
    std::shared_ptr<const CollisionOptions> options;
    std::shared_ptr<const Base> base;
    std::unique_ptr<const CollisionOverlay> overlay;  // null: no changes
    std::atomic<FramePair> constant_collision{
        unknown};  // all threads that compute it first get the same value
    std::once_flag anew_made;
    // Made for this version, on the first query beyond the overlay.
    std::shared_ptr<const Base> anew;

    // A state without changes.
    explicit State(std::shared_ptr<const Base> new_options)
        : scene(new_options->rules.scene), options(new_options, &new_options->rules.options),
          base(std::move(new_options)) {}
    State(const SceneGraph& s, std::shared_ptr<const CollisionOptions> o,
          std::shared_ptr<const Base> b, std::unique_ptr<const CollisionOverlay> p)
        : scene(s), options(std::move(o)), base(std::move(b)), overlay(std::move(p)) {}

    const Base& of_this_version() {
        if (!overlay) return *base;
        std::call_once(anew_made, [this] {
            const NoFork whole;
            scene.layout();
            anew = std::make_shared<const Base>(scene, *options);
        });
        return *anew;
    }

    FramePair find_constant() const;
};

CollisionWorld::CollisionWorld(SceneGraph scene, CollisionOptions options)
    : state_(std::make_unique<State>(
          std::make_shared<const Base>(std::move(scene), std::move(options)))) {}
CollisionWorld::CollisionWorld(std::unique_ptr<State> state) : state_(std::move(state)) {}
CollisionWorld::CollisionWorld(CollisionWorld&&) noexcept = default;
CollisionWorld::~CollisionWorld() = default;

CollisionWorld CollisionWorld::moved_to(const SceneGraph& scene,
                                        const CollisionChanges& changes) const {
    std::shared_ptr<const CollisionOptions> options = state_->options;
    if (changes.movable || changes.margin || changes.pair_margins)
        options = change_options(*options, changes, scene);
    std::unique_ptr<const CollisionOverlay> overlay =
        CollisionOverlay::find(*state_->base, scene, *options);
    // Removed frames may be those of the base, or added ones of this version.
    const bool adds_frames = state_->overlay && state_->overlay->changes_numbers();
    if (!overlay || overlay->removes_frames() || adds_frames)
        options = reduce_options(*options, scene);
    if (!overlay) return CollisionWorld(scene, *options);
    return CollisionWorld(
        std::make_unique<State>(scene, std::move(options), state_->base, std::move(overlay)));
}

bool CollisionWorld::shares_with(const CollisionWorld& other) const {
    return state_->base == other.state_->base;
}

bool CollisionWorld::still_free(const CollisionWorld& before, const double* const* rows,
                                std::size_t count) const {
    if (!shares_with(before) || constant_collision()) return false;
    auto changes = CollisionOverlay::changes(*state_->base, state_->overlay.get(),
                                             before.state_->overlay.get());
    if (!changes) return false;
    if (changes->still_pose.empty()) return true;
    const CollisionView view(std::move(changes));
    CollisionView::Scratch scratch = view.scratch();
    for (std::size_t first = 0; first < count; first += CollisionView::together) {
        const int batch_count = static_cast<int>(std::min(count - first, CollisionView::together));
        view.check_batch(rows + first, batch_count, scratch);
        for (int i = 0; i < batch_count; ++i)
            if (view.find_in_batch(rows[first + i], i, scratch)) return false;
    }
    std::int64_t checks = 0;
    for (std::size_t i = 0; i + 1 < count; ++i)
        if (view.find_unproved(rows[i], rows[i + 1], scratch, checks)) return false;
    return true;
}

std::optional<std::vector<FrameId>> CollisionWorld::changed_since(
    const CollisionWorld& before) const {
    if (!shares_with(before)) return std::nullopt;
    std::vector<FrameId> frames;
    for (const State* state : {state_.get(), before.state_.get()})
        if (state->overlay) state->overlay->add_changed(*state->base, frames);
    std::sort(frames.begin(), frames.end());
    frames.erase(std::unique(frames.begin(), frames.end()), frames.end());
    return frames;
}

const SceneGraph& CollisionWorld::scene() const { return state_->scene; }
const CollisionOptions& CollisionWorld::options() const { return *state_->options; }
const CollisionWorld::Rules& CollisionWorld::rules() const {
    return state_->of_this_version().rules;
}
std::size_t CollisionWorld::joint_count() const {
    return state_->base->rules.layout->joint_count();
}
std::string CollisionWorld::frame_name(std::int32_t frame) const {
    const bool same_numbers = !state_->overlay || !state_->overlay->changes_numbers();
    const Layout& layout = same_numbers ? *state_->base->rules.layout : state_->scene.layout();
    return state_->scene.record(layout.ids[frame]).name->text;
}

std::vector<Contact> CollisionWorld::pairs() const {
    std::vector<Contact> result;
    const Rules& rule_set = rules();
    const std::int32_t count = static_cast<std::int32_t>(rule_set.object_count());
    for (std::int32_t a = 0; a < count; ++a)
        for (std::int32_t b = a + 1; b < count; ++b)
            if (const MarginClass margin = rule_set.margin_class(a, b))
                result.push_back({rule_set.object_frame[a],
                                  rule_set.object_frame[b],
                                  0.0,
                                  rule_set.margins[margin],
                                  {},
                                  {}});
    return result;
}

FramePair CollisionWorld::State::find_constant() const {
    const CollisionView::Model& model = base->model();
    if (const FramePair pair = base->constant_collision()) {
        const std::int32_t a = base->rules.object_of[pair.a], b = base->rules.object_of[pair.b];
        if (!overlay->hides(a) && !overlay->hides(b))
            return {overlay->frame_of(model, a), overlay->frame_of(model, b)};
        return const_cast<State*>(this)->of_this_version().constant_collision();
    }
    FramePair contact_pair;
    BorrowedScratch scratch(*base);
    CollisionView::Scratch::Data& data = (*scratch).data();
    overlay->place(base->at_zero.data().link_pose, data);
    overlay->visit_own(true, model, base->at_zero.data(), data, first_contact(data, contact_pair));
    return contact_pair;
}

FramePair CollisionWorld::constant_collision() const {
    if (!state_->overlay) return state_->base->constant_collision();
    FramePair pair = state_->constant_collision.load(std::memory_order_relaxed);
    if (pair == State::unknown) {
        pair = state_->find_constant();
        state_->constant_collision.store(pair, std::memory_order_relaxed);
    }
    return pair;
}

FramePair CollisionWorld::find_variable(const double* q, CollisionView::Scratch& scratch) const {
    if (!state_->overlay) return state_->base->view.find_collision(q, scratch);
    FramePair contact_pair;
    CollisionView::Scratch::Data& data = scratch.data();
    const CollisionView::Model& model = state_->base->model();
    model.place(q, data);
    state_->overlay->place(data.link_pose, data);
    state_->overlay->visit(false, model, data, first_contact(data, contact_pair));
    return contact_pair;
}

FramePair CollisionWorld::find_collision(const double* q) const {
    if (const FramePair constant = constant_collision()) return constant;
    BorrowedScratch scratch(*state_->base);
    return find_variable(q, *scratch);
}

void CollisionWorld::in_collisions(const double* const* q, int count, bool* contact_pair) const {
    if (constant_collision()) {
        std::fill_n(contact_pair, count, true);
        return;
    }
    BorrowedScratch scratch(*state_->base);
    const CollisionView& view = state_->base->view;
    if (!state_->overlay) view.check_batch(q, count, *scratch);
    for (int i = 0; i < count; ++i)
        contact_pair[i] =
            static_cast<bool>(state_->overlay ? find_variable(q[i], *scratch)
                                              : view.find_in_batch(q[i], i, *scratch));
}

std::vector<std::uint32_t> CollisionWorld::order_by_nearness(const double* rows,
                                                             std::size_t count) const {
    constexpr std::size_t most_joints = 4;
    const std::size_t columns = joint_count();
    struct Varying {
        std::size_t column;
        double least, scale;
    };
    std::vector<Varying> joints;
    // Number of parts of the range of a joint that gives about as many cells as groups of
    // configurations.
    const double groups = static_cast<double>(count) / static_cast<double>(CollisionView::together);
    const auto overlay =
        static_cast<std::uint32_t>(std::clamp(std::round(std::sqrt(std::sqrt(groups))), 1.0, 8.0));
    for (const CollisionView::Model::Link& link : state_->base->model().links) {
        const auto column = static_cast<std::size_t>(link.q_index);
        if (joints.size() == most_joints || overlay == 1) break;
        if (std::any_of(joints.begin(), joints.end(),
                        [&](const Varying& joint) { return joint.column == column; }))
            continue;
        double least = std::numeric_limits<double>::infinity(), most = -least;
        for (std::size_t i = column; i < count * columns; i += columns) {
            least = std::min(least, rows[i]);
            most = std::max(most, rows[i]);
        }
        if (most > least && std::isfinite(most - least))
            joints.push_back({column, least, overlay / (most - least)});
    }
    std::vector<std::uint32_t> cells(count),
        begins(std::size_t(overlay) * overlay * overlay * overlay + 1), order(count);
    for (std::size_t i = 0; i < count; ++i) {
        // The first joint least: it changes no relative pose of two links.
        std::uint32_t weight = 1;
        for (const Varying& joint : joints) {
            const double cell = joint.scale * (rows[i * columns + joint.column] - joint.least);
            cells[i] += weight * std::min(static_cast<std::uint32_t>(cell), overlay - 1);
            weight *= overlay;
        }
        ++begins[cells[i] + 1];
    }
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    for (std::size_t i = 0; i < count; ++i)
        order[begins[cells[i]]++] = static_cast<std::uint32_t>(i);
    return order;
}

std::vector<Contact> CollisionWorld::contacts(const double* q) const {
    std::vector<Contact> all;
    PlacedBase placed_base(*state_->base, q);
    const CollisionView::Model& model = placed_base.model;
    const auto add = [&](const PlacedShape& a, const PlacedShape& b, double margin) {
        gather(a, b, margin, placed_base.data, all);
        return false;
    };
    if (const CollisionOverlay* overlay = state_->overlay.get()) {
        overlay->place(placed_base.data.link_pose, placed_base.data);
        overlay->visit(false, model, placed_base.data, add);
        overlay->visit(true, model, placed_base.data, add);
    } else {
        const auto candidate = [&](const CollisionView::Model::Candidate& c) {
            return add(model.shape(c.a, placed_base.data), model.shape(c.b, placed_base.data),
                       c.margin);
        };
        model.visit_variable(placed_base.data, candidate);
        model.visit_constant(placed_base.data, candidate);
    }
    return deepest_of_each(std::move(all));
}

std::optional<Contact> CollisionWorld::nearest(const double* q) const {
    std::optional<Contact> best;
    const PlacedBase placed_base(state_->of_this_version(), q);
    const auto& [placed, moving] =
        std::tie(placed_base.model.placed, placed_base.model.moving_count);
    for (std::int32_t a = 0; a < moving; ++a)
        for (std::int32_t b = moving; b < placed_base.count(); ++b)
            if (const MarginClass margin = placed_base.margin_class(a, b))
                placed_base.keep_nearest(a, b, margin, best);
    for (const CollisionView::Model::MovingPair& pair : placed_base.model.moving_pairs)
        placed_base.keep_nearest(pair.a, pair.b, pair.margin, best);
    for (std::int32_t a = 0; a < placed_base.count(); ++a)
        for (std::int32_t b = a + 1; b < placed_base.count() && placed[b].link == placed[a].link;
             ++b)
            if (const MarginClass margin = placed_base.margin_class(a, b))
                placed_base.keep_nearest(a, b, margin, best);
    return best;
}

Contact CollisionWorld::contact(FramePair pair, const double* q) const {
    std::optional<Contact> best;
    const PlacedBase placed_base(state_->of_this_version(), q);
    for (std::int32_t a = 0; a < placed_base.count(); ++a)
        for (std::int32_t b = 0; b < placed_base.count() && placed_base.frame_of(a) == pair.a; ++b)
            if (placed_base.frame_of(b) == pair.b)
                placed_base.keep_nearest(a, b, placed_base.margin_class(a, b), best);
    return best.value_or(
        Contact{pair.a, pair.b, std::numeric_limits<double>::infinity(), 0.0, {}, {}});
}

std::optional<Contact> CollisionWorld::between(const std::vector<std::int32_t>& frames_a,
                                               const std::vector<std::int32_t>& frames_b,
                                               const double* q) const {
    const PlacedBase placed_base(state_->of_this_version(), q);
    const auto items_of = [&](const std::vector<std::int32_t>& frames) {
        std::vector<std::int32_t> shapes;
        for (std::int32_t shape = 0; shape < placed_base.count(); ++shape)
            if (std::find(frames.begin(), frames.end(), placed_base.frame_of(shape)) !=
                frames.end())
                shapes.push_back(shape);
        return shapes;
    };
    const std::vector<std::int32_t> items_a = items_of(frames_a), items_b = items_of(frames_b);
    std::optional<Contact> best;
    bool flipped = false;
    for (const std::int32_t a : items_a)
        for (const std::int32_t b : items_b) {
            if (a == b) continue;
            const MarginClass margin = placed_base.margin_class(a, b);
            const double metres = margin != 0 ? placed_base.base.rules.margins[margin]
                                              : -std::numeric_limits<double>::infinity();
            const std::optional<Contact> before = best;
            placed_base.model.keep_nearest({std::min(a, b), std::max(a, b), metres},
                                           placed_base.data, best);
            if (best && (!before || best->distance < before->distance))
                flipped = placed_base.frame_of(a) != best->frame_a;
        }
    if (best && flipped) {
        std::swap(best->frame_a, best->frame_b);
        for (double& number : best->normal) number = -number;
    }
    return best;
}

std::int64_t edge_steps(const double* q0, const double* q1, std::size_t size, double resolution) {
    double longest = 0.0;
    for (std::size_t i = 0; i < size; ++i) longest = std::max(longest, std::abs(q1[i] - q0[i]));
    return std::max<std::int64_t>(
        1, static_cast<std::int64_t>(std::ceil(longest / resolution - 1e-9)));
}

bool CollisionWorld::edge_free(const double* q0, const double* q1, double resolution) const {
    if (in_collision(q0) || in_collision(q1)) return false;
    const std::size_t n = joint_count();
    const std::int64_t steps = edge_steps(q0, q1, n, resolution);
    std::vector<double> q(n);
    BorrowedScratch scratch(*state_->base);
    return visit_bisecting(steps, [&](std::int64_t k) {
        const double fraction = static_cast<double>(k) / static_cast<double>(steps);
        for (std::size_t i = 0; i < n; ++i) q[i] = q0[i] + fraction * (q1[i] - q0[i]);
        return !find_variable(q.data(), *scratch);
    });
}

std::optional<EdgeCollision> CollisionWorld::find_edge_collision(const double* q0, const double* q1,
                                                                 double resolution) const {
    const std::size_t n = joint_count();
    if (const FramePair constant = constant_collision())
        return EdgeCollision{0.0, {q0, q0 + n}, constant};
    const std::int64_t steps = edge_steps(q0, q1, n, resolution);
    std::vector<double> q(n);
    BorrowedScratch scratch(*state_->base);
    for (std::int64_t k = 0; k <= steps; ++k) {
        const double fraction = static_cast<double>(k) / static_cast<double>(steps);
        for (std::size_t i = 0; i < n; ++i)
            q[i] = k == steps ? q1[i] : q0[i] + fraction * (q1[i] - q0[i]);
        if (const FramePair pair = find_variable(q.data(), *scratch))
            return EdgeCollision{fraction, q, pair};
    }
    return std::nullopt;
}

}  // namespace tmkit
