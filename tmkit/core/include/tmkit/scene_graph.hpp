// The persistent scene graph: one consistent version of the world, as an immutable value.
//
// Holding a SceneGraph means that every rule below holds for it. A SceneEdit (scene_edit.hpp) makes
// a new version that shares nearly everything with the old one, which stays as it was; one that
// changes nothing gives a version that shares everything (`same_version`). Any thread may read any
// version.
//
// Inside are persistent maps (persistent_map.hpp):
//
//     frames   id   -> FrameRecord     hot: parent, body, joint type, pose; cold details behind a
//     pointer names    name -> id joints   id   -> Joint           actuated, not mimic; its rank is
//     the entry in the configuration joint_names, bodies, body_names allowed  (id, id) -> reason
//     pairs of frames that may touch, each both ways groups   name -> GroupRecord twists   id   ->
//     body            frames with a twist edge, and the body that it refers to noises   id   ->
//     EdgeNoise       frames whose edge is not exact
//
// Frames have ids that survive rename and reparenting and grow with insertion, so that the map of
// frames is in insertion order. A mimic joint is in `joint_names` but not in `joints`.
//
// Rules: names of frames, joints and bodies are unique, each for itself; a parent exists; no cycle;
// a frame sits on one body; the frames of one body within one tree are joined by fixed edges
// between frames of that body, so there is at most one path of poses between two bodies; the pose
// of an edge inside a body does not change; no group holds itself; no two paths of twists lead from
// one body to frames of another that are joined by poses, and none leads back
// (scene_edit_twists.cpp).
//
// Costs: an edit or a query of one frame O(log n); those that look at ancestors O(depth log n);
// those that look at children or classes O(log n) plus what they return (frame_index.hpp); `layout`
// on first use of a version O(n log n), or O(n) after few changes from a version that had its own,
// then shared. `same_content` costs what `difference` does.
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

// Which entry of the configuration moves a joint, and how: value = multiplier * q[entry] + offset,
// with all mimic rules on the way to the leader made one. Asked by the tree and by the layout, so
// that both answer with the same bits.
struct JointRule {
    std::size_t entry = 0;
    double multiplier = 1.0, offset = 0.0;
    double value(const double* q) const { return multiplier * q[entry] + offset; }
};

inline constexpr std::size_t most_layout_changes = 6;  // from which a layout is mended, see below

struct LastHash;

// What versions share, and copies of a version have alike.
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
    // A version few changes away from one that was laid out remembers that layout and which frames
    // moved, came, went or got another joint, so that its own is made from it.
    Ref<const Layout> layout_before_;
    std::array<FrameId, most_layout_changes> changed_{};
    std::uint32_t change_count_ = 0;
    bool joints_as_before_ = true;  // no joint came, went or changed since
    Ref<FrameIndex> index_;         // null while there is no frame
    Ref<LastHash> last_hash_;       // as index_
};

class SceneGraph : SceneMaps {  // empty when it is made
public:
    static constexpr std::size_t most_changes = most_layout_changes;

