// Joints: the motion of a frame relative to its parent.
//
// At joint value v, parent_from_frame = pose * motion(v): rotation about the unit axis (revolute,
// continuous), translation along it (prismatic), identity (fixed). A free joint's pose is scene
// data and has no value. A mimic joint has no entry in the configuration: its value is multiplier *
// value(leader) + offset. Each joint stores its own limits. Those of an entry of the configuration
// also satisfy the limits of the joints that follow (EntryLimits).
#pragma once

#include <limits>
#include <string>

#include "tmkit/pose.hpp"
#include "tmkit/reference.hpp"

namespace tmkit {

enum class JointType : std::uint8_t { fixed, revolute, continuous, prismatic, free };

const char* name_of(JointType type);

// The number of a joint's type in digests and pickles; the last one is a pose without stated
// motion.
inline int joint_code(JointType type, bool is_stated) {
    return static_cast<int>(is_stated ? type : JointType::free) + (is_stated ? 0 : 1);
}

inline bool is_actuated(JointType type) {
    return type != JointType::fixed && type != JointType::free;
}

struct JointNumbers {
    static constexpr double unlimited = std::numeric_limits<double>::infinity();

    double lower = -unlimited, upper = unlimited;     // [rad or m]
    double velocity = unlimited, effort = unlimited;  // [rad/s or m/s]; [N m or N]
    double damping = 0.0, friction = 0.0;             // [N m s/rad or N s/m]; [N m or N]
    double mimic_multiplier = 1.0, mimic_offset = 0.0;

    const JointNumbers& numbers() const { return *this; }
    JointNumbers& numbers() { return *this; }
    bool operator==(const JointNumbers&) const = default;
};

struct Joint : Shared, JointNumbers {
    JointType type = JointType::fixed;
    // false: of type fixed, but the motion is unknown; the edge has a pose only.
    bool is_stated = true;
    std::string name;             // empty outside a scene, unique within one
    Vector3 axis{0.0, 0.0, 1.0};  // unit vector, in the frame itself
    std::string mimic;            // name of the leading joint; empty if none

    // Throws Error(scene) for a zero axis, NaN, lower > upper, a negative velocity or effort;
    // normalises the axis.
    void check();
    bool operator==(const Joint& other) const;
    bool moves_like(const Joint& other) const;  // ignores limits and names
};

// Limits of an entry of the configuration: within those of the leading joint and of all that follow
// it.
struct EntryLimits {
    double lower, upper;      // [rad or m]
    double velocity, effort;  // [rad/s or m/s]; [N m or N]; 0 if a file gives none
};

// Tolerance of limits, for the rounding of texts and float32 values.
inline constexpr double limit_tolerance = 1e-6;

// motion(v) for an actuated type about or along a unit axis.
inline Pose joint_motion(JointType type, const Vector3& axis, double value) {
    if (type == JointType::prismatic) return {value * axis, {0.0, 0.0, 0.0, 1.0}};
    return {{0.0, 0.0, 0.0}, quaternion_about(axis, value)};
}

// pose * motion(v).
inline Pose apply_joint(const Pose& pose, JointType type, const Vector3& axis, double value) {
    if (!is_actuated(type)) return pose;
    if (type == JointType::prismatic) return pose * joint_motion(type, axis, value);
    // a rotation moves no origin.
    return {pose.translation, compose_quaternions(pose.quat_xyzw, quaternion_about(axis, value))};
}

// The twist [linear, angular] of a point at unit speed of the configuration entry that moves a
// joint, in root axes. `frame` is the pose of the joint's frame at its present value, and the joint
// moves `multiplier` times as fast. The joint's motion does not change its own axis, so the axis
// may be read from the moved frame.
inline Vector6 joint_twist(JointType type, const Vector3& axis, double multiplier,
                           const Pose& frame, const Vector3& point) {
    const Vector3 direction = multiplier * frame.rotate(axis);
    if (type == JointType::prismatic)
        return {direction[0], direction[1], direction[2], 0.0, 0.0, 0.0};
    const Vector3 linear = cross(direction, point - frame.translation);
    return {linear[0], linear[1], linear[2], direction[0], direction[1], direction[2]};
}

}  // namespace tmkit
