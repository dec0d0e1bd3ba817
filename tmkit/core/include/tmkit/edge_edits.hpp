// Edits of the poses of edges: moves, reparenting, another root, stamped poses.
#pragma once

#include "tmkit/twist_edits.hpp"

namespace tmkit {

class EdgeEdits : public TwistEdits {
public:
    using TwistEdits::TwistEdits;

    void set_pose(std::string_view frame, const Pose& parent_from_frame);
    // The new edge has this noise, and nothing of the old one: its pose is said anew. Null: exact.
    void reparent(std::string_view frame, std::string_view parent, const Pose& parent_from_frame,
                  Ref<const EdgeNoise> noise = {});
    // The new edge keeps the errors of all edges between its ends, source by source; `slip` comes
    // on top.
    void reparent_keeping_pose(std::string_view frame, std::string_view parent, const double* q,
                               const Ref<const EdgeNoise>& slip = {});
    // Hangs a root, and with it its tree, under a frame of another tree.
    void attach(std::string_view root, std::string_view parent, const Pose& parent_from_root,
                Joint joint);
    // Turns the edges above a frame round, so that it is the root of its tree; nothing moves.
    // O(depth log n). Throws Error(scene) where a joint is above it.
    void make_root(std::string_view frame);
    // One more pose of the edge above a frame, which is then its pose when it is the newest;
    // without limits those of the history, or the usual ones. A history belongs to an edge:
    // reparenting ends it.
    void add_stamped_pose(std::string_view frame, const StampedPose& entry,
                          std::optional<std::size_t> capacity, std::optional<double> window);
    void set_stamped_poses(
        std::string_view frame,
        const Ref<const StampedPoses>& stamps);  // all at once; null takes them away

protected:
    void move(const FrameRecord& moving, const FrameRecord& parent, const Pose& pose,
              bool keep_twists = false);
    void state_motion(FrameId frame);  // of the edge above it
    void check_new_stamps(const FrameSpecification& specification, const FrameRecord* parent) const;
    static void end_stamps(FrameRecord& changed);
};

}  // namespace tmkit