    // Queries.
    std::size_t size() const { return frames_.size(); }
    std::size_t joint_count() const { return joints_.size(); }
    FrameId next_frame_id() const { return next_frame_; }
    const FrameRecord* find(std::string_view name) const;
    const FrameRecord* find(FrameId id) const {
        const Ref<const FrameRecord>* found = frames_.find(id);
        return found ? found->get() : nullptr;
    }
    bool has_group(std::string_view name) const { return groups_.find(name) != nullptr; }
    FrameSpecification specification(std::string_view name) const;  // what makes this frame again
    const FrameRecord& record(std::string_view name) const;         // throws unknown_name
    const FrameRecord& record(FrameId id) const { return **frames_.find(id); }
    const BodyRecord& body(BodyId id) const { return **bodies_.find(id); }
    FrameId joint_frame(std::string_view joint_name) const;  // throws unknown_name
    FrameId root_of(FrameId id) const;
    // Frames by id, in insertion order where not said otherwise. O(log n + found), and O(log n) for
    // each frame that changed since the version of the previous such query; the first one of a
    // scene and its later versions O(n log n).
    std::vector<FrameId> children(FrameId parent) const {
        return index_ ? index_->children(frames_, parent) : std::vector<FrameId>{};
    }
    std::vector<FrameId> roots() const { return children(no_frame); }
    std::vector<FrameId> subtree(FrameId top) const {
        return index_->subtree(frames_, top);
    }  // parents before children
    std::vector<FrameId> frames_of_class(std::string_view name) const {
        return index_ ? index_->of_class(frames_, name) : std::vector<FrameId>{};
    }
    std::string class_like(std::string_view name) const {  // see frame_index.hpp
        return index_ ? index_->class_like(frames_, name) : std::string();
    }
    template <class Visit>
    void for_each_frame(Visit&& visit) const {  // visit(record), in insertion order
        frames_.for_each([&](FrameId, const Ref<const FrameRecord>& frame) { visit(*frame); });
    }
    bool is_ancestor(FrameId ancestor, FrameId frame) const;  // true also when they are the same
    std::optional<Inertia> inertia(
        std::string_view frame) const;  // of its body, in the axes of this frame
    bool is_allowed(std::string_view a, std::string_view b) const;
    bool is_allowed(FrameId a, FrameId b) const;
    std::vector<std::string> frame_names() const;
    std::vector<std::string> joint_names() const;
    std::vector<FrameId> joint_frames() const {
        return joints_.keys();
    }  // by entry of the configuration
    std::vector<EntryLimits> entry_limits() const;  // likewise; O(joints log n)
    bool has_followers() const { return joint_names_.size() > joints_.size(); }
    std::vector<std::string> body_names()
        const;  // in the order of their first frames; then those without, by name
    std::vector<std::string> bodies_without_frames() const;  // without a frame, by name
    const BodyId* find_body(std::string_view name) const {
        return body_names_.find(name);
    }  // null: no such body
    bool has_body(std::string_view name) const { return find_body(name) != nullptr; }
    bool is_bare(std::string_view name) const { return body(*body_names_.find(name)).tops.empty(); }
    BodyId body_id(std::string_view name) const;  // throws unknown_name
    std::vector<FrameId> frames_of_body(
        std::string_view name) const;  // ids ascending; throws unknown_name
    std::optional<TwistEdge> twist(std::string_view frame) const;
    std::vector<FrameId> frames_with_twists() const { return twists_.keys(); }
    // Throws Error(scene) where the path of a twist edge shares an edge between two bodies with the
    // path of two frames of one tree: then the one moves relative to the other by that twist, too.
    // Edges with stamped poses are not looked at when `unstamped`.
    void require_no_twist_on_path(std::string_view target, std::string_view reference,
                                  bool unstamped = false) const;
    std::size_t twist_count() const { return twists_.size(); }
    BodyId twist_reference(FrameId id) const {
        return *twists_.find(id);
    }  // of a frame that has a twist edge
    // Calls visit(frame id, body that it moves relative to) for each twist edge, in ascending order
    // of ids.
    template <class Visit> void for_each_twist(Visit&& visit) const { twists_.for_each(visit); }
    void for_each_body(auto&& visit) const {  // visit(body id)
        bodies_.for_each([&](BodyId id, const Ref<const BodyRecord>&) { visit(id); });
    }
    std::vector<FrameId> frames_with_noise() const { return noises_.keys(); }
    bool has_noise() const { return !noises_.empty(); }
    std::vector<AllowedPair> allowed_pairs() const;
    std::vector<std::string> group_names() const;               // in the order of their names
    GroupSpecification group(std::string_view name) const;      // throws unknown_name
    std::vector<GroupSpecification> groups_inside_out() const;  // each after those that it holds
    std::vector<FrameId> frames_of_group(
        std::string_view name) const;  // with those of nested groups, ids ascending
    // Groups that name the frame itself; `nested`: or that hold such a group.
    std::vector<std::string> groups_of(std::string_view frame, bool nested = false) const;
    // The frames from one to another: up to their nearest common ancestor and down. Throws
    // Error(disconnected).
    std::vector<FrameId> path(FrameId from, FrameId to) const;
    // How the joint above a frame, which must be actuated, follows the configuration.
    JointRule joint_rule(const FrameRecord& record) const;
    // Value of the joint above a frame at q; throws Error(configuration) when q is null.
    double joint_value(const FrameRecord& record, const double* q) const;
    // Pose of target relative to reference at q (q may be null when no joint is on the path).
    Pose pose(const FrameRecord& target, const FrameRecord& reference, const double* q) const;
    Pose pose(std::string_view target, std::string_view reference, const double* q) const {
        const FrameRecord& to = record(target);  // of two that are not there, the first is named
        return pose(to, record(reference), q);
    }
    // The poses of several targets, each with the bits of `pose`; relative to the root of each
    // target's own tree without a reference. Consecutive siblings share the path of their parent.
    std::vector<Pose> poses(const std::vector<std::string>& targets,
                            std::optional<std::string_view> reference, const double* q) const;
    // The same at a moment: where edges on the path have stamped poses, by these. Throws
    // Error(stamp) outside of one's.
    Pose pose(std::string_view target, std::string_view reference, const double* q,
              const Moment& moment) const;
    Ref<const StampedPoses> stamped_poses(std::string_view frame) const;  // null when none are kept
    // The oldest and the newest stamp between which every stamped edge between two frames has a
    // pose: none where the first is later; nothing where no edge is stamped. Throws
    // Error(disconnected).
    std::optional<std::array<double, 2>> common_stamps(std::string_view a,
                                                       std::string_view b) const;
    // The constant twist of target relative to reference that leads from where it is at one stamp
    // to where at the other.
    Vector6 twist_from_stamps(std::string_view target, std::string_view reference, double first,
                              double second, const double* q, StampPolicy policy) const;
    const Layout& layout() const;
    std::int32_t frame_number(std::string_view name) const {
        return layout().index_of(record(name).id);
    }  // in it

