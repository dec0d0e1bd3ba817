// The persistent scene graph: one consistent version of the world, as an immutable value.
//
// Holding a SceneGraph means that every rule below holds for it. An edit is a const member that returns a new version
// sharing nearly everything with the old one, which stays as it was; an edit that changes nothing returns a version that
// shares everything (`same_version`). Any thread may read any version.
//
// Inside are persistent maps (persistent_map.hpp):
//
//     frames   id   -> FrameRecord     hot: parent, body, joint type, pose; cold details behind a pointer
//     names    name -> id
//     joints   id   -> Joint           actuated, not mimic; its rank is the entry in the configuration
//     joint_names, bodies, body_names
//     allowed  (id, id) -> reason      pairs of frames that may touch, smaller id first
//
// Frames have ids that survive rename and reparenting and grow with insertion, so that the map of frames is in insertion
// order. A mimic joint is in `joint_names` but not in `joints`.
//
// Rules: names of frames, joints and bodies are unique, each for itself; a parent exists; no cycle; a frame sits on one
// body; the frames of one body within one tree are joined by fixed edges between frames of that body, so there is at
// most one path of poses between two bodies; the pose of an edge inside a body does not change.
//
// Costs: an edit or a query of one frame O(log n); those that look at ancestors O(depth log n); `layout` O(n log n) on
// first use of a version, then shared.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tmkit/error.hpp"
#include "tmkit/joint.hpp"
#include "tmkit/layout.hpp"
#include "tmkit/persistent_map.hpp"
#include "tmkit/shape.hpp"

namespace tmkit {

struct Name : Shared {
    explicit Name(std::string_view t) : text(t) {}
    std::string text;
};

struct NameLess {
    static std::string_view view(const Ref<const Name>& name) { return name->text; }
    static std::string_view view(std::string_view text) { return text; }
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
        return view(a) < view(b);
    }
};

// Mass properties of a body, in the axes of one of its frames: kilograms, metres, kg m^2 about the centre of mass.
struct Inertia {
    double mass = 0.0;
    Vector3 center{0.0, 0.0, 0.0};
    Matrix3 matrix{};

    // Throws Error(scene) for a mass that is not positive and finite, or a matrix that is not symmetric positive
    // semi-definite (within 1e-9 of its trace).
    void check() const;
    bool operator==(const Inertia&) const = default;
};

// What most frames do not have: kept apart so that it costs nothing where it is not used.
struct FrameDetails : Shared {
    std::vector<AttachedShape> shapes;
    std::vector<std::string> classes;
};

struct FrameRecord : Shared {
    FrameId id = no_frame;
    FrameId parent = no_frame;  // no_frame for a root
    BodyId body = 0;
    JointType joint_type = JointType::fixed;
    Pose pose;  // parent_from_frame at joint value 0
    Ref<const Name> name;
    Ref<const Joint> joint;           // null for fixed and free
    Ref<const FrameDetails> details;  // null when there are none
};

struct BodyRecord : Shared {
    Ref<const Name> name;
    std::vector<FrameId> tops;  // the topmost frame of the body in each tree where it has frames
    FrameId inertia_frame = no_frame;
    Inertia inertia;
};

struct FrameSpecification {
    std::string name, parent;
    Pose pose;
    Joint joint;
    std::string body;  // empty: a body of the frame's own name
    std::vector<std::string> classes;
    std::vector<AttachedShape> shapes;
    std::optional<Inertia> inertia;  // of the body, in the axes of this frame
};

struct AllowedPair {
    std::string a, b, reason;
};

// Which entry of the configuration moves a joint, and how: value = multiplier * q[entry] + offset, with all mimic rules on
// the way to the leader made one. Asked by the tree and by the layout, so that both answer with the same bits.
struct JointRule {
    std::size_t entry = 0;
    double multiplier = 1.0, offset = 0.0;
    double value(const double* q) const { return multiplier * q[entry] + offset; }
};

class SceneGraph {
public:
    SceneGraph() = default;  // empty
    SceneGraph(const SceneGraph& other);
    SceneGraph(SceneGraph&& other) noexcept;
    SceneGraph& operator=(SceneGraph other) noexcept;
    ~SceneGraph();

    // All frames at once, in insertion order; a parent or a mimic joint's leader may come after. An empty parent is a root.
    static SceneGraph from_frames(const std::vector<FrameSpecification>& frames);

