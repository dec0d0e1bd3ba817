// Internal types of the collision sources: the shapes of a scene, the rules for pairs, the model of
// a view.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "collision/collision_geometry.hpp"
#include "tmkit/collision_world.hpp"

namespace tmkit {

using MarginClass = std::uint16_t;  // 0: the pair is not checked; k: its margin is margins[k]

// One collision shape of the scene.
struct CollisionShape : CollisionGeometry {
    std::int32_t object;    // number of its frame among the frames with shapes
    Pose frame_from_shape;  // of the solid, whose origin may differ from the shape's
};

// A collision shape at its pose, for the narrow phase. The order of two of them may change the last
// bits.
struct PlacedShape {
    const CollisionShape* shape;
    const coal::Transform3s* pose;  // root_from_shape
    std::int32_t frame;             // number of its frame
};

// Return whether the signed distance of two shapes is at most the margin.
bool in_contact(const PlacedShape& a, const PlacedShape& b, double margin,
                CollisionView::Scratch::Data& scratch);
// Start values of GJK for a pair: its last result.
struct WarmStart {
    std::int32_t a = -1, b = -1;
    coal::Vec3s ray = coal::Vec3s::Zero();
    coal::support_func_guess_t hint = coal::support_func_guess_t::Zero();
    float direction[3]{};  // the ray in the axes of the second, of length 1; or zero
};
// Return at most the margin for a contact, more than the limit for a larger distance, else a value
// between the two. The ray then separates convex shapes by that distance, in the axes of the first.
double distance_within(const PlacedShape& a, const PlacedShape& b, double margin, double limit,
                       WarmStart& warm, CollisionView::Scratch::Data& scratch);
// Their signed distance, point and normal. A distance of at least `limit` may be returned as
// infinite.
Contact measure(const PlacedShape& a, const PlacedShape& b, double margin,
                double limit = std::numeric_limits<double>::infinity());
// Add their contact, if any.
void gather(const PlacedShape& a, const PlacedShape& b, double margin,
            CollisionView::Scratch::Data& scratch, std::vector<Contact>& contacts);

// One contact for each pair of frames, the deepest, in frame order.
std::vector<Contact> deepest_of_each(std::vector<Contact> contacts);

// The collision shape of an attached shape on an object. Throws Error(shape).
CollisionShape make_collision_shape(std::int32_t object, const AttachedShape& attached,
                                    const CollisionOptions& options);

// The largest margin of any pair, at least 0.
double largest_margin_of(const CollisionOptions& options);
// Return whether some pair may penetrate.
bool needs_depth(const CollisionOptions& options);
// Throws Error(configuration) for a margin that is not finite or two margins for one pair.
void check_options(const CollisionOptions& options);

// Shapes of a model, and the margins of their classes.
struct CollisionShapes {
    // By object: frame number, ascending except for those of an overlay.
    std::vector<std::int32_t> object_frame;
    std::vector<CollisionShape> shapes;  // by object
    std::vector<double> margins;         // by margin class; [0] is unused, [1] is the default
    double largest_margin = 0.0;
    std::size_t joint_count = 0;  // of the scene

    std::size_t object_count() const { return object_frame.size(); }
};

struct CollisionWorld::Rules : CollisionShapes {
    Rules(SceneGraph scene, CollisionOptions options);

    SceneGraph scene;
    CollisionOptions options;
    const Layout* layout;
    // By frame: root frame of its rigid cluster.
    std::vector<FrameId> cluster;
    std::vector<std::int32_t> object_of;  // by frame: its object, -1 without a collision shape

    FrameId cluster_of(std::int32_t object) const { return cluster[object_frame[object]]; }
    MarginClass margin_class(std::int32_t object_a, std::int32_t object_b) const;
    // The class of two objects that are not rigidly joined.
    MarginClass exception_class(std::int32_t object_a, std::int32_t object_b) const;
    // Fill row[b] with the class of the pair (object, b) for every object b, as if `object` were
    // rigidly joined with the cluster. O(objects + exceptions of the row).
    void fill_row(std::int32_t object, FrameId cluster, MarginClass* row) const;

private:
    struct Exception {  // both orders are stored, sorted
        std::int32_t a, b;
        MarginClass margin;
        bool operator<(const Exception& other) const {
            return a != other.a ? a < other.a : b < other.b;
        }
    };
    void collect_shapes();
    void find_rigid_clusters();
    void collect_exceptions();
    void sort_exceptions();
    MarginClass class_of(double margin);
    std::vector<Exception> exceptions_;
    std::vector<std::int32_t> first_exception_;  // by object, offsets
};

// root_from_shape of a shape on a link.
inline void carry(const coal::Transform3s& link, const coal::Transform3s& link_from_shape,
                  coal::Transform3s& pose) {
    pose.rotation().noalias() = link.getRotation() * link_from_shape.getRotation();
    pose.translation().noalias() = link.getRotation() * link_from_shape.getTranslation();
    pose.translation() += link.getTranslation();
}

// A static tree of boxes in preorder: a node's first child follows it, and `skip` leads past its
// subtree.
class BoundsTree {
public:
    explicit BoundsTree(const std::vector<Bounds>& boxes);

