// Scene in preallocated arrays, edited in place, for control loops.
//
// A SceneArrays is a consistent scene *at* a configuration: after each call, every rule of
// SceneGraph holds and forward kinematics is up to date. It begins as a copy of a SceneGraph at the
// zero configuration, and `freeze` returns a SceneGraph of it, with the ids of frames. Equal edits
// give equal scenes, equal errors and bit-identical poses, since both variants multiply the same
// edges in the same order.
//
// A frame has a *slot*, a number that is constant while the frame exists. Each property is a
// column, as are parent, children and siblings, so moving a subtree is a few writes. Three lists of
// slots:
//
//     sequence   by insertion: the order of names and poses, and of ids
//     order      topological, parents first: forward(q) is one pass over it
//     entries    by configuration entry: the frames of the joints that have one
//
// Attaching a frame to one that is earlier in `order` keeps the order. Otherwise only the range
// between the two is rewritten: first the other frames, then the moved frame and its descendants.
//
// Names are in fixed cells with open addressing (name_table.hpp). Attached shapes are entries of a
// pool, as are the stamped poses of edges (a list for each edge, the newest first) and the members
// of groups. A twist edge and the error of an edge are stored with its frame; `noise` is the
// capacity of sources. Classes, attributes and the errors of twists are cold, and shared with the
// original scene.
//
// Invariants, in addition to those of SceneGraph: root_pose(frame) is root_pose(parent) *
// edge(frame at q), bit for bit; an edit that is rejected, or exceeds a capacity, changes nothing;
// `order` holds each slot once, parents first.
//
// Costs of edits and queries are in their docstrings (bindings/), for scenes and for arrays. After
// construction, edits, forward kinematics, poses, Jacobians and twists allocate nothing. Exceptions
// are errors that are thrown, returned names, `freeze`, classes and attributes in arguments, and
// errors of paths with more than 32 sources.
//
// Threads. One writer, any number of readers, and the writer never waits: a sequence lock
// (sequence_lock.hpp). A reader gets the scene before or after an edit, never in between, and
// starts again if it was overtaken. All functions but the queries marked for any thread belong to
// the writer; a second writer is rejected if detected. `forward` computes all poses in memory of
// the writer first: readers wait only for the copy.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tmkit/name_table.hpp"
#include "tmkit/scene_graph.hpp"
#include "tmkit/scene_relations.hpp"
#include "tmkit/sequence_lock.hpp"
#include "tmkit/slot_lists.hpp"
#include "tmkit/twist_rules.hpp"

namespace tmkit {

// Capacities, fixed at construction.
struct Capacities {
    // default: a value that suits the scene, namely:
    static constexpr std::size_t as_suits = static_cast<std::size_t>(-1);
    std::size_t frames = as_suits;         // twice those of the scene, at least 64
    std::size_t bodies = as_suits;         // as for frames
    std::size_t shapes = as_suits;         // attached shapes: those of the scene and one a frame
    std::size_t allowed_pairs = as_suits;  // those of the scene and four a frame
    std::size_t name_bytes = as_suits;  // of one name or reason: that of the longest, at least 64
    std::size_t twists = as_suits;      // those of the scene and one a frame
    std::size_t stamps = as_suits;      // stamped poses: twice those of the scene, at least 256
    std::size_t groups = as_suits;      // those of the scene and 16
    std::size_t group_members = as_suits;  // of all groups: those of the scene and two a frame
    // Dimensions of noise sources that one edge may use; default: all those of the scene. Below 6,
    // stamped poses have no covariances.
    std::size_t noise = as_suits;

