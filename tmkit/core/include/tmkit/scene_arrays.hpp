// The scene in preallocated arrays, edited in place: the variant for control loops.
//
// A SceneArrays is a consistent scene *at* a configuration: every rule of SceneGraph holds, forward
// kinematics has run, and after each call it is so again. It begins as a copy of a SceneGraph at
// the zero configuration, and `freeze` makes a SceneGraph of it; nothing is lost on the way, not
// even the ids of frames. Equal edits give equal scenes, equal refusals and poses equal to the last
// bit, since both variants multiply the same edges in the same order.
//
// A frame is a *slot*, a number that it keeps while it lives; what is said of it stands in one
// column a property, its parent, children and siblings too, so that moving a subtree is a handful
// of writes. Three lists of slots:
//
//     sequence   by insertion: the order of names and poses, and what ids mean
//     order      topological, parents first: forward(q) is one pass over it
//     entries    by configuration entry: the frames of the joints that have one
//
// Hanging a frame under one that stands earlier in `order` leaves the order as it is. Otherwise
// only the stretch between the two is written anew: first the frames that stay, then those that
// hang off the frame that moves.
//
// Names lie in fixed cells and are found by open addressing (name_table.hpp). Attached shapes are
// entries of a pool; so are the stamped poses of edges (a list for each edge, the newest first) and
// the members of groups. A twist edge and the error of an edge stand beside its frame, where there
// is room for as many sources as `noise` says. Classes, attributes and the errors of twists are
// cold, and shared with the scene that they came from.
//
// Invariants, besides those of SceneGraph: root_pose(frame) is root_pose(parent) * edge(frame at
// q), bit for bit; an edit that is refused, or for which there is no room, changes nothing; `order`
// holds each slot once, parents first.
//
// What each edit and query costs is said in its docstring (bindings/), for scenes and for arrays.
// After construction nothing is allocated by edits, forward kinematics, poses, Jacobians and
// twists, but for an error that is thrown, names that are returned, `freeze`, the classes and
// attributes that an edit is given, and errors on a way with more than 32 sources.
//
// Threads. One writer, any number of readers, no waiting for the writer: a sequence lock
// (sequence_lock.hpp). A reader sees the scene before or after an edit, never in between, and
// begins again when it was overtaken. All but the queries that say so belong to the writer; a
// second writer is refused where it is seen. `forward` computes all poses first, where only the
// writer sees them: readers wait no longer than it takes to copy them.
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

// How much there is room for, fixed at construction.
struct Capacities {
    static constexpr std::size_t as_suits =
        static_cast<std::size_t>(-1);      // what suits the scene, namely:
    std::size_t frames = as_suits;         // twice those of the scene, at least 64
    std::size_t bodies = as_suits;         // as many as frames
    std::size_t shapes = as_suits;         // attached ones: those of the scene and one a frame
    std::size_t allowed_pairs = as_suits;  // those of the scene and four a frame
    std::size_t name_bytes = as_suits;     // of one name or reason: the longest, at least 64
    std::size_t twists = as_suits;         // those of the scene and one a frame
    std::size_t stamps = as_suits;         // stamped poses: twice those of the scene, at least 256
    std::size_t groups = as_suits;         // those of the scene and 16
    std::size_t group_members = as_suits;  // of all groups: those of the scene and two a frame
    std::size_t noise =
        as_suits;  // dimensions of noise sources that one edge may use: all those of the scene

    Capacities completed_for(const SceneGraph& scene) const;
};