    template <class Visit> bool visit(const Bounds& query, Visit&& visit_leaf) const {
        for (std::int32_t index = 0, end = static_cast<std::int32_t>(nodes_.size()); index < end;) {
            const Node& node = nodes_[index];
            if (!node.bounds.overlap(query)) {
                index = node.skip;
                continue;
            }
            if (node.leaf >= 0 && visit_leaf(node.leaf)) return true;
            ++index;
        }
        return false;
    }

    // In the order in which they are visited.
    std::vector<std::int32_t> leaves() const {
        std::vector<std::int32_t> found;
        for (const Node& node : nodes_)
            if (node.leaf >= 0) found.push_back(node.leaf);
        return found;
    }

private:
    struct Node {
        Bounds bounds;
        std::int32_t leaf;  // number of the box, -1 for an inner node
        std::int32_t skip;
    };
    void build(const std::vector<Bounds>& boxes, std::int32_t* first, std::int32_t* last);
    std::vector<Node> nodes_;
};

struct CollisionView::Model {
    Model(const CollisionWorld::Rules& rules, const std::vector<bool>& moves, const double* base);

    // A set of rigidly joined frames, carried by one moving joint whose axis is the link's own z.
    struct Link {
        std::int32_t parent;  // -1: the world
        std::int32_t q_index;
        bool prismatic;
        double multiplier, offset;
        coal::Transform3s parent_from_joint;
    };
    struct Placed {
        std::int32_t shape;
        std::int32_t link;  // -1: the world
        coal::Transform3s link_from_shape;
    };
    struct MovingPair {
        std::int32_t a, b;  // numbers of placed shapes
        MarginClass margin;
    };
    struct Candidate {
        std::int32_t a, b;  // numbers of placed shapes
        double margin;
    };

    // The moving shapes of another model, among other static shapes.
    Model(const Model& moving, std::unique_ptr<const CollisionShapes> shapes,
          const std::vector<Placed>& still);

    const CollisionWorld::Rules* rules;
    std::unique_ptr<const CollisionShapes> own_shapes;  // null if they are those of the rules
    const CollisionShapes* shapes;
    std::vector<Link> links;
    // By frame: the link that carries it, -1 for the world, -2 for a link without shapes.
    std::vector<std::int32_t> frame_link;
    std::vector<Pose> link_from_frame;  // by frame; undefined if frame_link is -2
    std::vector<Placed> placed;         // moving shapes first, then static ones
    std::int32_t moving_count = 0;
    std::vector<coal::Transform3s> still_pose;  // by static shape
    std::vector<Bounds> still_bounds;
    BoundsTree tree;
    std::vector<std::int32_t> row;   // by moving shape: its row of `table`
    std::vector<MarginClass> table;  // rows x objects
    std::vector<MovingPair> moving_pairs;

    // Compute forward kinematics and bounds of all moving shapes; also in steps.
    void place(const double* q, Scratch::Data& scratch) const;
    void place_links(const double* q, std::int32_t first, std::int32_t end,
                     Scratch::Data& scratch) const;
    void place_shape(std::int32_t moving, Scratch::Data& scratch) const;
    // The last link that carries two moving shapes, or -1.
    std::int32_t common_link(std::int32_t a, std::int32_t b) const;

    const CollisionShape& collision_shape(std::int32_t number) const {
        return shapes->shapes[placed[number].shape];
    }
    const coal::Transform3s& pose(std::int32_t number, const Scratch::Data& scratch) const;
    const Bounds& bounds(std::int32_t number, const Scratch::Data& scratch) const;
    FramePair frames(const Candidate& candidate) const;

