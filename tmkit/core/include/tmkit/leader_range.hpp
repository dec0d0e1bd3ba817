// Limits of joints that others mimic: values of a joint that leads at which it and the joints that
// follow it keep theirs.
//
//     leader  [-3, 3]   <-  follower = 2 * leader + 0.2 in [-1, 1]   leaves the leader [-0.6, 0.4]
#pragma once

#include <algorithm>
#include <utility>

#include "tmkit/joint.hpp"
#include "tmkit/scene_records.hpp"

namespace tmkit {

// Joints that mimic one another in a row, at most: every query of a follower climbs up to its
// leader.
inline constexpr std::size_t most_mimics = 100;

// Values of a joint that leads at which it and the joints that follow it keep their limits.
struct LeaderRange {
    double lower = -Joint::unlimited, upper = Joint::unlimited;
    FrameId lowest = no_frame, highest = no_frame;  // whose limits these are
    std::size_t mimics = 0;                         // most rules from a follower up to the leader

    static LeaderRange of(FrameId frame, JointType type, const JointNumbers& numbers) {
        if (type == JointType::continuous) return {.lowest = frame, .highest = frame};
        return {.lower = numbers.lower, .upper = numbers.upper, .lowest = frame, .highest = frame};
    }

    // Keeps the values at which `multiplier * value + offset` is in the range of a follower, so
    // many rules below.
    void narrow(const LeaderRange& follower, double multiplier, double offset, std::size_t below) {
        mimics = std::max(mimics, below + follower.mimics);
        LeaderRange kept = follower;
        if (multiplier == 0.0) {
            const bool is_inside = offset >= follower.lower - limit_tolerance &&
                                   offset <= follower.upper + limit_tolerance;
            if (is_inside) return;
            kept.lower = Joint::unlimited;
        } else {
            kept.lower = (follower.lower - offset) / multiplier + 0.0;  // not -0.0
            kept.upper = (follower.upper - offset) / multiplier + 0.0;
        }
        if (multiplier < 0.0) {
            std::swap(kept.lower, kept.upper);
            std::swap(kept.lowest, kept.highest);
        }
        if (kept.lower > lower) {
            lower = kept.lower;
            lowest = kept.lowest;
        }
        if (kept.upper < upper) {
            upper = kept.upper;
            highest = kept.highest;
        }
    }

    bool operator==(const LeaderRange&) const = default;

    bool is_empty() const {
        return lower > upper + limit_tolerance || lower == Joint::unlimited ||
               upper == -Joint::unlimited;
    }
};

}  // namespace tmkit