    Capacities complete_for(const SceneGraph& scene) const;
};

// Each capacity with its name.
inline constexpr std::array<std::pair<const char*, std::size_t Capacities::*>, 10> capacity_names{
    {{"frames", &Capacities::frames},
     {"bodies", &Capacities::bodies},
     {"shapes", &Capacities::shapes},
     {"allowed_pairs", &Capacities::allowed_pairs},
     {"name_bytes", &Capacities::name_bytes},
     {"twists", &Capacities::twists},
     {"stamps", &Capacities::stamps},
     {"groups", &Capacities::groups},
     {"group_members", &Capacities::group_members},
     {"noise", &Capacities::noise}}};

class SceneArrays {
public:
    using Slot = std::int32_t;
    static constexpr Slot none = -1;
    // default: the present configuration.
    using Configuration = std::optional<std::span<const double>>;

    // Throws Error(capacity) if the scene exceeds a capacity. O(n log n).
    explicit SceneArrays(const SceneGraph& scene, const Capacities& capacities = {});
    SceneArrays(const SceneArrays&) = delete;
    SceneArrays& operator=(const SceneArrays&) = delete;

    const Capacities& capacities() const { return capacities_; }

    // Edits, with the rules and errors of SceneGraph, and Error(capacity). Only one thread at a
    // time.
    void add_body(std::string_view name);
    void remove_body(std::string_view name);
    void attach(std::string_view root, std::string_view parent, const Pose& parent_from_root,
                const Joint& joint);
    void set_twist(std::string_view frame, const TwistEdge& edge);
    void set_twist_noise(std::string_view frame, Ref<const EdgeNoise> noise);  // null: exact
    void remove_twist(std::string_view frame);
    void add_stamped_pose(std::string_view frame, const StampedPose& entry,
                          std::optional<std::size_t> capacity, std::optional<double> window);
    // null: no history.
    void set_stamped_poses(std::string_view frame, const Ref<const StampedPoses>& stamps);
    void set_group(const GroupSpecification& group);
    void remove_group(std::string_view name);
    // Without a parent, a root. Attributes, inertia, stamps and twist are set separately.
    void add_frame(const FrameSpecification& frame);
    void remove_frame(std::string_view name, bool with_subtree);
    void rename_frame(std::string_view name, std::string_view new_name);
    // The new edge has this noise; with keeping_pose it is added to the errors of the old path: see
    // SceneEdit.
    void reparent(std::string_view frame, std::string_view parent, const Pose& parent_from_frame,
                  const Ref<const EdgeNoise>& noise = {});
    void reparent_keeping_pose(std::string_view frame, std::string_view parent,
                               const Configuration& q, const Ref<const EdgeNoise>& slip = {});
    void set_pose(std::string_view frame, const Pose& parent_from_frame);
    void set_noise(std::string_view frame, const Ref<const EdgeNoise>& noise);  // null: exact
    // A joint that remains keeps its value; a new one begins at 0.
    void set_joint(std::string_view frame, const Joint& joint);
    void set_classes(std::string_view frame, std::vector<std::string> classes);
    void set_attributes(std::string_view frame, Attributes attributes);
    void set_shapes(std::string_view frame, std::span<const AttachedShape> shapes);
    void add_shape(std::string_view frame, const AttachedShape& shape);
    void set_inertia(std::string_view frame, const std::optional<Inertia>& inertia);
    void allow_collision(std::string_view a, std::string_view b, std::string_view reason);
    void forbid_collision(std::string_view a, std::string_view b);
    // Set the configuration: joint_count() values.
    void forward(std::span<const double> q);
    SceneGraph freeze() const;
    FrameSpecification specification(std::string_view frame) const;  // all data of a frame
    std::vector<std::string> group_names() const;
    GroupSpecification group(std::string_view name) const;

    // Return reference_from_target with its covariance, as tmkit::gaussian_pose. For the writer
    // only, since it uses scratch.
    GaussianPose gaussian_pose(std::string_view target, std::optional<std::string_view> reference,
                               const Configuration& q = std::nullopt);
    const EdgeNoise* noise(std::string_view frame) const;  // null if the edge is exact
    // Null if the twist is exact, or missing.
    Ref<const EdgeNoise> twist_noise(std::string_view frame) const;