    // Visit the pairs whose boxes are within their margin, after place(); stops if visit returns
    // true.
    template <class Visit> bool visit_variable(const Scratch::Data& scratch, Visit&& visit) const;
    template <class Visit> bool visit_constant(const Scratch::Data& scratch, Visit&& visit) const;

    PlacedShape shape(std::int32_t number, const Scratch::Data& scratch) const {
        return {&collision_shape(number), &pose(number, scratch),
                shapes->object_frame[collision_shape(number).object]};
    }
    bool in_contact(const Candidate& c, Scratch::Data& scratch) const {
        return tmkit::in_contact(shape(c.a, scratch), shape(c.b, scratch), c.margin, scratch);
    }
    Contact measure(const Candidate& c, const Scratch::Data& scratch,
                    double limit = std::numeric_limits<double>::infinity()) const {
        return tmkit::measure(shape(c.a, scratch), shape(c.b, scratch), c.margin, limit);
    }
    // Replace `best` by the contact of a candidate that is nearer.
    void keep_nearest(const Candidate& candidate, const Scratch::Data& scratch,
                      std::optional<Contact>& best) const;

private:
    void stand_still();
    void build_links(const std::vector<bool>& moves, const double* base);
    void build_pairs();
};

struct CollisionView::Scratch::Data {
    std::vector<coal::Transform3s> link_pose, shape_pose;  // by link; by moving shape
    std::vector<Bounds> shape_bounds;
    std::vector<coal::Transform3s> own_pose;  // by own shape of an overlay
    std::vector<Bounds> own_bounds;
    NarrowPhaseWorkspace narrow;
    // Created on demand; the pointer deletes an incomplete type.
    std::shared_ptr<Lanes> lanes;
};

inline const coal::Transform3s& CollisionView::Model::pose(std::int32_t number,
                                                           const Scratch::Data& scratch) const {
    return number < moving_count ? scratch.shape_pose[number] : still_pose[number - moving_count];
}

inline const Bounds& CollisionView::Model::bounds(std::int32_t number,
                                                  const Scratch::Data& scratch) const {
    return number < moving_count ? scratch.shape_bounds[number]
                                 : still_bounds[number - moving_count];
}

template <class Visit>
bool CollisionView::Model::visit_variable(const Scratch::Data& scratch, Visit&& visit) const {
    const std::vector<double>& margins = shapes->margins;
    for (std::int32_t a = moving_count - 1; a >= 0; --a) {  // outer links are in contact more often
        const MarginClass* of_object = table.data() + std::size_t(row[a]) * shapes->object_count();
        const Bounds query = inflated(scratch.shape_bounds[a], shapes->largest_margin);
        const bool stopped = tree.visit(query, [&](std::int32_t still) {
            const std::int32_t b = moving_count + still;
            const MarginClass margin = of_object[collision_shape(b).object];
            return margin != 0 && visit(Candidate{a, b, margins[margin]});
        });
        if (stopped) return true;
    }
    for (const MovingPair& pair : moving_pairs) {
        const double margin = margins[pair.margin];
        const Bounds query = inflated(scratch.shape_bounds[pair.a], std::max(margin, 0.0));
        if (query.overlap(scratch.shape_bounds[pair.b]) && visit(Candidate{pair.a, pair.b, margin}))
            return true;
    }
    return false;
}

template <class Visit>
bool CollisionView::Model::visit_constant(const Scratch::Data& scratch, Visit&& visit) const {
    const auto offer = [&](std::int32_t a, std::int32_t b) {
        const MarginClass margin =
            rules->margin_class(collision_shape(a).object, collision_shape(b).object);
        return margin != 0 && visit(Candidate{a, b, rules->margins[margin]});
    };
    for (std::int32_t a = 0; a < moving_count; ++a)
        for (std::int32_t b = a + 1; b < moving_count && placed[b].link == placed[a].link; ++b)
            if (offer(a, b)) return true;
    const std::int32_t count = static_cast<std::int32_t>(placed.size());
    for (std::int32_t a = moving_count; a < count; ++a) {
        const Bounds query = inflated(bounds(a, scratch), rules->largest_margin);
        if (tree.visit(query, [&](std::int32_t still) {
            return moving_count + still > a && offer(a, moving_count + still);
        }))
            return true;
    }
    return false;
}

}  // namespace tmkit
