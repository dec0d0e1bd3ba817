// Paths in configuration space: search, straight lines of the tip, and the final check.
//
// Search. RRT-Connect (Kuffner and LaValle, ICRA 2000): one tree grows from the start, one from the
// goals. In each iteration the smaller tree takes a step towards a random configuration, and the
// other tries to reach the new node by straight steps. Random configurations are drawn near the
// trees, as in dynamic-domain RRTs (Yershova, Jaillet, Simeon and LaValle, ICRA 2005), around nodes
// that were drawn seldom, as in expansive-space trees (Hsu, Latombe and Motwani, ICRA 1997). Where
// steps fail, the ends of several are first tested in lanes (collision/lanes.hpp), after Thomason,
// Kingston and Kavraki, "Motions in microseconds via vectorized sampling-based planning" (ICRA
// 2024). The straight motions to the goals are tried before any tree grows. A solution is shortened
// by removing points and cutting corners. Results depend on iteration counts, and a time limit only
// ends the search, so a seed gives one path.
//
// Checks. Starts and goals that are slightly past a limit are moved to it. The start is checked
// with all pairs, all else through a view of the pairs that the moving joints can change. Motions
// are proved free (collision/swept_motion.cpp). Without proofs, a motion is also free if its
// samples are, at steps of at most `resolution` of any moving joint.
//
// Constraints. With path constraints, samples and the steps of the trees are projected, edges
// consist of straight pieces that satisfy the constraints, and cuts count only if they are shorter;
// see search/path_checker.hpp. Each goal of a continuous joint is shifted by whole turns to the
// value nearest to the start.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "tmkit/collision_world.hpp"
#include "tmkit/inverse_kinematics.hpp"

namespace tmkit {

using Configurations = std::vector<std::vector<double>>;

// --- final check

struct RecheckOptions {
    double resolution = 0.003;     // spacing of checks in any joint [rad or m]
    std::int32_t tool_frame = -1;  // frame number, -1 for none
    double tool_travel = 0.001;    // spacing of checks along the tool frame's origin [m]
};

enum class RecheckStatus : std::uint8_t { ok, collision, out_of_limits };

struct RecheckResult {
    RecheckStatus status = RecheckStatus::ok;
    std::int64_t segment = -1;  // the motion from row `segment` to the next
    double fraction = 0.0;      // within the segment
    FramePair pair;
    std::int32_t joint = -1;  // configuration entry outside its limits
    std::vector<double> q;
    std::int64_t checks = 0;
};

// Check full configurations joined by straight joint motions, in order, and return the first
// failure. Limits apply to the joints that move on the path, not to the others. After an
// interruption the result is undefined.
RecheckResult recheck_path(const CollisionWorld& world, const Configurations& path,
                           const RecheckOptions& options,
                           const std::function<bool()>& interrupted = {});

// Return the first of these entries whose value is outside its limits by more than limit_tolerance,
// or -1.
std::int32_t find_out_of_limits(const std::vector<EntryLimits>& limits,
                                const std::vector<std::int32_t>& entries, const double* q);

// --- search

// Constraint on a frame along a path; all fields but `of_frame` are in root axes.
struct PathConstraint {
    enum class Kind : std::uint8_t { orientation, line, plane };
    Kind kind;
    std::int32_t frame;
    // orientation: the axis, a unit vector of the frame; else the point of the frame.
    Vector3 of_frame;
    // Unit vector: target of the axis, direction of the line, or normal of the plane.
    Vector3 direction;
    Vector3 point;     // of the line or plane
    double tolerance;  // [rad or m], positive
};

// A search from the start to any goal, by the joints of some configuration entries.
struct PathQuery {
    std::vector<std::int32_t> entries;  // moving entries
    std::vector<double> start;          // full configuration
    Configurations goals;               // full configurations; only the moving entries count
    std::vector<PathConstraint> constraints{};
    // Full configurations of paths that are tried before any tree grows, in order: joined by
    // straight motions to the start, and to the goal that is nearest to their end.
    std::vector<Configurations> known{};
};

// Effort and resolution of a search.
struct PathSettings {
    std::uint64_t seed = 0;
    std::int64_t max_iterations = 250000;
    double step = 1.0;         // longest edge of a tree, Euclidean over the moving joints
    double resolution = 0.02;  // spacing of samples in any joint [rad or m]
    bool proved = true;        // motions of the path are proved free
    std::int64_t shortcut_iterations = 100;
    double time_limit = std::numeric_limits<double>::infinity();  // [s]

    bool operator==(const PathSettings&) const = default;
};

enum class PathStatus : std::uint8_t {
    solved,
    start_in_collision,
    goal_in_collision,  // every goal is in collision or out of limits
    start_out_of_limits,
    goal_out_of_limits,  // every goal is out of limits
    start_violates_constraint,
    goal_violates_constraint,  // every goal violates a constraint
    no_path,                   // within the iterations
    time_limit,
    recheck_failed,  // of planners whose paths are checked afterwards
    interrupted,
};

struct PathResult {
    PathStatus status = PathStatus::no_path;
    Configurations path;  // full configurations; empty unless solved
    std::int64_t goal_index = -1;
    std::int64_t iterations = 0;
    std::int64_t checks = 0;  // configurations checked
    double length = 0.0;      // Euclidean over the moving joints
    std::vector<PairCount> blocking;
    FramePair pair;           // of start_in_collision or goal_in_collision
    FramePair straight;       // first contact of the straight motion to the nearest goal
    std::int32_t joint = -1;  // of ..._out_of_limits
};

// `interrupted` is called regularly; true ends the search.
PathResult search_path(const CollisionWorld& world, const PathQuery& query,
                       const PathSettings& settings, const std::function<bool()>& interrupted = {});

// --- straight lines of the tip

struct StraightLineSettings {
    double position_step = 0.005;  // spacing of solutions [m]
    double rotation_step = 0.05;   // spacing of solutions [rad]
    double max_joint_jump = 0.3;   // of any joint between two solutions [rad or m]
    double deviation = 0.0005;     // of the tip from the line, anywhere between two rows [m]
    double resolution = 0.01;      // of the collision check
    bool position_only = false;

    bool operator==(const StraightLineSettings&) const = default;
};

enum class StraightLineStatus : std::uint8_t {
    solved,
    unreachable,
    joint_limit,
    joint_jump,
    collision
};

struct StraightLineResult {
    StraightLineStatus status = StraightLineStatus::solved;
    Configurations path;    // full configurations, up to the failure
    double fraction = 1.0;  // of the line, up to the failure
    FramePair pair;
    std::int32_t joint = -1;
    std::int64_t checks = 0;
};

// Move the tip of the problem from its pose at the problem's q straight to the target: translation
// linearly, rotation along the shorter arc. Each solution starts from the one before.
StraightLineResult straight_line(const InverseKinematics& problem, const Pose& target,
                                 const CollisionWorld* world, const StraightLineSettings& settings);

}  // namespace tmkit
