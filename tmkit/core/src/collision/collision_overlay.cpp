// Search for the changes of a version: see collision_overlay.hpp.
#include "collision/collision_overlay.hpp"

#include <algorithm>
#include <cmath>

namespace tmkit {
namespace {

// Beyond these limits a new world is made, since own shapes are tested one by one.
constexpr std::size_t most_frames = 16, most_objects = 8;

bool collides(const FrameRecord& record) {
    if (!record.details) return false;
    const std::vector<AttachedShape>& shapes = record.details->shapes;
    return std::any_of(shapes.begin(), shapes.end(),
                       [](const AttachedShape& shape) { return shape.collision; });
}

bool same_shapes(const FrameRecord& a, const FrameRecord& b) {
    if (a.details == b.details) return true;
    static const std::vector<AttachedShape> none;
    return (a.details ? a.details->shapes : none) == (b.details ? b.details->shapes : none);
}

}  // namespace

// The steps, each of which fails (false) if too much differs.
class OverlayBuilder {
public:
    OverlayBuilder(const CollisionWorld::Base& base, const SceneGraph& scene,
                   const CollisionOptions& options)
        : base_(base), rules_(base.rules), layout_(*base.rules.layout), scene_(scene),
          options_(options) {}

    std::unique_ptr<const CollisionOverlay> build() {
        if (!collect_frames() || !same_movable() || !add_carried()) return nullptr;
        overlay_.reset(new CollisionOverlay());
        overlay_->margins_ = &rules_.margins;
        overlay_->hidden_.assign(rules_.object_count(), 0);
        if (!place_frames() || !add_objects() || !change_pairs()) return nullptr;
        number_frames();
        fill_table();
        pair_shapes();
        return std::move(overlay_);
    }

private:
    struct Frame {
        FrameId id;
        const FrameRecord* record;
        bool is_new;
        bool moves;  // false: only its shapes changed
        bool placed;
        std::int32_t link;
        FrameId cluster;
        Pose link_from_frame;
    };
    struct Override {
        FrameId a, b;
        MarginClass margin;
    };

    // Frames whose records differ. Joints, bodies and names must not: names in the options could
    // change their meaning.
    bool collect_frames() {
        bool is_small = true;
        SceneGraph::for_each_changed_frame(
            base_.rules.scene, scene_,
            [&](FrameId id, const FrameRecord* before, const FrameRecord* after) {
            if (!is_small) return;
            is_small =
                frames_.size() + removed_.size() < most_frames && add_changed(id, before, after);
        });
        return is_small;
    }

    bool add_changed(FrameId id, const FrameRecord* before, const FrameRecord* after) {
        if (!after) {
            removed_.push_back(id);
            return !before->joint;
        }
        if (!before) {
            frames_.push_back({id, after, true, true, false, -1, id, {}});
            return !after->joint;
        }
        const bool moves = before->parent != after->parent ||
                           before->joint_type != after->joint_type ||
                           before->joint != after->joint || !(before->pose == after->pose);
        if (moves && (before->joint || after->joint)) return false;
        if (before->body != after->body ||
            !(before->name == after->name || before->name->text == after->name->text))
            return false;
        if (moves || !same_shapes(*before, *after))
            frames_.push_back({id, after, false, moves, false, -1, id, {}});
        return true;
    }

    // The descendants of a moved frame move with it.
    bool add_carried() {
        const std::size_t changed = frames_.size();
        for (std::size_t i = 0; i < changed; ++i)
            if (frames_[i].moves && !frames_[i].is_new && !add_children(frames_[i].id))
                return false;
        return true;
    }

    bool add_children(FrameId parent) {
        const std::int32_t number = layout_.index_of(parent);
        const LayoutTree& tree = layout_.tree();
        for (std::int32_t i = tree.first_child[number]; i < tree.first_child[number + 1]; ++i) {
            const std::int32_t child = tree.child[i];
            const FrameId id = layout_.ids[child];
            Frame* entry = find(id);
            if (is_removed(id) || (entry && entry->moves)) continue;
            if (layout_.q_index[child] >= 0 || frames_.size() >= most_frames) return false;
            if (entry) entry->moves = true;
            else frames_.push_back({id, &scene_.record(id), false, true, false, -1, id, {}});
            if (!add_children(id)) return false;
        }
        return true;
    }

    Frame* find(FrameId id) {
        for (Frame& frame : frames_)
            if (frame.id == id) return &frame;
        return nullptr;
    }
    bool is_removed(FrameId id) const {
        return std::binary_search(removed_.begin(), removed_.end(), id);
    }
    bool is_new(FrameId id) {
        const Frame* frame = find(id);
        return frame && frame->is_new;
    }

