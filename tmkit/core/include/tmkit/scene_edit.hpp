// Many edits that make one new version of a scene, in place.
//
// A SceneEdit starts from a version, which stays as it was, and changes its own: what it shares with others is copied
// on the first touch, what is its own already is changed where it stands (persistent_map.hpp). So a thousand edits cost
// one version and not a thousand path copies. The edits of SceneGraph are SceneEdits of one step.
//
// Each edit holds all rules of the scene graph or throws Error, and then nothing has changed. After any edit `scene()`
// is a version like every other.
#pragma once

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "tmkit/leader_range.hpp"
#include "tmkit/scene_graph.hpp"

namespace tmkit {

struct FrameDifference;
struct SceneDifference;
using NumberedFrames = std::vector<std::pair<FrameId, FrameSpecification>>;

class SceneEdit {
public:
    explicit SceneEdit(const SceneGraph& scene) : scene_(scene) {}

    const SceneGraph& scene() const { return scene_; }
    SceneGraph take() && { return std::move(scene_); }

    void add_root(std::string_view name, std::string_view body = {});  // by default on a body of its own name
    void add_body(std::string_view name);     // without a frame yet; it is gone with its last one
    void remove_body(std::string_view name);  // without a frame
    void add_frame(const FrameSpecification& specification);
    // Frames in insertion order; a parent or a mimic joint's leader may come after. All or nothing.
    // With `joins`, twists that others say as well are left out.
    void add_frames(const std::vector<FrameSpecification>& frames, bool joins = false);
    // The same with the ids that the frames had elsewhere, which are free here; then the first id for frames to come.
    void add_frames_with_ids(const NumberedFrames& frames, bool joins = false);
    void skip_ids(FrameId next) { scene_.next_frame_ = std::max(scene_.next_frame_, next); }
    void remove_frame(std::string_view name, bool with_subtree);
    void rename_frame(std::string_view name, std::string_view new_name);
    // The new edge has this noise, and nothing of the old one: its pose is said anew. Null: exact.
    void reparent(std::string_view frame, std::string_view parent, const Pose& parent_from_frame,
                  Ref<const EdgeNoise> noise = {});
    // The new edge keeps the errors of all edges between its ends, source by source; `slip` comes on top.
    void reparent_keeping_pose(std::string_view frame, std::string_view parent, const double* q,
                               const Ref<const EdgeNoise>& slip = {});
    void set_pose(std::string_view frame, const Pose& parent_from_frame);
    // Hangs a root, and with it its tree, under a frame of another tree.
    void attach(std::string_view root, std::string_view parent, const Pose& parent_from_root, Joint joint);
    void set_twist(std::string_view frame,
                   const TwistEdge& edge);  // adds it, or changes the value of the one that is there
    void set_twist_noise(std::string_view frame, Ref<const EdgeNoise> noise);  // of the edge that is there; null: exact
    void remove_twist(std::string_view frame);
    // One more pose of the edge above a frame, which is then its pose when it is the newest; without limits those of
    // the history, or the usual ones. A history belongs to an edge: reparenting ends it.
    void add_stamped_pose(std::string_view frame, const StampedPose& entry, std::optional<std::size_t> capacity,
                          std::optional<double> window);
    void set_stamped_poses(std::string_view frame,
                           const Ref<const StampedPoses>& stamps);  // all at once; null takes them away
    // Turns the edges above a frame round, so that it is the root of its tree; nothing moves. O(depth log n). Throws
    // Error(scene) where a joint is above it.
    void make_root(std::string_view frame);
    void set_noise(std::string_view frame, Ref<const EdgeNoise> noise);  // null: exact
    void add_noise(std::string_view frame, const EdgeNoise& noise);      // besides what is there
    // A joint whose value is known with this variance (rad^2 or m^2): one source, for the joint and those that mimic
    // it.
    void add_joint_noise(std::string_view joint, double variance);
    ConditionReport condition(const Measurement& measurement, const double* q, const ConditionOptions& options);
    void set_joint(std::string_view frame, Joint joint);
    void set_classes(std::string_view frame, std::vector<std::string> classes);
    void set_shapes(std::string_view frame, std::vector<AttachedShape> shapes);
    void add_shape(std::string_view frame, const AttachedShape& shape);
    void set_attributes(std::string_view frame, Attributes attributes);
    void set_inertia(std::string_view frame, const std::optional<Inertia>& inertia);
    void allow_collision(std::string_view a, std::string_view b, std::string_view reason);
    void forbid_collision(std::string_view a, std::string_view b);
    void set_group(const GroupSpecification& group);  // makes or replaces
    void remove_group(std::string_view name);

