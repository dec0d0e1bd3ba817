// Edits that add, remove and rename frames.
#pragma once

#include <algorithm>

#include "tmkit/edge_edits.hpp"

namespace tmkit {

using NumberedFrames = std::vector<std::pair<FrameId, FrameSpecification>>;

class FrameEdits : public EdgeEdits {
public:
    using EdgeEdits::EdgeEdits;

    // By default on a body of the same name.
    void add_root(std::string_view name, std::string_view body = {});
    void add_frame(const FrameSpecification& specification);
    // Add frames in insertion order; a parent or a mimic joint's leader may be later in the list.
    // All or nothing. With `joins`, twists that are already stated are omitted.
    void add_frames(const std::vector<FrameSpecification>& frames, bool joins = false);
    // Add frames with ids of another scene, which are free here; then the first id for new frames.
    void add_frames_with_ids(const NumberedFrames& frames, bool joins = false);
    void skip_ids(FrameId next) { scene_.next_frame_ = std::max(scene_.next_frame_, next); }
    void remove_frame(std::string_view name, bool with_subtree);
    void rename_frame(std::string_view name, std::string_view new_name);

protected:
    void add(const FrameSpecification& specification, FrameId id);
    void require_new_frame_name(std::string_view name) const;
    void add_parents_first(const NumberedFrames& frames);
    void give_inertia(const FrameSpecification& frame);
    // Unless the tree already states it.
    void join_twist(std::string_view frame, const TwistEdge& edge);
};

}  // namespace tmkit
