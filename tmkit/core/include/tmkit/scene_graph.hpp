// Persistent scene graph: one consistent version of the world, as an immutable value.
//
// Every SceneGraph satisfies the rules below. A SceneEdit (scene_edit.hpp) makes a new version that
// shares nearly everything with the old one, which does not change; an edit without effect gives a
// version that shares everything (`same_version`). Any thread may read any version.
//
// The data are in persistent maps (persistent_map.hpp):
//
//     frames   id   -> FrameRecord     hot: parent, body, joint type, pose; pointer to cold details
//     names    name -> id
//     joints   id   -> Joint           actuated, not mimic; its rank is the configuration entry
//     joint_names, bodies, body_names
//     allowed  (id, id) -> reason      pairs of frames that may touch, in both directions
//     groups   name -> GroupRecord
//     twists   id   -> body            frames with a twist edge, with its reference body
//     noises   id   -> EdgeNoise       frames whose edge is not exact
//
// Ids of frames survive rename and reparenting and grow with insertion, so the map of frames is in
// insertion order. A mimic joint is in `joint_names` but not in `joints`.
//
// Rules:
//
//   * names of frames, of joints and of bodies are unique;
//   * a parent exists, and there is no cycle;
//   * a frame is on one body;
//   * the frames of one body within one tree are joined by fixed edges between frames of that body,
//     so there is at most one path of poses between two bodies;
//   * the pose of an edge inside a body does not change;
//   * no group contains itself;
//   * no two paths of twists lead from one body to frames of another that are joined by poses, and
//     none leads back (scene_edit_twists.cpp).
//
// Costs: an edit or a query of one frame O(log n); of its ancestors O(depth log n); of children or
// classes O(log n) plus the size of the result (frame_index.hpp). The first `layout` of a version
// is O(n log n), or O(n) after few changes from a version with a layout; it is then shared.
// `same_content` has the cost of `difference`.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tmkit/frame_index.hpp"
#include "tmkit/persistent_map.hpp"
#include "tmkit/scene_records.hpp"

namespace tmkit {

// Rule of a joint value: value = multiplier * q[entry] + offset, with all mimic rules up to the
// leader combined. The tree and the layout both use it, which gives the same bits.
struct JointRule {
    std::size_t entry = 0;
    double multiplier = 1.0, offset = 0.0;
    double value(const double* q) const { return multiplier * q[entry] + offset; }
};

inline constexpr std::size_t most_layout_changes = 6;  // maximum for which a layout is updated

struct LastHash;

// Data that versions share and copies of a version have in common.
struct SceneMaps {
    FrameMap frames_;
    PersistentMap<Ref<const Name>, FrameId, NameLess> names_;
    PersistentMap<FrameId, Ref<const Joint>> joints_;
    PersistentMap<Ref<const Name>, FrameId, NameLess> joint_names_;
    PersistentMap<BodyId, Ref<const BodyRecord>> bodies_;
    PersistentMap<Ref<const Name>, BodyId, NameLess> body_names_;
    PersistentMap<std::pair<FrameId, FrameId>, Ref<const Name>> allowed_;
    PersistentMap<Ref<const Name>, Ref<const GroupRecord>, NameLess> groups_;
    PersistentMap<FrameId, BodyId> twists_;
    PersistentMap<FrameId, Ref<const EdgeNoise>> noises_;
    FrameId next_frame_ = 1;
    BodyId next_body_ = 1;
    // A version few changes away from one with a layout stores that layout and the frames that were
    // moved, added, removed or got another joint. Its own layout is computed from it.
    Ref<const Layout> layout_before_;
    std::array<FrameId, most_layout_changes> changed_{};
    std::uint32_t change_count_ = 0;
    bool joints_as_before_ = true;  // no joint was added, removed or changed since
    Ref<FrameIndex> index_;         // null without frames
    Ref<LastHash> last_hash_;       // as for index_
};

class SceneGraph : SceneMaps {  // empty by default
public:
    static constexpr std::size_t most_changes = most_layout_changes;