    // Whole scenes. All or nothing; m is the number of frames that come in: O(m log n).
    // Every name of `other` gets the prefix; its roots hang under a frame by `joint`, at `pose`.
    void mount(const SceneGraph& other, std::string_view under, std::string_view prefix, const Pose& pose,
               const Joint& joint);
    // A root of `other` that is named like a frame here is that frame.
    void merge(const SceneGraph& other);
    // Keeps what stands below a frame, which becomes the only root.
    void extract(std::string_view frame);
    // What made b of a, done here. O(changes log n) where the changes are independent of each other, O(n log n) else.
    void apply(const SceneDifference& difference);

private:
    using Pair = SceneGraph::Pair;
    using LeaderRanges = std::unordered_map<FrameId, LeaderRange>;
    const FrameRecord& record(std::string_view name) const { return scene_.record(name); }
    const FrameRecord& record(FrameId id) const { return scene_.record(id); }
    const BodyRecord& body(BodyId id) const { return scene_.body(id); }
    FrameRecord& own(FrameId id);
    void all_or_nothing(const std::function<void()>& edits);
    // A frame moved, came, went or got another joint; `of_joint`: a joint came, went or changed with it.
    void note_change(FrameId id, bool of_joint);

    void add(const FrameSpecification& specification, FrameId id);
    void require_new_frame_name(std::string_view name) const;
    void add_parents_first(const NumberedFrames& frames);
    void give_inertia(const FrameSpecification& frame);
    void set_details(const FrameRecord& frame, FrameDetails details);
    template <class Change> void change_details(const FrameRecord& frame, Change&& change) {
        FrameDetails details = frame.details ? *frame.details : FrameDetails{};
        change(details);
        set_details(frame, std::move(details));
    }
    template <class Change> void change_body(BodyId id, Change&& change) {
        const Ref<BodyRecord> changed(new BodyRecord(body(id)));
        change(*changed);
        scene_.bodies_.assign(id, Ref<const BodyRecord>(changed));
    }
    void join_parts(const FrameRecord& moving) {  // a top of its body comes to hang off that: one top less
        change_body(moving.body, [&](BodyRecord& changed) { std::erase(changed.tops, moving.id); });
    }
    BodyId make_body(std::string_view name, std::vector<FrameId> tops);
    void correct_twist(FrameId id, const Vector6& xi, const Ref<const EdgeNoise>& noise);
    void correct_pose(FrameId id, const Pose& pose, const Ref<const EdgeNoise>& noise);
    void put_noise(FrameId frame, Ref<const EdgeNoise> noise);
    void check_new_stamps(const FrameSpecification& specification, const FrameRecord* parent) const;
    static void end_stamps(FrameRecord& changed);
    template <class Members, class Goes> void drop_members(Members GroupRecord::* members, Goes&& goes);
    void leave_groups(const std::vector<FrameId>& leaving);
    void forbid_collisions(FrameId frame);  // with any other

    Ref<const Joint> checked_joint(Joint joint, FrameId frame, std::string_view frame_name);
    void check_limits(const Joint& joint, FrameId id, const FrameRecord* leader);
    LeaderRanges leader_ranges() const;
    void put_joint(FrameId frame, const Ref<const Joint>& joint);
    void require_no_followers(const std::vector<FrameId>& leaving) const;  // ids ascending
    void drop_joint(const FrameRecord& record);

    void check_entry(const FrameSpecification& specification, const FrameRecord* parent) const;
    BodyId enter_body(const FrameSpecification& specification, FrameId frame, FrameId parent);
    void leave_body(const FrameRecord& record);
    void move(const FrameRecord& moving, const FrameRecord& parent, const Pose& pose, bool keep_twists = false);
    void drop_twist(FrameId id);
    void state_motion(FrameId frame);  // of the edge above it
    std::vector<FrameId> joined_twists(const FrameRecord& moving, const FrameRecord& parent, const Pose& pose,
                                       JointType type, std::vector<FrameId> ending, bool keep) const;
    void join_twist(std::string_view frame, const TwistEdge& edge);  // unless others of its tree say it

    bool add_one(const FrameDifference& frame);
    void change_edge(const std::string& name, const FrameSpecification& before, const FrameSpecification& after);
    void change_contents(const std::string& name, const FrameSpecification& before, const FrameSpecification& after);
    void take_inertia(const std::string& name);
    bool change_one(const FrameSpecification& before, const FrameSpecification& after);
    bool apply_one(const FrameDifference& frame);
    void apply_frames(const SceneDifference& difference);
    void rebuild(const SceneDifference& difference);

    void replace(const SceneGraph& scene) {
        scene_ = scene;
        ranges_.reset();
    }

    SceneGraph scene_;
    std::optional<LeaderRanges> ranges_;  // of joints that others follow; null: not known
};

}  // namespace tmkit
