// Stamped poses: a short history of the pose of an edge.
//
// A tracked object is observed at some times and queried at others. An edge may therefore have
// stamped poses, each parent_from_frame at joint value 0, sorted by stamp. Stamps are [s] on a
// clock of the user.
//
// The history has two bounds: `capacity`, the number of poses, and `window`, the maximum age of the
// oldest relative to the newest [s]. Poses may be added in any order. A stamp that exists already
// is rejected, since two poses at one time contradict each other. A stamp older than the window, or
// than all of a full history, is rejected too, since it would be removed at once. A new pose
// removes those that have become too old.
//
// At a stamp the result is the pose given for it, bit for bit. Histories are immutable, shared
// between versions.
//
// A stamped pose may have a covariance, in the frame's tangent. The errors of such poses are
// independent of each other and of all other errors, except that the newest of them shares its
// error with the edge, unless the edge got another. A pose without a covariance has the error of
// the edge. Between two stamps the error is carried along to first order:
//
//     screw          T(s) = T0 exp(s x), x = log(T0^-1 T1):   B = s Jr(s x) Jr^-1(x),   A = 1 - B
//     interpolated   theta as above in SO(3); rho: A = (1 - s) R(s)^T R0,  B = s R(s)^T R1
//
// with xi(s) = A xi0 + B xi1. A + B = 1 for a screw: an error that both ends share stays the same.
// Source: Sola, Deray and Atchuthan, "A micro Lie theory for state estimation in robotics", the
// Jacobians of Exp, Log and composition.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <string_view>
#include <vector>

#include "tmkit/error.hpp"
#include "tmkit/noise.hpp"
#include "tmkit/pose.hpp"
#include "tmkit/reference.hpp"

namespace tmkit {

// Dimensions of the noise source of a covariance, at most.
inline constexpr std::size_t columns_of_covariance = 6;

struct StampCovariance : Shared {
    explicit StampCovariance(const Covariance& covariance) : value(covariance) {}
    Covariance value;
};

struct StampedPose {
    double stamp = 0.0;
    Pose pose;
    Ref<const StampCovariance> covariance{};  // null: the error is that of the edge

    bool same_covariance(const StampedPose& other) const {
        return covariance == other.covariance ||
               (covariance && other.covariance && covariance->value == other.covariance->value);
    }
    bool operator==(const StampedPose& other) const {
        return stamp == other.stamp && pose == other.pose && same_covariance(other);
    }
};

// closest: the nearer in time, of two equally near the newer. preceding: the last one before.
// interpolated: the origin along a straight line, the orientation along the shorter arc
// (Pose::interpolate). screw: with a constant twist. clamped: interpolated, and outside of the
// history the pose at its nearer end.
enum class StampPolicy : unsigned char { closest, preceding, interpolated, screw, clamped };

// Throws unknown_name for an unknown policy.
StampPolicy stamp_policy(std::string_view name);

// The time of a query.
struct Moment {
    double stamp = 0.0;
    StampPolicy policy = StampPolicy::interpolated;
};

struct StampedPoses : Shared {
    static constexpr std::size_t usual_capacity = 32;
    static constexpr double without_end = std::numeric_limits<double>::infinity();

    std::size_t capacity = usual_capacity;
    double window = without_end;
    std::vector<StampedPose> entries;  // ascending

    double oldest() const { return entries.front().stamp; }
    double newest() const { return entries.back().stamp; }

    // Throws Error(stamp) for a capacity of 0, a window that is not positive, or poses that violate
    // these limits.
    void check(std::string_view frame) const;
    // Return the history with one more pose, under these limits. Throws Error(stamp) if the pose is
    // rejected.
    Ref<const StampedPoses> with(const StampedPose& entry, std::size_t most, double seconds,
                                 std::string_view frame) const;
    // Throws Error(stamp) outside of the history.
    Pose at(const Moment& moment, std::string_view frame) const;
    // Return the error of the edge at a time; null if it is exact. `of_edge` is the present error
    // of the edge, `parent` the name in the labels of new sources. Throws as `at`.
    Ref<const EdgeNoise> noise_at(const Moment& moment, std::string_view frame,
                                  std::string_view parent,
                                  const Ref<const EdgeNoise>& of_edge) const;
    bool has_covariances() const;
    // Return the history with another covariance of one pose. Throws Error(stamp) if there is none
    // at the stamp.
    StampedPoses with_covariance(double stamp, const Covariance& covariance) const;
    // Return the history with every pose p replaced by parent_from_old_parent * p.
    StampedPoses moved(const Pose& parent_from_old_parent) const;

    bool operator==(const StampedPoses& other) const {
        return capacity == other.capacity && window == other.window && entries == other.entries;
    }

private:
    // The poses before and after a time; twice the same if one alone answers.
    std::array<const StampedPose*, 2> around(const Moment& moment, std::string_view frame) const;
};

// A pose at a stamp between those of two others, or at one of them.
Pose pose_between(const StampedPose& before, const StampedPose& after, const Moment& moment);

// The error of an edge with this stamped pose, from a new source; null if it is exact, or has no
// covariance.
Ref<const EdgeNoise> noise_of(const StampedPose& entry, std::string_view frame,
                              std::string_view parent);

// Throws Error(stamp) unless the second of two stamps is later.
void require_later(double first, double second, std::string_view frame);

// The constant twist (at the frame's origin and in its axes, linear part first) that moves one pose
// to another.
Vector6 twist_between(const Pose& before, const Pose& after, double seconds);

// The stamps of a history from `oldest` to `newest` that one more pose may have. Throws
// Error(stamp) if it is rejected.
struct StampBounds {
    std::size_t count = 0, capacity = 0;
    double window = 0.0, oldest = 0.0, newest = 0.0;
};
StampBounds bounds_of(const StampedPoses& poses);
void require_admission(double stamp, const StampBounds& bounds, std::string_view frame);
Error duplicate_stamp(double stamp, std::string_view frame);
void require_limits(std::size_t capacity, double window, std::string_view frame);
Error outside_stamps(double stamp, const StampBounds& bounds, std::string_view frame);

}  // namespace tmkit