    // Only new frames may become movable: otherwise rigid joins would change elsewhere.
    bool same_movable() {
        if (&options_ == &rules_.options || options_.movable == rules_.options.movable) return true;
        std::vector<FrameId> now, changed;
        for (const std::string& name : options_.movable)
            if (const FrameRecord* record = scene_.find(name)) now.push_back(record->id);
        std::sort(now.begin(), now.end());
        std::set_symmetric_difference(now.begin(), now.end(), base_.movable.begin(),
                                      base_.movable.end(), std::back_inserter(changed));
        return std::all_of(changed.begin(), changed.end(),
                           [&](FrameId id) { return is_removed(id) || is_new(id); });
    }
    bool is_movable(const Frame& frame) const {
        if (!frame.is_new)
            return std::binary_search(base_.movable.begin(), base_.movable.end(), frame.id);
        return std::find(options_.movable.begin(), options_.movable.end(),
                         frame.record->name->text) != options_.movable.end();
    }

    // Link, pose in the link and rigid cluster of each, as in a new world.
    bool place_frames() {
        for (Frame& frame : frames_) place(frame);
        return std::none_of(frames_.begin(), frames_.end(),
                            [](const Frame& frame) { return frame.link == -2; });
    }

    void place(Frame& frame) {
        if (frame.placed) return;
        frame.placed = true;
        const FrameRecord& record = *frame.record;
        if (!frame.moves) {
            const std::int32_t number = layout_.index_of(frame.id);
            frame.link = base_.model().frame_link[number];
            frame.link_from_frame = base_.model().link_from_frame[number];
            frame.cluster = rules_.cluster[number];
            return;
        }
        if (record.parent == no_frame) return;
        const bool joined = record.joint_type == JointType::fixed && !is_movable(frame);
        if (Frame* parent = find(record.parent)) {
            place(*parent);
            frame.link = parent->link;
            frame.link_from_frame = parent->link_from_frame * record.pose;
            if (joined) frame.cluster = parent->cluster;
        } else {
            const std::int32_t number = layout_.index_of(record.parent);
            frame.link = base_.model().frame_link[number];
            frame.link_from_frame = base_.model().link_from_frame[number] * record.pose;
            if (joined) frame.cluster = rules_.cluster[number];
        }
    }

    bool add_objects() {
        for (const FrameId id : removed_) hide(id);
        for (const Frame& frame : frames_) {
            if (!frame.is_new) hide(frame.id);
            if (collides(*frame.record)) add_object(frame);
        }
        return overlay_->objects_.size() <= most_objects;
    }

    void add_object(const Frame& frame) {
        const auto object = static_cast<std::int32_t>(overlay_->objects_.size());
        overlay_->objects_.push_back({frame.id, -1, frame.is_new ? -1 : base_object(frame.id),
                                      frame.record->body, frame.cluster});
        for (const AttachedShape& attached : frame.record->details->shapes) {
            if (!attached.collision) continue;
            CollisionOverlay::CarriedShape shape{
                make_collision_shape(object, attached, options_), frame.link, {}, {}};
            shape.link_from_shape = to_coal(frame.link_from_frame * shape.shape.frame_from_shape);
            if (shape.link < 0) shape.still_bounds = bounds_of(shape.shape, shape.link_from_shape);
            overlay_->shapes_.push_back(shape);
        }
    }

    std::int32_t base_object(FrameId id) const {
        const auto number = static_cast<std::size_t>(layout_.index_of(id));
        return number < layout_.size() && layout_.ids[number] == id ? rules_.object_of[number] : -1;
    }
    void hide(FrameId id) {
        if (const std::int32_t object = base_object(id); object >= 0) overlay_->hidden_[object] = 1;
    }
    const CollisionOverlay::Object* own_object(FrameId id) const {
        for (const CollisionOverlay::Object& object : overlay_->objects_)
            if (object.id == id) return &object;
        return nullptr;
    }

    // Pairs with changed rules. The rules of a new frame's pairs are new, too.
    bool change_pairs() {
        SceneGraph::for_each_changed_pair(
            rules_.scene, scene_, [&](FrameId a, FrameId b, const Name* before, const Name* after) {
            if (!before || !after) changed_.push_back({a, b, 0});
        });
        overlay_->largest_margin_ = rules_.largest_margin;
        const bool same_options = &options_ == &rules_.options;
        if (!same_options ||
            std::any_of(frames_.begin(), frames_.end(), [](const Frame& f) { return f.is_new; }))
            compare_margins();
        for (std::size_t i = 0; i < changed_.size(); ++i) {
            changed_[i].margin = class_from_scratch(changed_[i]);
            if (!take_apart(changed_[i])) return false;
        }
        return true;
    }

