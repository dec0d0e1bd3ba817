// Edits of twist edges.
#pragma once

#include "tmkit/noise_edits.hpp"

namespace tmkit {

class TwistEdits : public NoiseEdits {
public:
    using NoiseEdits::NoiseEdits;

    // Adds it, or changes the value of the existing edge.
    void set_twist(std::string_view frame, const TwistEdge& edge);
    // Of an existing edge; null: exact.
    void set_twist_noise(std::string_view frame, Ref<const EdgeNoise> noise);
    void remove_twist(std::string_view frame);

protected:
    void drop_twist(FrameId id);
    std::vector<FrameId> find_redundant_twists(const FrameRecord& moving, const FrameRecord& parent,
                                               const Pose& pose, JointType type,
                                               std::vector<FrameId> ending, bool keep) const;
};

}  // namespace tmkit
