// Edits of edges: moves, reparenting, change of the root, stamped poses.
#pragma once

#include "tmkit/twist_edits.hpp"

namespace tmkit {

class EdgeEdits : public TwistEdits {
public:
    using TwistEdits::TwistEdits;

    void set_pose(std::string_view frame, const Pose& parent_from_frame);
    // The new edge has this noise and none of the old one, since its pose is new. Null: exact.
    void reparent(std::string_view frame, std::string_view parent, const Pose& parent_from_frame,
                  Ref<const EdgeNoise> noise = {});
    // The new edge keeps the errors of all edges between its ends, source by source; `slip` is
    // added.
    void reparent_keeping_pose(std::string_view frame, std::string_view parent, const double* q,
                               const Ref<const EdgeNoise>& slip = {});
    // Attach a root, with its tree, to a frame of another tree.
    void attach(std::string_view root, std::string_view parent, const Pose& parent_from_root,
                Joint joint);
    // Reverse the edges above a frame, which becomes the root of its tree; nothing moves. O(depth
    // log n). Throws Error(scene) if a joint is above it.
    void make_root(std::string_view frame);
    // Add a stamped pose to the edge above a frame; the newest is the pose of the edge. Default
    // limits are those of the history, or the usual ones. A history belongs to an edge: reparenting
    // ends it.
    void add_stamped_pose(std::string_view frame, const StampedPose& entry,
                          std::optional<std::size_t> capacity, std::optional<double> window);
    // Replaces all; null removes them.
    void set_stamped_poses(std::string_view frame, const Ref<const StampedPoses>& stamps);

protected:
    void move(const FrameRecord& moving, const FrameRecord& parent, const Pose& pose,
              bool keep_twists = false);
    void state_motion(FrameId frame);  // of the edge above the frame
    void check_new_stamps(const FrameSpecification& specification, const FrameRecord* parent) const;
    static void end_stamps(FrameRecord& changed);
};

}  // namespace tmkit
