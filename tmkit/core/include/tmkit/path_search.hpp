// Paths through configuration space: search, straight lines of the tip, and the final check.
//
// Search. RRT-Connect (Kuffner and LaValle, ICRA 2000): one tree grows from the start, one from the
// goals; each turn the smaller one takes a step towards a random configuration and the other then
// tries to reach the new node by straight steps. Two thirds of the random configurations are drawn
// from where a way is likely. The straight motions to the goals are tried before any tree grows. A
// path found is shortened by dropping points and cutting corners. Iterations decide and a clock
// only stops, so a seed gives one path.
//
// Checks. The start is checked whole, everything else through a view that holds only the pairs that
// the moving joints can change. Motions are proved free (collision/swept_motion.cpp). Without
// proofs, a motion is free where it is proved or, where it is not, places at steps of at most
// `resolution` of any moving joint are.
//
// Constraints. With path constraints, samples and the steps of the trees are projected, edges are
// as many straight pieces as keep the constraints, and cuts count only where they are shorter; see
// search/path_checker.hpp. Each goal of a continuous joint is shifted by whole turns to where it is
// nearest to the start.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "tmkit/collision_world.hpp"
#include "tmkit/inverse_kinematics.hpp"

namespace tmkit {

using Configurations = std::vector<std::vector<double>>;

// --- the final check
// -------------------------------------------------------------------------------------------------

struct RecheckOptions {
    double resolution = 0.003;     // radians or metres of any joint between two checks
    std::int32_t tool_frame = -1;  // frame number, -1 for none
    double tool_travel = 0.001;    // metres of the tool frame's origin between two checks
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

// Checks full configurations joined by straight joint motions, in order, and reports the first
// failure. Limits bind the joints that move on the path; where the others stand is not its
// business. After an interruption the result means nothing.
RecheckResult recheck_path(const CollisionWorld& world, const Configurations& path,
                           const RecheckOptions& options,
                           const std::function<bool()>& interrupted = {});

// The first of these entries whose value is outside its limits by more than limit_tolerance, or -1.
std::int32_t find_out_of_limits(const std::vector<EntryLimits>& limits,
                                const std::vector<std::int32_t>& entries, const double* q);

// --- the search
// ------------------------------------------------------------------------------------------------------

// What a frame keeps along a path; everything but `of_frame` is in the root of its tree.
struct PathConstraint {
    enum class Kind : std::uint8_t { orientation, line, plane };
    Kind kind;
    std::int32_t frame;
    Vector3
        of_frame;  // orientation: the axis, a unit vector of the frame; else the point of the frame
    Vector3 direction;  // unit: that the axis points in, of the line, or normal to the plane
    Vector3 point;      // of the line or plane
    double tolerance;   // radians or metres, positive
};

// A search: from the start to any of the goals, by the joints of some configuration entries.
struct PathQuery {
    std::vector<std::int32_t> entries;  // that move
    std::vector<double> start;          // full configuration
    Configurations goals;               // full configurations; only the moving entries count
    std::vector<PathConstraint> constraints{};
    // Full configurations of paths that are tried before any tree grows, in order: joined to the
    // start, and to the goal that is nearest to their end, by straight motions.
    std::vector<Configurations> known{};
};

// Effort and resolution of a search.
struct PathSettings {
    std::uint64_t seed = 0;
    std::int64_t max_iterations = 50000;
    double step = 0.5;         // longest edge of a tree, Euclidean over the moving joints
    double resolution = 0.02;  // radians or metres of any joint between two samples
    bool proved = true;        // motions of the path are proved free
    std::int64_t shortcut_iterations = 100;
    double time_limit = std::numeric_limits<double>::infinity();  // seconds

    bool operator==(const PathSettings&) const = default;
};

enum class PathStatus : std::uint8_t {
    solved,
    start_in_collision,
    goal_in_collision,  // every goal is in collision or out of limits
    start_out_of_limits,
    goal_out_of_limits,  // every goal is out of limits
    start_violates_constraint,
    goal_violates_constraint,  // every goal does
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
    FramePair straight;       // that the straight motion to the nearest goal is not free of
    std::int32_t joint = -1;  // of ..._out_of_limits
};

// `interrupted` is called now and then; true ends the search.
PathResult search_path(const CollisionWorld& world, const PathQuery& query,
                       const PathSettings& settings, const std::function<bool()>& interrupted = {});

// --- straight lines of the tip
// ---------------------------------------------------------------------------------------

struct StraightLineSettings {
    double position_step = 0.005;  // metres between two solutions
    double rotation_step = 0.05;   // radians between two solutions
    double max_joint_jump = 0.3;   // radians or metres of any joint between two solutions
    double deviation = 0.0005;     // metres of the tip from the line, anywhere between two rows
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
    Configurations path;    // full configurations, as far as it came
    double fraction = 1.0;  // of the line, where it failed
    FramePair pair;
    std::int32_t joint = -1;
    std::int64_t checks = 0;
};

// Moves the tip of the problem from where it is at the problem's q straight to the target:
// translation linearly, rotation along the shorter arc. Each solution starts from the one before.
StraightLineResult straight_line(const InverseKinematics& problem, const Pose& target,
                                 const CollisionWorld* world, const StraightLineSettings& settings);

}  // namespace tmkit
