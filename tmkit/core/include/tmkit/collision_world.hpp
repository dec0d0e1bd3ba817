// Collision checking of one version of a scene.
//
// A CollisionWorld collects the collision shapes of all frames and selects the pairs to check, with
// their margins. A CollisionView restricts the pairs to those that some joints can change. Frames
// between two moving joints form one *link*. Static shapes are in a tree of axis-aligned boxes, in
// which moving shapes are looked up. Pairs of moving shapes are in a list. Pairs whose boxes
// overlap go through a separating-axis test, and then to coal's GJK. A batch of configurations
// passes the first two stages eight at a time (src/collision/lanes.hpp).
//
// Levels. At the level `exact` a mesh is its triangles, at `hull` its convex hull, at `box` its
// bounding box in its own axes. Point clouds and height fields are unchanged at `exact` and `hull`,
// and boxes at `box`. All other shapes are unchanged at every level. A shape may set its own level.
// A configuration that is free at a coarser level is free at a finer one.
//
// Pairs. Two frames with collision shapes are checked unless they are on one body, the scene allows
// the pair, or they are *rigidly joined*, that is, connected by fixed edges alone. An edge whose
// lower frame is listed as movable joins nothing: a block on a table, as its child, is still
// checked against the table. Pairs whose relative pose no joint can change are *constant*: they are
// checked once and the result is stored. Every root is at the identity.
//
// Margin. A pair is in contact if its signed distance is at most its margin. With margin 0,
// touching is contact, to GJK's tolerance of one micrometre. A negative margin permits penetration
// to that depth.
//
// Versions. A world can be moved to another version. It keeps its structures, hides the changed
// objects in them, and holds the new objects beside them (src/collision/collision_overlay.hpp).
//
// Threads. A world and a view are immutable and may be used by any thread. A Scratch belongs to one
// thread at a time. Results do not depend on earlier queries.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tmkit/scene_graph.hpp"

namespace tmkit {

struct PairMargin {
    std::string frame_a, frame_b;
    // [m]; negative: permitted penetration depth; minus infinity: never checked
    double margin = 0.0;
};

struct CollisionOptions {
    std::vector<std::string> movable;      // frames whose edge later edits may change
    double margin = 0.0;                   // [m]; negative: permitted penetration depth
    std::vector<PairMargin> pair_margins;  // margins that replace the default for checked pairs
    CollisionLevel level = CollisionLevel::hull;  // of shapes without their own level
};

// Options for another version of a scene. Omitted options keep their value, without removed frames.
struct CollisionChanges {
    std::optional<std::vector<std::string>> movable;
    std::optional<double> margin;
    std::optional<std::vector<PairMargin>> pair_margins;
};

// Two frames in contact. The point is midway between the nearest points and the normal points from
// a to b, both in root axes. The distance is negative for penetration.
struct Contact {
    std::int32_t frame_a = -1, frame_b = -1;  // frame numbers, a < b
    double distance = 0.0, margin = 0.0;      // [m]
    Vector3 point{}, normal{};
};

// Two frames by number; the default is no pair.
struct FramePair {
    std::int32_t a = -1, b = -1;
    explicit operator bool() const { return a >= 0; }
    bool operator==(const FramePair&) const = default;
};

class CollisionWorld;

// Checked pairs that can change while some joints move and all others are fixed.
class CollisionView {
public:
    class Scratch;
    struct Model;  // opaque

    // For a search that moves only some entries of the configuration; `base` holds the values of
    // the others. Check the base with the world first: the view excludes the pairs that cannot
    // change.
    CollisionView(const CollisionWorld& world, const std::vector<std::int32_t>& entries,
                  const double* base);
    explicit CollisionView(std::unique_ptr<const Model> model);
    CollisionView(CollisionView&&) noexcept;
    ~CollisionView();

    Scratch scratch() const;

    // Return the first pair in contact, or none. `q` is a full configuration; only its moving
    // entries are read.
    FramePair find_collision(const double* q, Scratch& scratch) const;
    // Prepare up to `together` configurations at once. find_in_batch() then returns, for each by
    // number, a pair in contact, or none. Other queries may be made in between.
    static constexpr std::size_t together = 8;
    void check_batch(const double* const* q, int count, Scratch& scratch) const;
    FramePair find_in_batch(const double* q, int number, Scratch& scratch) const;

    // Set by number a pair of each of up to `together` configurations that certainly overlaps:
    // balls within its shapes do. Much faster than a check, but does not find all contacts.
    void find_deep(const double* const* q, int count, FramePair* pairs, Scratch& scratch) const;

    // Return a pair that is not proved to keep its margin on the straight motion between two free
    // configurations, or none if the motion is free. With a resolution, the motion is free if it is
    // proved free, or if all samples at that spacing are. An end that is not known to be free is
    // proved with the motion, which needs a resolution of 0. Adds to the number of checks.
    FramePair find_unproved(const double* q0, const double* q1, Scratch& scratch,
                            std::int64_t& checks, double resolution = 0.0,
                            bool end_is_free = true) const;