// Each of them with its name.
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
    using Configuration = std::optional<std::span<const double>>;  // nothing: the present one

    // Throws Error(capacity) when the scene itself needs more. O(n log n).
    explicit SceneArrays(const SceneGraph& scene, const Capacities& capacities = {});
    SceneArrays(const SceneArrays&) = delete;
    SceneArrays& operator=(const SceneArrays&) = delete;

    const Capacities& capacities() const { return capacities_; }

    // Edits: rules and errors of SceneGraph, and Error(capacity). Only one thread at a time.
    void add_body(std::string_view name);
    void remove_body(std::string_view name);
    void attach(std::string_view root, std::string_view parent, const Pose& parent_from_root,
                const Joint& joint);
    void set_twist(std::string_view frame, const TwistEdge& edge);
    void set_twist_noise(std::string_view frame, Ref<const EdgeNoise> noise);  // null: exact
    void remove_twist(std::string_view frame);
    void add_stamped_pose(std::string_view frame, const StampedPose& entry,
                          std::optional<std::size_t> capacity, std::optional<double> window);
    void set_stamped_poses(std::string_view frame,
                           const Ref<const StampedPoses>& stamps);  // null: none are kept
    void set_group(const GroupSpecification& group);
    void remove_group(std::string_view name);
    // Without a parent, a root. Attributes, inertia, stamps and twist are set apart.
    void add_frame(const FrameSpecification& frame);
    void remove_frame(std::string_view name, bool with_subtree);
    void rename_frame(std::string_view name, std::string_view new_name);
    // The new edge has this noise, and with keeping_pose it comes on top of what the scene was
    // unsure of: see SceneEdit.
    void reparent(std::string_view frame, std::string_view parent, const Pose& parent_from_frame,
                  const Ref<const EdgeNoise>& noise = {});
    void reparent_keeping_pose(std::string_view frame, std::string_view parent,
                               const Configuration& q, const Ref<const EdgeNoise>& slip = {});
    void set_pose(std::string_view frame, const Pose& parent_from_frame);
    void set_noise(std::string_view frame, const Ref<const EdgeNoise>& noise);  // null: exact
    // A joint that stays keeps its entry's value; a new one begins at 0.
    void set_joint(std::string_view frame, const Joint& joint);
    void set_classes(std::string_view frame, std::vector<std::string> classes);
    void set_attributes(std::string_view frame, Attributes attributes);
    void set_shapes(std::string_view frame, std::span<const AttachedShape> shapes);
    void add_shape(std::string_view frame, const AttachedShape& shape);
    void set_inertia(std::string_view frame, const std::optional<Inertia>& inertia);
    void allow_collision(std::string_view a, std::string_view b, std::string_view reason);
    void forbid_collision(std::string_view a, std::string_view b);
    // Goes to a configuration: joint_count() values.
    void forward(std::span<const double> q);
    SceneGraph freeze() const;
    FrameSpecification specification(std::string_view frame) const;  // all that is said of a frame
    std::vector<std::string> group_names() const;
    GroupSpecification group(std::string_view name) const;

    // reference_from_target with its covariance, as tmkit::gaussian_pose has it; the writer's
    // query, since it uses scratch.
    GaussianPose gaussian_pose(std::string_view target, std::optional<std::string_view> reference,
                               const Configuration& q = std::nullopt);
    const EdgeNoise* noise(std::string_view frame) const;  // null when the edge is exact
    Ref<const EdgeNoise> twist_noise(
        std::string_view frame) const;  // null when its twist is exact, or there is none

    // The twist of a frame relative to another (the root of its tree), at the origin of `point`
    // (its own) and in the axes of `axes` (those of the other), as tmkit::related_twist has it;
    // without qd, joints say nothing of motion. For the writer, too. Throws Error(scene) where
    // nothing says how the one moves relative to the other.
    Vector6 related_twist(std::string_view frame, std::optional<std::string_view> reference,
                          std::optional<std::string_view> point,
                          std::optional<std::string_view> axes,
                          const Configuration& q = std::nullopt,
                          const Configuration& qd = std::nullopt);

    // Queries from any thread.
    std::size_t size() const { return static_cast<std::size_t>(counts_.load(frame_count)); }
    std::size_t joint_count() const { return static_cast<std::size_t>(counts_.load(entry_count)); }
    bool contains(std::string_view frame) const;
    std::optional<std::string> parent(std::string_view frame) const;  // nothing for a root
    std::vector<std::string> children(
        std::string_view frame) const;  // in insertion order. O(k log k) for k children
    std::vector<std::string> frame_names() const;
    std::vector<std::string> joint_names() const;
    bool is_allowed(std::string_view a, std::string_view b) const;
    Pose local_pose(std::string_view frame) const;  // parent_from_frame at joint value 0
    // The present configuration, and 7 numbers a frame (x, y, z, qx, qy, qz, qw) relative to its
    // root, by insertion. They throw Error(configuration) when there is no room; return how many
    // values, or frames, were written.
    std::size_t write_q(std::span<double> out) const;
    std::size_t write_poses(std::span<double> out) const;
    // Pose of target relative to reference, or to the root of its tree when there is none.
    Pose pose(std::string_view target, std::optional<std::string_view> reference = std::nullopt,
              const Configuration& q = std::nullopt) const;
    // The same at a moment, and twists by differences: see SceneGraph.
    Pose pose(std::string_view target, std::optional<std::string_view> reference,
              const Configuration& q, const Moment& moment) const;
    Vector6 twist_from_stamps(std::string_view target, std::optional<std::string_view> reference,
                              double first, double second, const Configuration& q,
                              StampPolicy policy) const;
    std::optional<StampedPoses> stamped_poses(std::string_view frame) const;
    std::string root(std::string_view frame) const;
    std::vector<std::string> ancestors(std::string_view frame) const;  // nearest first
    std::string body(std::string_view frame) const;
    std::vector<std::string> body_names() const;  // as SceneGraph has them
    std::vector<std::string> bodies_without_frames() const;
    bool has_body(std::string_view name) const {
        return body_names_.find(name) != none;
    }  // the writer
    std::optional<TwistEdge> twist(
        std::string_view frame) const;  // without its error, which is the writer's
    std::vector<std::string> twist_frames() const;
    // 6 x joint_count(), row-major, at the present configuration: see Layout::jacobian.
    void jacobian(std::string_view frame, std::span<double> rows) const;

    // The inner columns meet: for tests, and defined with them. Empty when all is well.
    std::string defects() const;