    // Queries.
    std::size_t size() const { return frames_.size(); }
    std::size_t joint_count() const { return joints_.size(); }
    FrameId next_frame_id() const { return next_frame_; }
    const FrameRecord* find(std::string_view name) const;
    const FrameRecord* find(FrameId id) const {
        const Ref<const FrameRecord>* match = frames_.find(id);
        return match ? match->get() : nullptr;
    }
    bool has_group(std::string_view name) const { return groups_.find(name) != nullptr; }
    // Specification that creates this frame again.
    FrameSpecification specification(std::string_view name) const;
    const FrameRecord& record(std::string_view name) const;  // throws unknown_name
    const FrameRecord& record(FrameId id) const { return **frames_.find(id); }
    const BodyRecord& body(BodyId id) const { return **bodies_.find(id); }
    FrameId joint_frame(std::string_view joint_name) const;  // throws unknown_name
    FrameId root_of(FrameId id) const;
    // Frames by id, in insertion order unless stated otherwise. O(log n + results), and O(log n)
    // for each frame that changed since the version of the previous such query. The first one of a
    // lineage is O(n log n).
    std::vector<FrameId> children(FrameId parent) const {
        return index_ ? index_->children(frames_, parent) : std::vector<FrameId>{};
    }
    std::vector<FrameId> roots() const { return children(no_frame); }
    // Parents before children.
    std::vector<FrameId> subtree(FrameId top) const { return index_->subtree(frames_, top); }
    std::vector<FrameId> frames_of_class(std::string_view name) const {
        return index_ ? index_->of_class(frames_, name) : std::vector<FrameId>{};
    }
    // See FrameIndex::class_like.
    std::string class_like(std::string_view name) const {
        return index_ ? index_->class_like(frames_, name) : std::string();
    }
    // visit(record), in insertion order.
    template <class Visit> void for_each_frame(Visit&& visit) const {
        frames_.for_each([&](FrameId, const Ref<const FrameRecord>& frame) { visit(*frame); });
    }
    bool is_ancestor(FrameId ancestor, FrameId frame) const;  // also true for the frame itself
    // Of its body, in the axes of this frame.
    std::optional<Inertia> inertia(std::string_view frame) const;
    bool is_allowed(std::string_view a, std::string_view b) const;
    bool is_allowed(FrameId a, FrameId b) const;
    std::vector<std::string> frame_names() const;
    std::vector<std::string> joint_names() const;
    // By entry of the configuration.
    std::vector<FrameId> joint_frames() const { return joints_.keys(); }
    // By entry of the configuration; O(joints log n).
    std::vector<EntryLimits> entry_limits() const;
    bool has_followers() const { return joint_names_.size() > joints_.size(); }
    // In the order of their first frames; then those without, by name.
    std::vector<std::string> body_names() const;
    std::vector<std::string> bodies_without_frames() const;  // without frames, by name
    // Null for an unknown body.
    const BodyId* find_body(std::string_view name) const { return body_names_.find(name); }
    bool has_body(std::string_view name) const { return find_body(name) != nullptr; }
    bool is_bare(std::string_view name) const { return body(*body_names_.find(name)).tops.empty(); }
    BodyId body_id(std::string_view name) const;  // throws unknown_name
    // Ids ascending; throws unknown_name.
    std::vector<FrameId> frames_of_body(std::string_view name) const;
    std::optional<TwistEdge> twist(std::string_view frame) const;
    std::vector<FrameId> frames_with_twists() const { return twists_.keys(); }
    // Throws Error(scene) if the path of a twist edge shares an edge between two bodies with the
    // path of two frames of one tree: the twist then moves one relative to the other. With
    // `unstamped`, edges with stamped poses are skipped.
    void require_no_twist_on_path(std::string_view target, std::string_view reference,
                                  bool unstamped = false) const;
    std::size_t twist_count() const { return twists_.size(); }
    // Of a frame that has a twist edge.
    BodyId twist_reference(FrameId id) const { return *twists_.find(id); }
    // Call visit(frame id, reference body) for each twist edge, in ascending order of ids.
    template <class Visit> void for_each_twist(Visit&& visit) const { twists_.for_each(visit); }
    void for_each_body(auto&& visit) const {  // visit(body id)
        bodies_.for_each([&](BodyId id, const Ref<const BodyRecord>&) { visit(id); });
    }
    std::vector<FrameId> frames_with_noise() const { return noises_.keys(); }
    bool has_noise() const { return !noises_.empty(); }
    std::vector<AllowedPair> allowed_pairs() const;
    std::vector<std::string> group_names() const;           // in the order of their names
    GroupSpecification group(std::string_view name) const;  // throws unknown_name
    // Each after the groups that it contains.
    std::vector<GroupSpecification> groups_inside_out() const;
    // With those of nested groups, ids ascending.
    std::vector<FrameId> frames_of_group(std::string_view name) const;
    // Groups that name the frame itself; with `nested`, also those that contain such a group.
    std::vector<std::string> groups_of(std::string_view frame, bool nested = false) const;
    // The frames from one to another: up to their nearest common ancestor and down. Throws
    // Error(disconnected).
    std::vector<FrameId> path(FrameId from, FrameId to) const;
    // The rule by which the joint above a frame, which must be actuated, follows the configuration.
    JointRule joint_rule(const FrameRecord& record) const;
    // Value of the joint above a frame at q; throws Error(configuration) if q is null.
    double joint_value(const FrameRecord& record, const double* q) const;
    // Pose of target relative to reference at q (q may be null if no joint is on the path).
    Pose pose(const FrameRecord& target, const FrameRecord& reference, const double* q) const;
    Pose pose(std::string_view target, std::string_view reference, const double* q) const {
        const FrameRecord& to = record(target);  // if both are unknown, the error names the first
        return pose(to, record(reference), q);
    }
    // The poses of several targets, each with the bits of `pose`; by default relative to the root
    // of each target's tree. Consecutive siblings share the path of their parent.
    std::vector<Pose> poses(const std::vector<std::string>& targets,
                            std::optional<std::string_view> reference, const double* q) const;
    // Pose at a time, by the stamped poses of the edges on the path that have them. Throws
    // Error(stamp) outside of a history.
    Pose pose(std::string_view target, std::string_view reference, const double* q,
              const Moment& moment) const;
    Ref<const StampedPoses> stamped_poses(std::string_view frame) const;  // null without a history
    // The oldest and the newest stamp at which every stamped edge between two frames has a pose.
    // There is no common time if the first is later; nullopt if no edge has stamps. Throws
    // Error(disconnected).
    std::optional<std::array<double, 2>> common_stamps(std::string_view a,
                                                       std::string_view b) const;
    // The constant twist of target relative to reference between its poses at two stamps.
    Vector6 twist_from_stamps(std::string_view target, std::string_view reference, double first,
                              double second, const double* q, StampPolicy policy) const;
    const Layout& layout() const;
    // In it.
    std::int32_t frame_number(std::string_view name) const {
        return layout().index_of(record(name).id);
    }

