// Model of a view: links, their shapes, the tree of static shapes, and the pairs that can change.
#include "collision/collision_model.hpp"

#include <algorithm>
#include <cmath>

namespace tmkit {

BoundsTree::BoundsTree(const std::vector<Bounds>& boxes) {
    std::vector<std::int32_t> leaves(boxes.size());
    for (std::size_t i = 0; i < leaves.size(); ++i) leaves[i] = static_cast<std::int32_t>(i);
    nodes_.reserve(2 * boxes.size());
    if (!leaves.empty()) build(boxes, leaves.data(), leaves.data() + leaves.size());
}

// Halves the boxes at the median centre along the longest side. Ties are broken by number, so the
// tree is reproducible.
void BoundsTree::build(const std::vector<Bounds>& boxes, std::int32_t* first, std::int32_t* last) {
    Bounds all = boxes[*first];
    for (const std::int32_t* i = first; i != last; ++i) all += boxes[*i];
    const std::size_t index = nodes_.size();
    nodes_.push_back({all, last - first == 1 ? *first : -1, 0});
    if (last - first > 1) {
        const Eigen::Index side = longest_side(all);
        std::int32_t* middle = first + (last - first) / 2;
        std::nth_element(first, middle, last, [&](std::int32_t a, std::int32_t b) {
            const double center_a = boxes[a].min_[side] + boxes[a].max_[side];
            const double center_b = boxes[b].min_[side] + boxes[b].max_[side];
            return center_a != center_b ? center_a < center_b : a < b;
        });
        build(boxes, first, middle);
        build(boxes, middle, last);
    }
    nodes_[index].skip = static_cast<std::int32_t>(nodes_.size());
}

CollisionView::Model::Model(const CollisionWorld::Rules& r, const std::vector<bool>& moves,
                            const double* base)
    : rules(&r), shapes(&r), tree({}) {
    build_links(moves, base);
    stand_still();
    build_pairs();
}

CollisionView::Model::Model(const Model& moving, std::unique_ptr<const CollisionShapes> own,
                            const std::vector<Placed>& still)
    : rules(moving.rules), own_shapes(std::move(own)), shapes(own_shapes.get()),
      links(moving.links),
      placed(moving.placed.begin(), moving.placed.begin() + moving.moving_count),
      moving_count(moving.moving_count), tree({}), row(moving.row) {
    placed.insert(placed.end(), still.begin(), still.end());
    stand_still();
}

void CollisionView::Model::stand_still() {
    for (std::size_t i = moving_count; i < placed.size(); ++i) {
        still_pose.push_back(placed[i].link_from_shape);
        still_bounds.push_back(
            bounds_of(shapes->shapes[placed[i].shape], placed[i].link_from_shape));
    }
    tree = BoundsTree(still_bounds);
}

void CollisionView::Model::build_links(const std::vector<bool>& moves, const double* base) {
    const Layout& layout = *rules->layout;
    const std::size_t n = layout.size();
    // Frames with a shape at or below them: links without any are omitted.
    std::vector<bool> carries(n, false);
    for (const std::int32_t frame : rules->object_frame) carries[frame] = true;
    const std::vector<std::int32_t>& order = layout.tree().order;
    for (auto frame = order.rbegin(); frame != order.rend(); ++frame)
        if (carries[*frame] && layout.parent[*frame] >= 0) carries[layout.parent[*frame]] = true;

    frame_link.assign(n, -1);
    link_from_frame.resize(n);
    for (const std::int32_t frame : order) {
        const std::int32_t parent = layout.parent[frame], entry = layout.q_index[frame];
        const std::int32_t parent_link = parent < 0 ? -1 : frame_link[parent];
        const Pose parent_pose = parent < 0 ? Pose{} : link_from_frame[parent];
        if (entry < 0 || !moves[entry]) {
            frame_link[frame] = parent_link;
            if (parent >= 0 && parent_link != -2)
                link_from_frame[frame] = parent_pose * layout.edge(frame, base);
            continue;
        }
        if (!carries[frame]) {
            frame_link[frame] = -2;
            continue;
        }
        const Pose frame_from_joint = from_z_to(layout.axis[frame]);
        frame_link[frame] = static_cast<std::int32_t>(links.size());
        link_from_frame[frame] = frame_from_joint.inverse();
        links.push_back({parent_link, entry, layout.type[frame] == JointType::prismatic,
                         layout.multiplier[frame], layout.offset[frame],
                         to_coal(parent_pose * layout.pose[frame] * frame_from_joint)});
    }
    for (std::size_t i = 0; i < rules->shapes.size(); ++i) {
        const CollisionShape& shape = rules->shapes[i];
        const std::int32_t frame = rules->object_frame[shape.object];
        placed.push_back({static_cast<std::int32_t>(i), frame_link[frame],
                          to_coal(link_from_frame[frame] * shape.frame_from_shape)});
    }
    // Moving shapes by link, then static ones; within both by number.
    std::stable_sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) {
        return static_cast<std::uint32_t>(a.link) < static_cast<std::uint32_t>(b.link);
    });
    for (const Placed& p : placed) moving_count += p.link >= 0;
}

