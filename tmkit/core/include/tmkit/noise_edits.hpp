// Edits of the errors of edges, and conditioning on measurements.
#pragma once

#include "tmkit/content_edits.hpp"

namespace tmkit {

class NoiseEdits : public ContentEdits {
public:
    using ContentEdits::ContentEdits;

    void set_noise(std::string_view frame, Ref<const EdgeNoise> noise);  // null: exact
    // In addition to the present noise.
    void add_noise(std::string_view frame, const EdgeNoise& noise);
    // Set the variance of a joint's value [rad^2 or m^2]: one source, for the joint and its mimic
    // joints.
    void add_joint_noise(std::string_view joint, double variance);
    ConditionReport condition(const Measurement& measurement, const double* q,
                              const ConditionOptions& options);

protected:
    void store_noise(FrameId frame, Ref<const EdgeNoise> noise);
    void correct_twist(FrameId id, const Vector6& xi, const Ref<const EdgeNoise>& noise);
    void correct_pose(FrameId id, const Pose& pose, const Ref<const EdgeNoise>& noise);
};

}  // namespace tmkit