    bool same_version(const SceneGraph& other) const;
    bool same_content(const SceneGraph& other) const;  // compares insertion order, not ids
    // Equal for equal content, stable across processes, not cryptographic. O(changes log n) from
    // the last version of the lineage with a sum; O(n log n) for the first, after a rename, and for
    // frames with changed errors.
    ContentSum content_sum() const;
    std::uint64_t content_hash() const;  // half of the sum
    std::string content_bytes() const;   // equal exactly for equal content: the input of a digest

    // Call visit(id, before, after) for each frame whose record differs between two versions, in
    // ascending order of ids; `before` or `after` is null if the frame is missing. O(changes log n)
    // for versions of a lineage.
    template <class Visit>
    static void for_each_changed_frame(const SceneGraph& a, const SceneGraph& b, Visit&& visit) {
        for_each_changed<&SceneMaps::frames_>(a, b, visit);
    }
    // Call visit for bodies, pairs of frames that may touch, and groups.
    template <class Visit>
    static void for_each_changed_body(const SceneGraph& a, const SceneGraph& b, Visit&& visit) {
        for_each_changed<&SceneMaps::bodies_>(
            a, b, [&](BodyId, auto* before, auto* after) { visit(before, after); });
    }
    template <class Visit>
    static void for_each_changed_pair(const SceneGraph& a, const SceneGraph& b, Visit&& visit) {
        for_each_changed<&SceneMaps::allowed_>(a, b,
                                               [&](const auto& pair, auto* before, auto* after) {
            if (pair.first < pair.second) visit(pair.first, pair.second, before, after);
        });
    }
    template <class Visit>
    static void for_each_changed_group(const SceneGraph& a, const SceneGraph& b, Visit&& visit) {
        for_each_changed<&SceneMaps::groups_>(a, b,
                                              [&](const auto& name, auto* before, auto* after) {
            if (!before || !after || !before->same_content(*after)) visit(name->text);
        });
    }

    // Check balance, order and cross references of the inner maps, for tests (defined in
    // tests/support/defects.cpp). Return an empty string if they are consistent.
    std::string defects() const;

private:
    friend class SceneEditState;
    friend class BodyEdits;
    friend class JointEdits;
    friend class ContentEdits;
    friend class NoiseEdits;
    friend class TwistEdits;
    friend class EdgeEdits;
    friend class FrameEdits;
    friend class SceneEdit;
    std::string defects_of_maps() const;
    template <auto map, class Visit>
    static void for_each_changed(const SceneMaps& a, const SceneMaps& b, Visit&& visit) {
        const auto record = [](const auto* value) { return value ? value->get() : nullptr; };
        std::remove_cvref_t<decltype(a.*map)>::for_each_difference(
            a.*map, b.*map, [&](const auto& key, auto* before, auto* after) {
            visit(key, record(before), record(after));
        });
    }
    using Pair = std::pair<FrameId, FrameId>;

    Ref<Layout> fresh_layout() const;
    Ref<Layout> update_layout() const;  // from layout_before_; null if that is impossible

    std::size_t pair_count() const { return allowed_.size() / 2; }
    bool has_pair(std::string_view a, std::string_view b, std::string_view reason) const;
    std::optional<bool> same_changes(const SceneGraph& other) const;
    bool same_all(const SceneGraph& other) const;

    bool add_changes(const SceneGraph& before, ContentSum& sum) const;
    bool add_frame_changes(const SceneGraph& before, ContentSum& sum) const;
    bool add_frames(const SceneGraph& before, const std::vector<FrameId>& ids,
                    ContentSum& sum) const;

    LazyRef<Layout> layout_;
    // The hash, or 0 before it is computed. A copy may be edited and has a hash of its own.
    struct Hash : std::atomic<std::uint64_t> {
        Hash() noexcept : atomic(0) {}
        Hash(const Hash&) noexcept : Hash() {}
        Hash& operator=(const Hash&) noexcept {
            store(0, std::memory_order_relaxed);
            return *this;
        }
    };
    mutable Hash hash_;
};

// The version of a lineage whose content was summed last; the next sum adds the difference to it.
struct LastHash : Shared {
    std::mutex mutex;
    SceneGraph scene;  // without index and layout
    ContentSum sum{};
};

}  // namespace tmkit