private:
    using Writer = SequenceLock::Writer;
    using Section = SequenceLock::Section;
    enum : std::int32_t { frame_count, entry_count, twist_count, count_of_counts };

    // How many edges lie between two frames and their nearest common ancestor.
    struct PathLengths {
        std::int32_t target = 0, reference = 0;
    };
    class View;  // for rules that are those of scenes, too: graph/scene_arrays_view.hpp
    class Path;  // between two frames, with its errors

    // What a new or changed joint is to be, all rules checked.
    struct JointPlan {
        JointType type = JointType::fixed;
        bool is_stated = true;
        Vector3 axis{0.0, 0.0, 1.0};
        JointNumbers numbers{};
        std::string_view name;
        Slot leader = none;
    };

    // Construction, with room for so much
    SceneArrays(const SceneGraph& scene, const Capacities& c, std::nullptr_t);
    void load(const SceneGraph& scene);
    void load_frame(const SceneGraph& scene, const FrameRecord& record, Slot slot);
    void load_twists(const SceneGraph& scene);
    FrameSpecification specification(Slot slot) const;
    std::optional<StampedPoses> history(Slot slot) const;  // for readers too
    GroupSpecification members_of(Slot group) const;

    // Rules, checked before anything is written
    Slot require_frame(std::string_view name) const;
    void require_new_name(std::string_view name) const;
    void require_fit(std::string_view text) const;
    void require_length(const Configuration& q) const;
    void require_room_for(const FrameSpecification& frame, bool with_body) const;
    Slot body_for(const FrameSpecification& frame, Slot parent) const;  // none: a new one
    // slot: the frame whose joint is changed, none for a new one
    JointPlan plan_joint(const Joint& joint, std::string_view name, Slot slot) const;
    void require_no_followers() const;  // of the frames that are marked
    Slot require_body(std::string_view name) const;
    Slot require_group(std::string_view name) const;
    Joint joint_of(Slot slot) const;
    // numbers: of the joint with this name and leader, checked
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
    // The pose of a frame from that of its parent, as Layout::forward has it; value_of gives the
    // configuration. The moved edge has no name: held in a variable that a pointer may mean, it
    // goes through memory, and that takes half as long again.
    template <class ValueOf> Pose refreshed(Slot slot, ValueOf&& value_of) const {
        const Slot parent = parent_[slot];
        if (parent == none) return pose_[slot];
        const std::int32_t entry = entry_[slot];
        if (entry == none) return composed(root_pose_[parent], pose_[slot]);
        const double value = multiplier_[slot] * value_of(entry) + offset_[slot];
        return composed(root_pose_[parent], moved(pose_[slot], type_[slot], axis_[slot], value));
    }
    void refresh(Slot slot);
    void refresh_subtree(Slot top);
    void refresh_after_joint(Slot slot);
    void change_parent(Slot moving, Slot parent, bool joins_parts);
    Slot take_body(std::string_view name);
    void append_twist(Slot slot, Slot reference);
    void mark_joined_twists(Slot moving, Slot parent, const Pose& pose, JointType type);
    template <class Goes> void drop_twists(Goes&& goes);  // of frames
    void drop_stamps(Slot slot, std::int32_t kept);       // but for the newest so many
    void insert_stamp(Slot slot, const StampedPose& entry);
    void clear_group(Slot group);
    std::size_t check_nested(std::string_view name, std::span<const std::string> groups);
    std::vector<std::string> sorted_groups() const;
    StampBounds bounds_of(Slot slot, std::size_t capacity, double window) const;
    void leave_body(Slot slot);
    template <class Change> void change_details(std::string_view frame, Change&& change);
    void drop_pair(Slot pair);
    std::int32_t mark_subtree(
        Slot top) const;  // and gathers it in `gathered_`, parents first; returns how many
    Slot next_in_subtree(Slot at, Slot top) const;

    // Walks, for the writer and for readers: bounded whatever they read
    std::int32_t depth(Slot slot) const;
    PathLengths path_lengths(Slot target, Slot reference) const;  // throws Error(disconnected)
    Pose edge(Slot slot, const Configuration& q) const;
    Pose edge_from(Slot slot, const Pose& pose, const Configuration& q) const;
    Pose pose_at(Slot slot, const Moment& moment) const;  // of an edge, at joint value 0
    template <class EdgeOf> Pose pose_down(std::int32_t edges, Slot slot, EdgeOf&& edge_of) const;
    template <class EdgeOf>
    Pose path_pose(Slot target, Slot reference,
                   EdgeOf&& edge_of) const;  // reference: none for the root
    Pose pose_between(Slot target, Slot reference, const Configuration& q) const;
    Pose pose_between(Slot target, Slot reference, const Configuration& q,
                      const Moment& moment) const;
    Slot reference_slot(std::optional<std::string_view> reference) const {
        return reference ? require_frame(*reference) : none;
    }
    // What read(slot) returns of a frame, for any thread; throws unknown_frame.
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

    Path path(Slot target, Slot reference, const Configuration& q) const;  // in scratch

    Capacities capacities_;
    mutable SequenceLock lock_;

    // Read by all, written under the lock.
    Column<std::int32_t> counts_{count_of_counts};
    NameTable frame_names_{capacities_.frames, capacities_.name_bytes};  // by slot
    NameTable joint_names_{capacities_.frames, capacities_.name_bytes};  // by slot of the frame
    NameTable body_names_{capacities_.bodies, capacities_.name_bytes};   // by body
    Column<Slot> parent_{capacities_.frames, none}, body_{capacities_.frames, none};
    SlotChains children_{capacities_.frames, capacities_.frames};
    SlotChains tops_{capacities_.bodies, capacities_.frames};  // of bodies: their topmost frames
    Column<char> bare_{capacities_.bodies};  // by body: it has a name, but no frame
    Column<FrameId> id_{capacities_.frames};
    Column<JointType> type_{capacities_.frames};
    Column<char> stated_{capacities_.frames, 1};  // 0: the motion of the edge is unknown
    Column<std::int32_t> entry_{capacities_.frames,
                                none};  // of the configuration, none when nothing moves the frame
    Column<double> multiplier_{capacities_.frames, 1.0}, offset_{capacities_.frames};
    Column<Vector3> axis_{capacities_.frames};
    Column<Pose> pose_{capacities_.frames}, root_pose_{capacities_.frames};
    Column<Slot> sequence_{capacities_.frames}, entries_{capacities_.frames};
    Column<double> q_{capacities_.frames};
    Column<Slot> twists_{capacities_.twists};  // the frames that have a twist edge, by insertion
    Column<Slot> twist_reference_{capacities_.frames,
                                  none};  // by frame: the body that its twist edge refers to
    Column<Vector6> twist_vector_{capacities_.frames};
    Column<Slot> newest_{capacities_.frames, none};  // by frame: its newest stamped pose
    Column<Slot> oldest_{capacities_.frames, none};  // and its oldest
    Column<std::int32_t> stamp_count_{capacities_.frames,
                                      none};  // by frame: of stamped poses; none: none are kept
    Column<std::uint64_t> stamp_capacity_{capacities_.frames};
    Column<double> stamp_window_{capacities_.frames}, stamp_{capacities_.stamps};
    Column<Pose> stamp_pose_{capacities_.stamps};  // by stamped pose
    Column<Slot> older_{capacities_.stamps,
                        none};  // by stamped pose: the one before it, or the next that is free
    Column<Slot> newer_{capacities_.stamps, none};  // and the one after it
    NameTable pairs_{capacities_.allowed_pairs,
                     sizeof(std::array<FrameId, 2>)};  // by their ids, the smaller first

    // The writer's own.
    Own<Slot> order_{capacities_.frames, none};
    Own<std::int32_t> position_{capacities_.frames};  // in order_
    Own<JointNumbers> numbers_{capacities_.frames};
    Own<char> moves_{capacities_.frames};         // whether a joint is on the way to the root
    Own<Slot> leader_{capacities_.frames, none};  // the frame whose joint this one mimics
    std::int32_t followers_ = 0;
    Own<Slot> inertia_frame_{capacities_.bodies, none};  // by body
    Own<Inertia> inertia_{capacities_.bodies};
    Own<Slot> first_shape_{capacities_.frames, none};
    Own<Ref<const FrameDetails>> details_{
        capacities_.frames};  // classes and attributes; what else they hold is elsewhere
    Own<Ref<const EdgeNoise>> twist_noise_{
        capacities_.frames};  // shared with whoever gave it; null: exact
    // By frame, with room for all; without sources: the edge is exact. None without capacity.
    Own<Ref<EdgeNoise>> noise_{capacities_.noise ? capacities_.frames : 0};
    NameTable group_names_{capacities_.groups, capacities_.name_bytes};
    Own<char> is_group_{capacities_.groups};
    // By group: the first of each kind.
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
