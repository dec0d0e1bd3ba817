// Collision checking of one version of a scene.
//
// A CollisionWorld collects the collision shapes of all frames and settles which pairs are checked
// and with what margin; a CollisionView adds what is known when only some joints move. Frames
// between two moving joints are welded into *links*; what stands still is in a tree of axis-aligned
// boxes, in which moving shapes are looked up, and moving shapes meet by a list. What the boxes
// leave over goes through a separating-axis test, and only then to coal's GJK. Where many
// configurations are asked for, eight of them go through the first two together
// (src/collision/lanes.hpp).
//
// Levels. At the level `exact` a mesh is its triangles, at `hull` its convex hull, at `box` the box
// around it in its own axes. A point cloud and a height field are themselves at `exact` and `hull`,
// and boxes at `box`. All other shapes are themselves. A shape may carry a level of its own. What
// is free at a coarser level is free at a finer one.
//
// Which pairs. Two frames with collision shapes are checked unless they are on one body, or the
// scene allows the pair, or they are *rigidly joined*: connected by fixed edges alone. An edge
// whose lower frame is listed as movable joins nothing: so a block that lies on a table as its
// child is still checked against the table. Pairs whose relative pose no joint can change are
// *constant*: checked once and remembered. Every root stands at the identity.
//
// Margin. A pair is in contact when its signed distance is at most its margin (so with margin 0
// touching is contact, to GJK's tolerance of one micrometre). A negative margin lets shapes
// penetrate to that depth.
//
// Versions. A world can be moved to another version: it keeps the structures of the version they
// were made for, hides in them what has changed since, and holds the changed things beside them
// (src/collision/collision_overlay.hpp).
//
// Threads: a world and a view are immutable; any thread may ask. A Scratch belongs to one thread at
// a time. Results do not depend on what was asked before.
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
    double margin = 0.0;  // metres; negative: penetration up to that depth is free; minus infinity:
                          // never checked
};

struct CollisionOptions {
    std::vector<std::string> movable;      // frames whose edge may be changed by later edits
    double margin = 0.0;                   // metres; negative: so much overlap is free
    std::vector<PairMargin> pair_margins;  // refine the margin of pairs that are checked anyway
    CollisionLevel level = CollisionLevel::hull;  // of shapes that have none of their own
};

// Options for another version of a scene; what is not given stays as it was, but for frames that
// are gone.
struct CollisionChanges {
    std::optional<std::vector<std::string>> movable;
    std::optional<double> margin;
    std::optional<std::vector<PairMargin>> pair_margins;
};

// Two frames in contact, as far as numbers can say: point midway between the nearest points, normal
// from a to b, both in the axes of the root. The distance is negative for penetration.
struct Contact {
    std::int32_t frame_a = -1, frame_b = -1;  // frame numbers, a < b
    double distance = 0.0, margin = 0.0;      // metres
    Vector3 point{}, normal{};
};

// Two frames by number; the default stands for none.
struct FramePair {
    std::int32_t a = -1, b = -1;
    explicit operator bool() const { return a >= 0; }
    bool operator==(const FramePair&) const = default;
};

class CollisionWorld;

// The checked pairs that can change while some joints move and all others stay.
class CollisionView {
public:
    class Scratch;
    struct Model;  // opaque

    // For a search that moves only some entries of the configuration; `base` holds the values of
    // the others. Check the base with the world first: the view does not contain the pairs that
    // cannot change.
    CollisionView(const CollisionWorld& world, const std::vector<std::int32_t>& entries,
                  const double* base);
    explicit CollisionView(std::unique_ptr<const Model> model);
    CollisionView(CollisionView&&) noexcept;
    ~CollisionView();

    Scratch scratch() const;

    // `q` is a full configuration of which only the moving entries are read. The first pair in
    // contact, or none.
    FramePair find_collision(const double* q, Scratch& scratch) const;
    // Looks at up to `together` configurations at once; find_in_batch() then says of each, by its
    // number, some pair in contact, or none. Other questions may come between.
    static constexpr std::size_t together = 8;
    void check_batch(const double* const* q, int count, Scratch& scratch) const;
    FramePair find_in_batch(const double* q, int number, Scratch& scratch) const;

    // A pair that is not proved to keep its margin on the straight motion between two free
    // configurations; none when the motion is free. With a resolution the motion is free where it
    // is proved, or where places so far apart are. Adds to the checks.
    FramePair find_unproved(const double* q0, const double* q1, Scratch& scratch,
                            std::int64_t& checks, double resolution = 0.0) const;