    bool same_version(const SceneGraph& other) const;
    bool same_content(const SceneGraph& other) const;  // insertion order counts, ids do not
    // Equal for equal content, stable across processes, not cryptographic. O(changes log n) from
    // the version of the lineage that was summed last; O(n log n) for the first, after a rename,
    // and where frames with errors changed.
    ContentSum content_sum() const;
    std::uint64_t content_hash() const;  // half of it
    std::string content_bytes() const;  // equal exactly for equal content: what a digest is made of

    // Calls visit(id, before, after) for each frame whose record differs between two versions, in
    // ascending order of ids; `before` or `after` is null where the frame is missing. O(changes log
    // n) between versions made from one another.
    template <class Visit>
    static void for_each_changed_frame(const SceneGraph& a, const SceneGraph& b, Visit&& visit) {
        for_each_changed<&SceneMaps::frames_>(a, b, visit);
    }
    // The same for bodies, pairs of frames that may touch, and groups.
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

    // Every inner map is balanced and ordered, and all cross references meet: for tests, and
    // defined with them (tests/support/defects.cpp). Empty when all is well.
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
    Ref<Layout> mended_layout() const;  // from layout_before_; null when that cannot be

    std::size_t pair_count() const { return allowed_.size() / 2; }
    bool has_pair(std::string_view a, std::string_view b, std::string_view reason) const;
    std::optional<bool> same_changes(const SceneGraph& other) const;
    bool same_all(const SceneGraph& other) const;

    bool add_changes(const SceneGraph& before, ContentSum& sum) const;
    bool add_frame_changes(const SceneGraph& before, ContentSum& sum) const;
    bool add_frames(const SceneGraph& before, const std::vector<FrameId>& ids,
                    ContentSum& sum) const;

    LazyRef<Layout> layout_;
    // Once computed, else 0; a copy may be edited and has its own.
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

// The version of a lineage whose content was summed last: the next one adds what differs from it.
struct LastHash : Shared {
    std::mutex mutex;
    SceneGraph scene;  // with neither index nor layout
    ContentSum sum{};
};

}  // namespace tmkit