    const Model& model() const { return *model_; }

private:
    std::unique_ptr<const Model> model_;
};

// Workspace of one thread; never shared.
class CollisionView::Scratch {
public:
    explicit Scratch(const Model& model);
    Scratch(Scratch&&) noexcept;
    ~Scratch();
    struct Data;
    struct Lanes;
    Data& data() { return *data_; }
    const Data& data() const { return *data_; }

private:
    std::unique_ptr<Data> data_;
};

struct EdgeCollision {
    double fraction = 0.0;  // fraction of the motion from q0 to q1
    std::vector<double> q;
    FramePair pair;
};

class CollisionWorld {
public:
    // Throws unknown_name for an unknown frame, Error(configuration) for a margin that is not
    // finite or two margins for one pair, and Error(shape) for a mesh without a hull. O(frames +
    // moving frames x frames), beyond the hulls, which are computed once a shape and process.
    CollisionWorld(SceneGraph scene, CollisionOptions options);
    CollisionWorld(CollisionWorld&&) noexcept;
    ~CollisionWorld();
    CollisionWorld& operator=(const CollisionWorld&) = delete;

    // Return the world of another version of the scene. Its results are those of a new world; it
    // shares the structures of unchanged objects. O(changes log n + objects) for few changes since
    // the last computed version, else the cost of a new world. Throws as the constructor does.
    CollisionWorld moved_to(const SceneGraph& scene, const CollisionChanges& changes = {}) const;
    // Return whether the two worlds share their structures.
    bool shares_with(const CollisionWorld& other) const;

    // Return whether straight motions between full configurations, proved free in a world of
    // another version, are proved free here by checking the changes alone. False also if this
    // cannot be decided. O(rows x changes).
    bool still_free(const CollisionWorld& before, const double* const* rows,
                    std::size_t count) const;
    // Frames of either version that may collide otherwise than in a world of another version; none
    // for too many changes.
    std::optional<std::vector<FrameId>> changed_since(const CollisionWorld& before) const;

    const SceneGraph& scene() const;
    const CollisionOptions& options() const;
    std::size_t joint_count() const;
    std::string frame_name(std::int32_t frame) const;

    // Every checked pair with its margin, in frame order. O(frames^2).
    std::vector<Contact> pairs() const;

    // Return the first checked pair in contact at q (all entries are read), or none.
    FramePair find_collision(const double* q) const;
    bool in_collision(const double* q) const { return static_cast<bool>(find_collision(q)); }
    // Check at most CollisionView::together configurations; faster for configurations that are near
    // each other.
    void in_collisions(const double* const* q, int count, bool* results) const;
    // Return an order of configurations, row by row, in which successive ones are mostly near in
    // the joints that carry most. O(count).
    std::vector<std::uint32_t> order_by_nearness(const double* rows, std::size_t count) const;
    std::vector<Contact> contacts(const double* q) const;
    std::optional<Contact> nearest(const double* q) const;
    // Return the contact of one pair at q, at any distance.
    Contact contact(FramePair pair, const double* q) const;
    // Return the nearest or deepest contact between two sets of frames, checked or not. Its margin
    // is minus infinity if the pair is not checked. frame_a is of the first set. None if one side
    // has no collision shape.
    std::optional<Contact> between(const std::vector<std::int32_t>& frames_a,
                                   const std::vector<std::int32_t>& frames_b,
                                   const double* q) const;

    // Check the straight motion from q0 to q1, both ends included, at steps of at most `resolution`
    // [rad or m] in the maximum norm. `edge_free` tests the middle first and bisects, which finds
    // collisions early.
    bool edge_free(const double* q0, const double* q1, double resolution) const;
    std::optional<EdgeCollision> find_edge_collision(const double* q0, const double* q1,
                                                     double resolution) const;

    struct Rules;
    struct Base;                 // opaque
    struct State;                // opaque
    const Rules& rules() const;  // of this version; computed on first use

private:
    explicit CollisionWorld(std::unique_ptr<State> state);
    FramePair find_variable(const double* q, CollisionView::Scratch& scratch) const;
    FramePair constant_collision() const;

    std::unique_ptr<State> state_;
};

// Return the number of equal steps between q0 and q1 of at most `resolution` in the maximum norm;
// at least 1.
std::int64_t edge_steps(const double* q0, const double* q1, std::size_t size, double resolution);

// Visit each k in 1 .. steps - 1 once, the middle first and then the middles of the remaining
// intervals, until visit(k) returns false. Return true if no call did. Each level visits the odd
// multiples of steps / 2^level, rounded down; a number that rounds to a neighbour of a coarser
// level was visited there.
template <class Visit> bool visit_bisecting(std::int64_t steps, Visit&& visit) {
    for (std::int64_t parts = 2; parts < 2 * steps; parts *= 2)
        for (std::int64_t odd = 1; odd < parts; odd += 2) {
            const std::int64_t k = odd * steps / parts;
            if (k != (odd - 1) * steps / parts && k != (odd + 1) * steps / parts && !visit(k))
                return false;
        }
    return true;
}

}  // namespace tmkit