    // The twist of a frame relative to another (default: the root of its tree), at the origin of
    // `point` (default: its own) and in the axes of `axes` (default: those of the other), as
    // tmkit::related_twist. Without qd, joints do not contribute. For the writer only. Throws
    // Error(scene) if the relative motion is not determined.
    Vector6 related_twist(std::string_view frame, std::optional<std::string_view> reference,
                          std::optional<std::string_view> point,
                          std::optional<std::string_view> axes,
                          const Configuration& q = std::nullopt,
                          const Configuration& qd = std::nullopt);

    // Queries for any thread.
    std::size_t size() const { return static_cast<std::size_t>(counts_.load(frame_count)); }
    std::size_t joint_count() const { return static_cast<std::size_t>(counts_.load(entry_count)); }
    bool contains(std::string_view frame) const;
    std::optional<std::string> parent(std::string_view frame) const;  // none for a root
    // In insertion order. O(k log k) for k children.
    std::vector<std::string> children(std::string_view frame) const;
    std::vector<std::string> frame_names() const;
    std::vector<std::string> joint_names() const;
    bool is_allowed(std::string_view a, std::string_view b) const;
    Pose local_pose(std::string_view frame) const;  // parent_from_frame at joint value 0
    // Write the present configuration, and 7 numbers a frame (x, y, z, qx, qy, qz, qw) relative to
    // its root, by insertion. Return the number of values, or frames. Throw Error(configuration) if
    // the span is too short.
    std::size_t write_q(std::span<double> out) const;
    std::size_t write_poses(std::span<double> out) const;
    // Pose of target relative to reference, by default to the root of its tree.
    Pose pose(std::string_view target, std::optional<std::string_view> reference = std::nullopt,
              const Configuration& q = std::nullopt) const;
    // Poses at a time, and twists by differences: see SceneGraph.
    Pose pose(std::string_view target, std::optional<std::string_view> reference,
              const Configuration& q, const Moment& moment) const;
    Vector6 twist_from_stamps(std::string_view target, std::optional<std::string_view> reference,
                              double first, double second, const Configuration& q,
                              StampPolicy policy) const;
    std::optional<StampedPoses> stamped_poses(std::string_view frame) const;
    std::string root(std::string_view frame) const;
    std::vector<std::string> ancestors(std::string_view frame) const;  // nearest first
    std::string body(std::string_view frame) const;
    std::vector<std::string> body_names() const;  // as in SceneGraph
    std::vector<std::string> bodies_without_frames() const;
    // Writer only.
    bool has_body(std::string_view name) const { return body_names_.find(name) != none; }
    // Without its error, which belongs to the writer.
    std::optional<TwistEdge> twist(std::string_view frame) const;
    std::vector<std::string> twist_frames() const;
    // 6 x joint_count(), row-major, at the present configuration: see Layout::jacobian.
    void jacobian(std::string_view frame, std::span<double> rows) const;

    // Check the consistency of the inner columns, for tests (defined with them). Return an empty
    // string if they are consistent.
    std::string defects() const;

private:
    using Writer = SequenceLock::Writer;
    using Section = SequenceLock::Section;
    enum : std::int32_t { frame_count, entry_count, twist_count, count_of_counts };

    // Number of edges between each of two frames and their nearest common ancestor.
    struct PathLengths {
        std::int32_t target = 0, reference = 0;
    };
    class View;  // view for the rules shared with scenes: graph/scene_arrays_view.hpp
    class Path;  // path between two frames, with its errors

    // Data of a new or changed joint, all rules checked.
    struct JointPlan {
        JointType type = JointType::fixed;
        bool is_stated = true;
        Vector3 axis{0.0, 0.0, 1.0};
        JointNumbers numbers{};
        std::string_view name;
        Slot leader = none;
    };