    const Model& model() const { return *model_; }

private:
    std::unique_ptr<const Model> model_;
};

// Room to work in. One for each thread; never shared.
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
    double fraction = 0.0;  // of the way from q0 to q1
    std::vector<double> q;
    FramePair pair;
};

class CollisionWorld {
public:
    // Throws unknown_name for a frame that is not in the scene, Error(configuration) for a margin
    // that is not finite or two margins for one pair, and Error(shape) for a mesh without a hull.
    // O(frames + moving frames x frames) beyond the hulls, which are computed once for each shape
    // in the life of the process.
    CollisionWorld(SceneGraph scene, CollisionOptions options);
    CollisionWorld(CollisionWorld&&) noexcept;
    ~CollisionWorld();
    CollisionWorld& operator=(const CollisionWorld&) = delete;

    // The world of another version of the scene: it answers like one made anew, and uses what this
    // one has worked out where the versions do not differ. O(changes log n + objects) when little
    // differs from the version that was worked out last, else like a world made anew. Throws as the
    // constructor does.
    CollisionWorld moved_to(const SceneGraph& scene, const CollisionChanges& changes = {}) const;
    // Whether the two use the same work.
    bool shares_with(const CollisionWorld& other) const;

    // Whether straight motions between full configurations, which were proved free in a world of
    // another version, are proved free here by what differs alone; false also where that cannot be
    // said. O(rows x what differs).
    bool still_free(const CollisionWorld& before, const double* const* rows,
                    std::size_t count) const;
    // Frames of either that may count otherwise than in a world of another version; none where too
    // much differs.
    std::optional<std::vector<FrameId>> changed_since(const CollisionWorld& before) const;

    const SceneGraph& scene() const;
    const CollisionOptions& options() const;
    std::size_t joint_count() const;
    std::string frame_name(std::int32_t frame) const;

    // Every checked pair with its margin, in frame order. O(frames^2).
    std::vector<Contact> pairs() const;

    // The first checked pair in contact at q (all entries are read), or none.
    FramePair find_collision(const double* q) const;
    bool in_collision(const double* q) const { return static_cast<bool>(find_collision(q)); }
    // Whether each of at most CollisionView::together configurations is in collision: faster where
    // they are near.
    void in_collisions(const double* const* q, int count, bool* found) const;
    // An order of configurations, row by row, in which those that follow each other are mostly near
    // in the joints that carry most. O(count).
    std::vector<std::uint32_t> order_by_nearness(const double* rows, std::size_t count) const;
    std::vector<Contact> contacts(const double* q) const;
    std::optional<Contact> nearest(const double* q) const;
    // The contact of one pair at q, whatever its distance.
    Contact contact(FramePair pair, const double* q) const;
    // The nearest or deepest of the shapes of some frames and those of others, checked or not; its
    // margin is minus infinity when the pair is not checked. frame_a is one of the first. None when
    // one side has no collision shape.
    std::optional<Contact> between(const std::vector<std::int32_t>& frames_a,
                                   const std::vector<std::int32_t>& frames_b,
                                   const double* q) const;

    // The straight motion from q0 to q1, both ends included, at steps of at most `resolution`
    // (radians or metres) in the maximum norm. `edge_free` tests the middle first and halves, so
    // that a collision is found soon.
    bool edge_free(const double* q0, const double* q1, double resolution) const;
    std::optional<EdgeCollision> find_edge_collision(const double* q0, const double* q1,
                                                     double resolution) const;

    struct Rules;
    struct Base;                 // opaque
    struct State;                // opaque
    const Rules& rules() const;  // of this version; worked out when first asked for

private:
    explicit CollisionWorld(std::unique_ptr<State> state);
    FramePair find_variable(const double* q, CollisionView::Scratch& scratch) const;
    FramePair constant_collision() const;

    std::unique_ptr<State> state_;
};

// The number of equal steps between q0 and q1 such that none exceeds `resolution` in the maximum
// norm; at least 1.
std::int64_t edge_steps(const double* q0, const double* q1, std::size_t size, double resolution);

// Visits each k in 1 .. steps - 1 once, the middle first and then the middles of what is left,
// until visit(k) returns false; true when none did. Level by level the odd multiples of steps /
// 2^level, rounded down; a number that rounds to a neighbour of a coarser level has been visited
// there.
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
