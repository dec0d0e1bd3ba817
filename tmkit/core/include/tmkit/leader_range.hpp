// Limits of joints with mimic joints: values of a leading joint at which it and its followers
// satisfy their limits.
//
//     leader  [-3, 3]   <-  follower = 2 * leader + 0.2 in [-1, 1]   restricts it to [-0.6, 0.4]
#pragma once

#include <algorithm>
#include <utility>

#include "tmkit/joint.hpp"
#include "tmkit/scene_records.hpp"

namespace tmkit {

// Maximum length of a chain of mimic joints, since every query of a follower walks up to its
// leader.
inline constexpr std::size_t most_mimics = 100;

// Values of a leading joint at which it and its followers satisfy their limits.
struct LeaderRange {
    double lower = -Joint::unlimited, upper = Joint::unlimited;
    FrameId lowest = no_frame, highest = no_frame;  // frames whose limits these are
    std::size_t mimics = 0;                         // most rules between a follower and the leader

    static LeaderRange of(FrameId frame, JointType type, const JointNumbers& numbers) {
        if (type == JointType::continuous) return {.lowest = frame, .highest = frame};
        return {.lower = numbers.lower, .upper = numbers.upper, .lowest = frame, .highest = frame};
    }

    // Keep the values at which `multiplier * value + offset` is in the range of a follower, with
    // the given number of rules below.
    void narrow(const LeaderRange& follower, double multiplier, double offset, std::size_t below) {
        mimics = std::max(mimics, below + follower.mimics);
        LeaderRange range = follower;
        if (multiplier == 0.0) {
            const bool is_inside = offset >= follower.lower - limit_tolerance &&
                                   offset <= follower.upper + limit_tolerance;
            if (is_inside) return;
            range.lower = Joint::unlimited;
        } else {
            range.lower = (follower.lower - offset) / multiplier + 0.0;  // + 0.0 avoids -0.0
            range.upper = (follower.upper - offset) / multiplier + 0.0;
        }
        if (multiplier < 0.0) {
            std::swap(range.lower, range.upper);
            std::swap(range.lowest, range.highest);
        }
        if (range.lower > lower) {
            lower = range.lower;
            lowest = range.lowest;
        }
        if (range.upper < upper) {
            upper = range.upper;
            highest = range.highest;
        }
    }

    bool operator==(const LeaderRange&) const = default;

    bool is_empty() const {
        return lower > upper + limit_tolerance || lower == Joint::unlimited ||
               upper == -Joint::unlimited;
    }
};

}  // namespace tmkit