    void compare_margins() {
        margins_ = margins_by_id(scene_, options_);
        std::vector<CollisionWorld::Base::MarginOfPair> different;
        std::set_symmetric_difference(margins_.begin(), margins_.end(), base_.pair_margins.begin(),
                                      base_.pair_margins.end(), std::back_inserter(different));
        for (const auto& pair : different) changed_.push_back({pair.a, pair.b, 0});
        overlay_->largest_margin_ = largest_margin_of(options_);
        same_margins_ = false;
    }

    MarginClass class_from_scratch(const Override& pair) {
        const FrameRecord *a = record_of(pair.a), *b = record_of(pair.b);
        if (!a || !b || a->body == b->body || scene_.is_allowed(pair.a, pair.b)) return 0;
        const auto& known_margins = same_margins_ ? base_.pair_margins : margins_;
        const auto match = std::lower_bound(known_margins.begin(), known_margins.end(), pair,
                                            [](const auto& x, const Override& y) {
            return std::pair(x.a, x.b) < std::pair(y.a, y.b);
        });
        if (match == known_margins.end() || match->a != pair.a || match->b != pair.b) return 1;
        return std::isinf(match->margin) ? MarginClass{0} : class_of(match->margin);
    }

    // The record of a frame in the new version, or null.
    const FrameRecord* record_of(FrameId id) {
        if (const Frame* frame = find(id)) return frame->record;
        const auto number = static_cast<std::size_t>(layout_.index_of(id));
        return is_removed(id) || number >= layout_.size() || layout_.ids[number] != id
                   ? nullptr
                   : &scene_.record(id);
    }

    MarginClass class_of(double margin) {
        const std::vector<double>& known_margins = *overlay_->margins_;
        const auto number = static_cast<MarginClass>(
            std::find(known_margins.begin() + 1, known_margins.end(), margin) -
            known_margins.begin());
        if (number == known_margins.size()) {
            std::vector<double> more = known_margins;
            more.push_back(margin);
            overlay_->own_margins_ = std::move(more);
            overlay_->margins_ = &overlay_->own_margins_;
        }
        return number;
    }

    // Make one of the pair an own object, unless the base has the same rule or one has no shape.
    bool take_apart(const Override& pair) {
        if (own_object(pair.a) || own_object(pair.b)) return true;
        const std::int32_t a = base_object(pair.a), b = base_object(pair.b);
        if (a < 0 || b < 0 || overlay_->hidden_[a] || overlay_->hidden_[b]) return true;
        const MarginClass before = rules_.exception_class(a, b);
        if (before == pair.margin || overlay_->objects_.size() >= most_objects)
            return before == pair.margin;
        const bool a_stands = base_.model().frame_link[rules_.object_frame[a]] < 0;
        const FrameId id = a_stands ? pair.a : pair.b;
        hide(id);
        Frame frame{id, &scene_.record(id), false, false, false, -1, id, {}};
        place(frame);
        add_object(frame);
        return true;
    }

    // Frames are numbered by ascending ids.
    void number_frames() {
        std::vector<FrameId> added;
        for (const Frame& frame : frames_)
            if (frame.is_new) added.push_back(frame.id);
        const auto smaller = [](const std::vector<FrameId>& ids, FrameId id) {
            return std::count_if(ids.begin(), ids.end(),
                                 [&](FrameId other_id) { return other_id < id; });
        };
        const auto number = [&](FrameId id) {
            return static_cast<std::int32_t>(layout_.index_of(id) + smaller(added, id) -
                                             smaller(removed_, id));
        };
        for (CollisionOverlay::Object& object : overlay_->objects_)
            object.frame = number(object.id);
        overlay_->removes_frames_ = !removed_.empty();
        overlay_->changes_numbers_ = !removed_.empty() || !added.empty();
        if (!overlay_->changes_numbers_) return;
        for (const std::int32_t frame : rules_.object_frame)
            overlay_->frame_numbers_.push_back(number(layout_.ids[frame]));
    }