    // Construction with these capacities
    SceneArrays(const SceneGraph& scene, const Capacities& c, std::nullptr_t);
    void load(const SceneGraph& scene);
    void load_frame(const SceneGraph& scene, const FrameRecord& record, Slot slot);
    void load_twists(const SceneGraph& scene);
    FrameSpecification specification(Slot slot) const;
    std::optional<StampedPoses> history(Slot slot) const;  // for readers too
    GroupSpecification members_of(Slot group) const;

    // Rules, checked before any write
    Slot require_frame(std::string_view name) const;
    void require_new_name(std::string_view name) const;
    void require_fit(std::string_view text) const;
    void require_length(const Configuration& q) const;
    void require_room_for(const FrameSpecification& frame, bool with_body) const;
    Slot body_for(const FrameSpecification& frame, Slot parent) const;  // none: a new body
    // slot: the frame whose joint is changed, none for a new one.
    JointPlan plan_joint(const Joint& joint, std::string_view name, Slot slot) const;
    void require_no_followers() const;  // of the marked frames
    Slot require_body(std::string_view name) const;
    Slot require_group(std::string_view name) const;
    Joint joint_of(Slot slot) const;
    // numbers: of the joint with this name and leader, checked.
    bool same_joint(Slot slot, const Joint& numbers, std::string_view name,
                    std::string_view leader) const;

    // Steps of edits
    void add(const FrameSpecification& frame, Slot parent);
    void move(Slot moving, Slot parent, const Pose& pose);
    void restore_order(Slot moving, Slot parent);
    void remove_marked(std::int32_t leaving);
    void write_joint(Slot slot, const JointPlan& plan);
    void drop_joint(Slot slot);
    void state_motion(Slot slot);
    void renew_entries();
    // The pose of a frame from that of its parent, as in Layout::forward; value_of returns a value
    // of the configuration. The moved edge has no name: in a variable with an address it goes
    // through memory, which takes half as long again.
    template <class ValueOf> Pose pose_from_parent(Slot slot, ValueOf&& value_of) const {
        const Slot parent = parent_[slot];
        if (parent == none) return pose_[slot];
        const std::int32_t entry = entry_[slot];
        if (entry == none) return compose(root_pose_[parent], pose_[slot]);
        const double value = multiplier_[slot] * value_of(entry) + offset_[slot];
        return compose(root_pose_[parent],
                       apply_joint(pose_[slot], type_[slot], axis_[slot], value));
    }
    void refresh(Slot slot);
    void refresh_subtree(Slot top);
    void refresh_after_joint(Slot slot);
    void change_parent(Slot moving, Slot parent, bool joins_parts);
    Slot take_body(std::string_view name);
    void append_twist(Slot slot, Slot reference);
    void mark_redundant_twists(Slot moving, Slot parent, const Pose& pose, JointType type);
    template <class Goes> void drop_twists(Goes&& goes);   // of frames
    void drop_stamps(Slot slot, std::int32_t kept_count);  // except the newest `kept_count`
    void insert_stamp(Slot slot, const StampedPose& entry);
    void clear_group(Slot group);
    std::size_t check_nested(std::string_view name, std::span<const std::string> groups);
    std::vector<std::string> sorted_groups() const;
    StampBounds bounds_of(Slot slot, std::size_t capacity, double window) const;
    void leave_body(Slot slot);
    template <class Change> void change_details(std::string_view frame, Change&& change);
    void drop_pair(Slot pair);
    // And collects it in `gathered_`, parents first; returns the count.
    std::int32_t mark_subtree(Slot top) const;
    Slot next_in_subtree(Slot current_slot, Slot top) const;