void CollisionView::Model::build_pairs() {
    const std::size_t objects = rules->object_count();
    std::int32_t last_object = -1;
    for (std::int32_t a = 0; a < moving_count; ++a) {
        const std::int32_t object = collision_shape(a).object;
        if (object != last_object) {
            last_object = object;
            table.resize(table.size() + objects);
            rules->fill_row(object, rules->cluster_of(object),
                            table.data() + table.size() - objects);
        }
        row.push_back(static_cast<std::int32_t>(table.size() / objects) - 1);
    }
    for (std::int32_t a = 0; a < moving_count; ++a)
        for (std::int32_t b = a + 1; b < moving_count; ++b) {
            const MarginClass margin =
                table[std::size_t(row[a]) * objects + collision_shape(b).object];
            if (margin != 0 && placed[a].link != placed[b].link)
                moving_pairs.push_back({a, b, margin});
        }
}

void CollisionView::Model::place(const double* q, Scratch::Data& scratch) const {
    place_links(q, 0, static_cast<std::int32_t>(links.size()), scratch);
    for (std::int32_t i = 0; i < moving_count; ++i) place_shape(i, scratch);
}

void CollisionView::Model::place_shape(std::int32_t i, Scratch::Data& scratch) const {
    carry(scratch.link_pose[placed[i].link], placed[i].link_from_shape, scratch.shape_pose[i]);
    scratch.shape_bounds[i] = bounds_of(collision_shape(i), scratch.shape_pose[i]);
}

std::int32_t CollisionView::Model::common_link(std::int32_t a, std::int32_t b) const {
    std::int32_t first = placed[a].link, second = placed[b].link;
    while (first != second) {  // parents have smaller numbers
        std::int32_t& later = first > second ? first : second;
        later = links[later].parent;
    }
    return first;
}

void CollisionView::Model::place_links(const double* q, std::int32_t first, std::int32_t end,
                                       Scratch::Data& scratch) const {
    for (std::int32_t i = first; i < end; ++i) {
        const Link& link = links[i];
        const double value = link.multiplier * q[link.q_index] + link.offset;
        coal::Transform3s& pose = scratch.link_pose[i];
        if (link.parent < 0) pose = link.parent_from_joint;
        else carry(scratch.link_pose[link.parent], link.parent_from_joint, pose);
        if (link.prismatic) {
            pose.translation() += value * pose.getRotation().col(2);
        } else {
            const auto [s, c] = sine_cosine(value);
            const coal::Vec3s x = pose.getRotation().col(0), y = pose.getRotation().col(1);
            pose.rotation().col(0) = c * x + s * y;
            pose.rotation().col(1) = c * y - s * x;
        }
    }
}

FramePair CollisionView::Model::frames(const Candidate& candidate) const {
    const std::int32_t a = shapes->object_frame[collision_shape(candidate.a).object];
    const std::int32_t b = shapes->object_frame[collision_shape(candidate.b).object];
    return a < b ? FramePair{a, b} : FramePair{b, a};
}

// --- views

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
    if (bounds(candidate.a, scratch).distance(bounds(candidate.b, scratch)) > std::max(limit, 0.0))
        return;
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
    model_->place(q, scratch.data());
    FramePair contact_pair;
    Scratch::Data& data = scratch.data();
    model_->visit_variable(data, [&](const Model::Candidate& candidate) {
        if (!model_->in_contact(candidate, data)) return false;
        contact_pair = model_->frames(candidate);
        return true;
    });
    return contact_pair;
}

}  // namespace tmkit
