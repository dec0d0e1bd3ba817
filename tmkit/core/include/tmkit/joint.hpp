// Joints: how a frame moves relative to its parent.
//
// A frame at joint value v stands at  parent_from_frame = pose * motion(v): rotation about the unit
// axis (revolute, continuous), translation along it (prismatic), nothing (fixed). A free joint's
// pose is scene data and has no value. A mimic joint has no entry in the configuration: its value
// is multiplier * value(leader) + offset. Each joint stores its own limits; those of an entry of
// the configuration also keep the limits of the joints that follow (EntryLimits).
#pragma once

#include <limits>
#include <string>

#include "tmkit/pose.hpp"
#include "tmkit/reference.hpp"

namespace tmkit {

enum class JointType : std::uint8_t { fixed, revolute, continuous, prismatic, free };

const char* name_of(JointType type);

// The number of a joint's type in digests and pickles: behind the types, that of a pose without
// stated motion.
inline int joint_code(JointType type, bool is_stated) {
    return static_cast<int>(is_stated ? type : JointType::free) + (is_stated ? 0 : 1);
}

inline bool is_actuated(JointType type) {
    return type != JointType::fixed && type != JointType::free;
}

struct JointNumbers {
    static constexpr double unlimited = std::numeric_limits<double>::infinity();

    double lower = -unlimited, upper = unlimited;     // radians or metres
    double velocity = unlimited, effort = unlimited;  // rad/s or m/s; N m or N
    double damping = 0.0, friction = 0.0;             // N m s/rad or N s/m; N m or N
    double mimic_multiplier = 1.0, mimic_offset = 0.0;

    const JointNumbers& numbers() const { return *this; }
    JointNumbers& numbers() { return *this; }
    bool operator==(const JointNumbers&) const = default;
};

struct Joint : Shared, JointNumbers {
    JointType type = JointType::fixed;
    bool is_stated =
        true;          // false: of type fixed, but the motion is unknown; the edge has a pose only
    std::string name;  // empty until the joint is in a scene; then unique
    Vector3 axis{0.0, 0.0, 1.0};  // unit, in the frame itself
    std::string mimic;            // name of the leading joint; empty when none

    // Throws Error(scene) for a zero axis, NaN, lower > upper, a negative velocity or effort;
    // normalises the axis.
    void check();
    bool operator==(const Joint& other) const;
    bool moves_like(const Joint& other) const;  // limits and names aside
};

// What an entry of the configuration may be: within the limits of the joint that leads and of all
// that follow it.
struct EntryLimits {
    double lower, upper;      // radians or metres
    double velocity, effort;  // rad/s or m/s; N m or N; 0 where a file gives none
};

// Configurations outside a limit by no more than this count as inside: what a text or a float32
// rounds away.
inline constexpr double limit_tolerance = 1e-6;

// motion(v) for an actuated type about or along a unit axis.
inline Pose joint_motion(JointType type, const Vector3& axis, double value) {
    if (type == JointType::prismatic) return {value * axis, {0.0, 0.0, 0.0, 1.0}};
    return {{0.0, 0.0, 0.0}, quaternion_about(axis, value)};
}

// pose * motion(v)
inline Pose moved(const Pose& pose, JointType type, const Vector3& axis, double value) {
    if (!is_actuated(type)) return pose;
    if (type == JointType::prismatic) return pose * joint_motion(type, axis, value);
    return {pose.translation,
            composed_quaternions(pose.quat_xyzw,
                                 quaternion_about(axis, value))};  // a turn moves no origin
}

// The twist [linear, angular] of a point at unit speed of the configuration entry that moves a
// joint, all in the axes of the root: `frame` is the pose of the joint's frame at its present
// value, and the joint turns `multiplier` times as fast. The joint's motion leaves its own axis
// where it is, so the axis may be read from the moved frame.
inline Vector6 joint_twist(JointType type, const Vector3& axis, double multiplier,
                           const Pose& frame, const Vector3& point) {
    const Vector3 direction = multiplier * frame.rotate(axis);
    if (type == JointType::prismatic)
        return {direction[0], direction[1], direction[2], 0.0, 0.0, 0.0};
    const Vector3 linear = cross(direction, point - frame.translation);
    return {linear[0], linear[1], linear[2], direction[0], direction[1], direction[2]};
}

}  // namespace tmkit