    // Walks, for the writer and for readers: bounded for any data that they read
    std::int32_t depth(Slot slot) const;
    PathLengths path_lengths(Slot target, Slot reference) const;  // throws Error(disconnected)
    Pose edge(Slot slot, const Configuration& q) const;
    Pose edge_from(Slot slot, const Pose& pose, const Configuration& q) const;
    Pose pose_at(Slot slot, const Moment& moment) const;  // of an edge, at joint value 0
    template <class EdgeOf> Pose pose_down(std::int32_t edges, Slot slot, EdgeOf&& edge_of) const;
    // reference: none for the root.
    template <class EdgeOf> Pose path_pose(Slot target, Slot reference, EdgeOf&& edge_of) const;
    Pose pose_between(Slot target, Slot reference, const Configuration& q) const;
    Pose pose_between(Slot target, Slot reference, const Configuration& q,
                      const Moment& moment) const;
    Slot reference_slot(std::optional<std::string_view> reference) const {
        return reference ? require_frame(*reference) : none;
    }
    // Return the result of read(slot) of a frame, for any thread; throws unknown_frame.
    template <class Read> auto read_frame(std::string_view frame, Read&& read) const {
        return lock_.read([&] { return read(require_frame(frame)); });
    }
    std::vector<std::string> names_in(const NameTable& table, const Column<Slot>& slots,
                                      int counted) const;
    std::string defects_of_frame(Slot slot) const;
    std::string defects_of_order() const;
    std::string defects_of_children() const;
    std::string defects_of_twists() const;
    std::string defects_of_pools() const;
    void add_bare_bodies(std::vector<std::string>& names) const;  // sorted
    Error unknown_frame(std::string_view name) const;

    static std::string_view pair_key(const std::array<FrameId, 2>& ids) {
        return {reinterpret_cast<const char*>(ids.data()), sizeof ids};
    }
    std::array<FrameId, 2> pair_of(Slot a, Slot b) const;
    bool is_top(Slot slot) const {
        return parent_[slot] == none || body_[parent_[slot]] != body_[slot];
    }

    const EdgeNoise* noise_at(Slot slot) const {
        return noise_.empty() || noise_[slot]->terms.empty() ? nullptr : noise_[slot].get();
    }
    void write_noise(Slot slot, const EdgeNoise* noise);
    void require_noise_fits(std::size_t columns) const;
    std::size_t stamp_covariances() const {
        return capacities_.noise < columns_of_covariance ? 0 : capacities_.stamps;
    }
    StampedPose stamped_pose(Slot entry) const;  // for readers too

    Path path(Slot target, Slot reference, const Configuration& q) const;  // in scratch

    Capacities capacities_;
    mutable SequenceLock lock_;

    // Read by all threads, written under the lock.
    Column<std::int32_t> counts_{count_of_counts};
    NameTable frame_names_{capacities_.frames, capacities_.name_bytes};  // by slot
    NameTable joint_names_{capacities_.frames, capacities_.name_bytes};  // by slot of the frame
    NameTable body_names_{capacities_.bodies, capacities_.name_bytes};   // by body
    Column<Slot> parent_{capacities_.frames, none}, body_{capacities_.frames, none};
    SlotChains children_{capacities_.frames, capacities_.frames};
    // Of bodies: their root frames in each tree.
    SlotChains tops_{capacities_.bodies, capacities_.frames};
    Column<char> bare_{capacities_.bodies};  // by body: named, but without a frame
    Column<FrameId> id_{capacities_.frames};
    Column<JointType> type_{capacities_.frames};
    Column<char> stated_{capacities_.frames, 1};  // 0: the motion of the edge is unknown
    // Of the configuration, none if no entry moves the frame.
    Column<std::int32_t> entry_{capacities_.frames, none};
    Column<double> multiplier_{capacities_.frames, 1.0}, offset_{capacities_.frames};
    Column<Vector3> axis_{capacities_.frames};
    Column<Pose> pose_{capacities_.frames}, root_pose_{capacities_.frames};
    Column<Slot> sequence_{capacities_.frames}, entries_{capacities_.frames};
    Column<double> q_{capacities_.frames};
    Column<Slot> twists_{capacities_.twists};  // frames with a twist edge, by insertion
    // By frame: the reference body of its twist edge.
    Column<Slot> twist_reference_{capacities_.frames, none};
    Column<Vector6> twist_vector_{capacities_.frames};
    Column<Slot> newest_{capacities_.frames, none};  // by frame: its newest stamped pose
    Column<Slot> oldest_{capacities_.frames, none};  // by frame: its oldest stamped pose
    // By frame: capacity of stamped poses; none: no history.
    Column<std::int32_t> stamp_count_{capacities_.frames, none};
    Column<std::uint64_t> stamp_capacity_{capacities_.frames};
    Column<double> stamp_window_{capacities_.frames}, stamp_{capacities_.stamps};
    Column<Pose> stamp_pose_{capacities_.stamps};  // by stamped pose
    // By stamped pose, without capacity for errors empty: whether it has a covariance, and which.
    Column<char> stamp_is_uncertain_{stamp_covariances()};
    Column<Covariance> stamp_covariance_{stamp_covariances()};
    // By stamped pose: the one before it, or the next free one.
    Column<Slot> older_{capacities_.stamps, none};
    Column<Slot> newer_{capacities_.stamps, none};  // by stamped pose: the one after it
    // By their ids, the smaller first.
    NameTable pairs_{capacities_.allowed_pairs, sizeof(std::array<FrameId, 2>)};