    // Edits. Each throws Error and leaves this version untouched when a rule would break.
    SceneGraph add_root(std::string_view name) const;
    SceneGraph add_frame(const FrameSpecification& specification) const;
    SceneGraph remove_frame(std::string_view name, bool with_subtree) const;
    SceneGraph rename_frame(std::string_view name, std::string_view new_name) const;
    SceneGraph reparent(std::string_view frame, std::string_view parent, const Pose& parent_from_frame) const;
    // Keeps the pose relative to the root at configuration q (null: refused when a joint is on either path).
    SceneGraph reparent_keeping_pose(std::string_view frame, std::string_view parent, const double* q) const;
    SceneGraph set_pose(std::string_view frame, const Pose& parent_from_frame) const;
    SceneGraph set_joint(std::string_view frame, Joint joint) const;
    SceneGraph set_classes(std::string_view frame, std::vector<std::string> classes) const;
    SceneGraph set_shapes(std::string_view frame, std::vector<AttachedShape> shapes) const;
    SceneGraph set_inertia(std::string_view frame, const std::optional<Inertia>& inertia) const;
    SceneGraph allow_collision(std::string_view a, std::string_view b, std::string_view reason) const;
    SceneGraph forbid_collision(std::string_view a, std::string_view b) const;

    // Queries.
    std::size_t size() const { return frames_.size(); }
    std::size_t joint_count() const { return joints_.size(); }
    const FrameRecord* find(std::string_view name) const;
    FrameSpecification specification(std::string_view name) const;  // what from_frames makes this frame of again
    const FrameRecord& record(std::string_view name) const;  // throws unknown_name
    const FrameRecord& record(FrameId id) const { return **frames_.find(id); }
    const BodyRecord& body(BodyId id) const { return **bodies_.find(id); }
    FrameId joint_frame(std::string_view joint_name) const;  // throws unknown_name
    FrameId root_of(FrameId id) const;
    bool is_ancestor(FrameId ancestor, FrameId frame) const;  // true also when they are the same
    std::optional<Inertia> inertia(std::string_view frame) const;  // of its body, in the axes of this frame
    bool is_allowed(std::string_view a, std::string_view b) const;
    bool is_allowed(FrameId a, FrameId b) const;
    std::vector<std::string> frame_names() const;
    std::vector<std::string> joint_names() const;
    std::vector<std::string> body_names() const;  // in the order of their first frames
    std::vector<AllowedPair> allowed_pairs() const;
    // How the joint above a frame, which must be actuated, follows the configuration.
    JointRule joint_rule(const FrameRecord& record) const;
    // Value of the joint above a frame at q; throws Error(configuration) when q is null.
    double joint_value(const FrameRecord& record, const double* q) const;
    // Pose of target relative to reference at q (q may be null when no joint is on the path).
    Pose pose(std::string_view target, std::string_view reference, const double* q) const;
    const Layout& layout() const;

    bool same_version(const SceneGraph& other) const;
    bool same_content(const SceneGraph& other) const;  // insertion order counts, ids do not
    std::uint64_t content_hash() const;                // equal for equal content, stable across processes

    // Every inner map is balanced and ordered, and all cross references meet: for tests. Empty when all is well.
    std::string defects() const;

private:
    using Pair = std::pair<FrameId, FrameId>;
    static Pair ordered(FrameId a, FrameId b) { return a < b ? Pair{a, b} : Pair{b, a}; }

    SceneGraph edited() const;  // a copy whose layout is not yet built
    void put(Ref<FrameRecord> record);
    SceneGraph add(const FrameSpecification& specification, const FrameRecord* parent) const;
    void require_new_frame_name(std::string_view name) const;
    void add_joint(FrameRecord& record, Joint joint);
    void require_no_followers(const std::vector<FrameId>& leaving) const;  // ids ascending
    void drop_joint(const FrameRecord& record);
    void check_leader(const Joint& joint) const;
    SceneGraph with_id(const FrameSpecification& specification, FrameId id) const;
    BodyId join_body(const FrameSpecification& specification, FrameId frame, const FrameRecord* parent);
    void leave_body(const FrameRecord& record);
    void check_bodies_on_move(const FrameRecord& moving, const FrameRecord& parent) const;
    void join_parts(const FrameRecord& moving);
    bool stays_on_body(const FrameRecord& moving, const FrameRecord& parent, const Pose& pose) const;
    Pose pose_from(FrameId ancestor, FrameId frame, const double* q) const;
    Pose root_pose(FrameId frame, const double* q) const { return pose_from(no_frame, frame, q); }
    SceneGraph moved_to(const FrameRecord& record, const FrameRecord& parent, const Pose& pose) const;

    PersistentMap<FrameId, Ref<const FrameRecord>> frames_;
    PersistentMap<Ref<const Name>, FrameId, NameLess> names_;
    PersistentMap<FrameId, Ref<const Joint>> joints_;
    PersistentMap<Ref<const Name>, FrameId, NameLess> joint_names_;
    PersistentMap<BodyId, Ref<const BodyRecord>> bodies_;
    PersistentMap<Ref<const Name>, BodyId, NameLess> body_names_;
    PersistentMap<Pair, Ref<const Name>> allowed_;
    FrameId next_frame_ = 1;
    BodyId next_body_ = 1;
    mutable std::atomic<const Layout*> layout_{nullptr};
};

}  // namespace tmkit