    void fill_table() {
        const std::size_t count = rules_.object_count();
        std::vector<MarginClass>& table = overlay_->table_;
        table.resize(overlay_->objects_.size() * count);
        for (std::size_t own = 0; own < overlay_->objects_.size(); ++own) {
            const CollisionOverlay::Object& object = overlay_->objects_[own];
            MarginClass* row = table.data() + own * count;
            if (object.base_object >= 0) rules_.fill_row(object.base_object, object.cluster, row);
            else fill_new_row(object, row);
            for (const Override& pair : changed_) {
                if (pair.a != object.id && pair.b != object.id) continue;
                const std::int32_t other_id = base_object(pair.a == object.id ? pair.b : pair.a);
                if (other_id >= 0 && rules_.cluster_of(other_id) != object.cluster)
                    row[other_id] = pair.margin;
            }
            for (std::size_t other_id = 0; other_id < count; ++other_id)
                if (overlay_->hidden_[other_id]) row[other_id] = 0;
        }
    }

    // The base has no rule of a frame that is new, or had no shape: earlier permissions count too.
    void fill_new_row(const CollisionOverlay::Object& object, MarginClass* row) {
        for (std::size_t other_id = 0; other_id < rules_.object_count(); ++other_id) {
            const std::int32_t frame = rules_.object_frame[other_id];
            row[other_id] = rules_.cluster[frame] == object.cluster
                                ? MarginClass{0}
                                : class_of_pair(object.id, layout_.ids[frame]);
        }
    }
    MarginClass class_of_pair(FrameId a, FrameId b) {
        return class_from_scratch({std::min(a, b), std::max(a, b), 0});
    }

    MarginClass class_of_own(const CollisionOverlay::Object& a, const CollisionOverlay::Object& b) {
        if (a.cluster == b.cluster) return 0;
        for (const Override& pair : changed_)
            if (std::minmax(a.id, b.id) ==
                std::pair<const FrameId&, const FrameId&>(pair.a, pair.b))
                return pair.margin;
        if (a.base_object >= 0 && b.base_object >= 0)
            return rules_.exception_class(a.base_object, b.base_object);
        return class_of_pair(a.id, b.id);
    }

    void pair_shapes() {
        const std::vector<CollisionOverlay::CarriedShape>& shapes = overlay_->shapes_;
        const auto comes_first = [&](std::size_t i, std::size_t j) {
            const auto a = static_cast<std::uint32_t>(shapes[i].link),
                       b = static_cast<std::uint32_t>(shapes[j].link);
            return a != b ? a < b : object_of(i).frame < object_of(j).frame;
        };
        for (std::size_t i = 0; i < shapes.size(); ++i)
            for (std::size_t j = i + 1; j < shapes.size(); ++j) {
                if (shapes[i].shape.object == shapes[j].shape.object) continue;
                const MarginClass margin = class_of_own(object_of(i), object_of(j));
                const auto a = static_cast<std::int32_t>(i), b = static_cast<std::int32_t>(j);
                if (margin != 0)
                    overlay_->pairs_.push_back(comes_first(i, j)
                                                   ? CollisionOverlay::Pair{a, b, margin}
                                                   : CollisionOverlay::Pair{b, a, margin});
            }
    }
    const CollisionOverlay::Object& object_of(std::size_t shape) const {
        return overlay_->objects_[overlay_->shapes_[shape].shape.object];
    }

    const CollisionWorld::Base& base_;
    const CollisionWorld::Rules& rules_;
    const Layout& layout_;
    const SceneGraph& scene_;
    const CollisionOptions& options_;
    std::unique_ptr<CollisionOverlay> overlay_;
    std::vector<Frame> frames_;      // changed, new or carried
    std::vector<FrameId> removed_;   // ascending
    std::vector<Override> changed_;  // pairs whose rule may have changed
    bool same_margins_ = true;
    // If they differ from those of the base.
    std::vector<CollisionWorld::Base::MarginOfPair> margins_;
};

std::unique_ptr<const CollisionOverlay> CollisionOverlay::find(const CollisionWorld::Base& base,
                                                               const SceneGraph& scene,
                                                               const CollisionOptions& options) {
    const CollisionOptions& base_options = base.rules.options;
    if (&options != &base_options &&
        (options.margin != base_options.margin || options.level != base_options.level ||
         needs_depth(options) != needs_depth(base_options)))
        return nullptr;
    return OverlayBuilder(base, scene, options).build();
}

void CollisionOverlay::place(const std::vector<coal::Transform3s>& link_pose, Data& scratch) const {
    scratch.own_pose.resize(shapes_.size());
    scratch.own_bounds.resize(shapes_.size());
    for (std::size_t own = 0; own < shapes_.size(); ++own) {
        const CarriedShape& shape = shapes_[own];
        if (shape.link < 0) continue;
        carry(link_pose[shape.link], shape.link_from_shape, scratch.own_pose[own]);
        scratch.own_bounds[own] = bounds_of(shape.shape, scratch.own_pose[own]);
    }
}

}  // namespace tmkit