    // Of the writer only.
    Own<Slot> order_{capacities_.frames, none};
    Own<std::int32_t> position_{capacities_.frames};  // in order_
    Own<JointNumbers> numbers_{capacities_.frames};
    Own<char> moves_{capacities_.frames};  // whether a joint is between the frame and its root
    Own<Slot> leader_{capacities_.frames, none};  // the frame whose joint this one mimics
    std::int32_t followers_ = 0;
    Own<Slot> inertia_frame_{capacities_.bodies, none};  // by body
    Own<Inertia> inertia_{capacities_.bodies};
    Own<Slot> first_shape_{capacities_.frames, none};
    Own<Ref<const FrameDetails>> details_{
        capacities_.frames};  // classes and attributes; their other data are in columns
    Own<Ref<const EdgeNoise>> twist_noise_{
        capacities_.frames};  // shared with the caller; null: exact
    // By frame, allocated for all; without sources, the edge is exact. Empty without capacity.
    Own<Ref<EdgeNoise>> noise_{capacities_.noise ? capacities_.frames : 0};
    NameTable group_names_{capacities_.groups, capacities_.name_bytes};
    Own<char> is_group_{capacities_.groups};
    // By group: the first member of each kind.
    Own<Slot> group_frames_{capacities_.groups, none}, group_groups_{capacities_.groups, none};
    Own<Slot> group_parents_{capacities_.groups, none};
    Own<Attributes> group_attributes_{capacities_.groups};
    SlotLists<Slot> members_{capacities_.group_members};  // frames or groups
    SlotLists<AttachedShape> shapes_{capacities_.shapes};
    NameArena reasons_{capacities_.allowed_pairs, capacities_.name_bytes};
    Own<std::array<FrameId, 2>> pair_ids_{capacities_.allowed_pairs};
    Own<std::array<Slot, 2>> pair_frames_{capacities_.allowed_pairs};
    std::int32_t pair_count_ = 0;
    FrameId next_id_ = 1;
    FreeSlots free_frames_{capacities_.frames}, free_bodies_{capacities_.bodies},
        free_groups_{capacities_.groups};
    Slot free_stamp_ = none;
    std::size_t free_stamps_ = capacities_.stamps;

    // Scratch.
    mutable SlotMarks marks_{capacities_.frames};
    mutable TwistRules twist_rules_;
    SlotMarks group_marks_{capacities_.groups};
    Own<Slot> group_queue_{capacities_.groups};
    mutable Own<Slot> gathered_{capacities_.frames};
    Own<double> values_{capacities_.frames};  // by entry
    NoiseSum noise_sum_;
    BodyPaths<Slot, Slot> body_ways_;
};

}  // namespace tmkit
