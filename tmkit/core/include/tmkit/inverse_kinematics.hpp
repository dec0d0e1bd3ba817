// Inverse kinematics: joint values that put a tip frame at a target pose.
//
// Method. Damped least squares: with the error e [m, rad] (six numbers) and the Jacobian J of the
// chain, the step is dq = J^T (J J^T + damping I)^-1 e. The damping grows with the squared error
// (Sugihara, "Solvability-unconcerned inverse kinematics by the Levenberg-Marquardt method", IEEE
// Trans. Robotics 2011). Steps are cautious far from the target and converge quadratically near it,
// also at singular poses. A joint that a step would move beyond a limit is fixed at the limit, and
// the step is computed again without it, so every iterate satisfies the limits. When an iteration
// no longer reduces the error, the next try starts from a random configuration. A seed makes the
// sequence reproducible.
//
// Chain. Only joints between tip and reference that the caller permits to move are variables. All
// others are folded into constant transforms once and axes are rotated onto z. The iteration uses a
// few small arrays on the stack. A chain may lead up from the reference and down to the tip (two
// arms), and a mimic joint may follow another.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "tmkit/collision_world.hpp"
#include "tmkit/scene_graph.hpp"

namespace tmkit {

inline constexpr std::size_t max_chain_joints = 64;

// Move the values of some entries of a measured start that are past a limit by more than
// limit_tolerance to the limit, if they are past it by at most 1e-3 rad or 1e-4 m.
void clamp_to_limits(const SceneGraph& scene, const std::vector<EntryLimits>& limits,
                     const std::vector<std::int32_t>& entries, std::vector<double>& q);

// The joints between two frames as a serial chain: reference_from_tip = C0 M1 C1 M2 ... Cn, with
// every M about or along z.
class Chain {
public:
    struct Segment {
        Matrix3 rotation;  // of the constant transform before the joint
        Vector3 translation;
        bool prismatic;
        std::int32_t column;  // index of the moving joint
        double multiplier, offset;
    };

    // Both frames must be in one tree. `entries`: configuration entries that move; the others are
    // read from q. Throws Error(configuration) for more than max_chain_joints on the chain.
    Chain(const Layout& layout, std::int32_t tip, std::int32_t reference,
          const std::vector<std::int32_t>& entries, const double* q);

    std::size_t joint_count() const { return joints_; }
    const std::vector<Segment>& segments() const { return segments_; }

    // Compute rotation and translation of the tip in the reference at joint values x, one a moving
    // entry.
    void forward(const double* x, Matrix3& rotation, Vector3& translation) const;
    // Compute also the 6 x joint_count Jacobian of the tip's origin, columns [linear, angular] in
    // reference axes.
    void jacobian(const double* x, Matrix3& rotation, Vector3& translation, Vector6* columns) const;
    Pose pose(const double* x) const;

    // Return an upper bound of the distance of the tip from the first joint (at `anchor`, fixed in
    // the reference); infinite if a prismatic joint is unlimited. `limits`: lower and upper by
    // moving joint.
    double reach(const std::vector<std::array<double, 2>>& limits) const;
    Vector3 anchor() const {
        return segments_.empty() ? last_translation_ : segments_.front().translation;
    }

private:
    std::size_t joints_;
    std::vector<Segment> segments_;
    Matrix3 last_rotation_;
    Vector3 last_translation_;
};

// Effort and tolerances of inverse kinematics.
struct IkSettings {
    static constexpr int default_restarts = 25, default_restarts_of_solutions = 100;

    std::uint64_t seed = 0;
    std::optional<int> restarts;       // random configurations tried after q
    int max_iterations = 100;          // of one try
    double position_tolerance = 1e-5;  // [m]
    double rotation_tolerance = 1e-5;  // [rad]; infinite: the orientation is free
    int max_solutions = 8;             // of solve_all
    double separation = 0.1;  // minimum difference of two solutions in some joint [rad or m]

    bool is_position_only() const { return std::isinf(rotation_tolerance); }
    bool operator==(const IkSettings&) const = default;
};

enum class InverseKinematicsStatus : std::uint8_t { solved, not_found, out_of_reach };

struct InverseKinematicsResult {
    InverseKinematicsStatus status = InverseKinematicsStatus::not_found;
    std::vector<double> q;  // full configuration; the best one if not solved
    double position_error = 0.0, rotation_error = 0.0;  // [m, rad]
    int iterations = 0;                                 // of all tries
    int restarts = 0;                                   // random configurations used
};

// An inverse kinematics problem: tip, reference, moving joints and a configuration.
class InverseKinematics {
public:
    // `entries` are configuration entries, each once. q is a full configuration whose moving
    // entries are within their limits after clamp_to_limits (else Error(configuration), naming
    // the joint). Entries of joints off the chain are unchanged. Throws Error(disconnected).
    InverseKinematics(const SceneGraph& scene, std::int32_t tip, std::int32_t reference,
                      const std::vector<std::int32_t>& entries, const std::vector<double>& q);

    const Chain& chain() const { return chain_; }
    const std::vector<std::array<double, 2>>& limits() const { return limits_; }
    const std::vector<std::int32_t>& entries() const { return entries_; }

    // Solve reference_from_tip = target, from q first and then from random configurations.
    InverseKinematicsResult solve(const Pose& target, const IkSettings& settings) const;

    // Make one try from the moving values x, in place; true if the tolerances are met. No heap
    // allocation.
    bool improve(const Pose& target, const IkSettings& settings, double* x, double errors[2],
                 int& iterations, bool with_limits = true) const;

    // Sample moving values within the limits; unlimited angles in -pi .. pi, unlimited lengths
    // within 1 m of q.
    template <class Generator> void sample(Generator& random, double* x) const {
        for (std::size_t i = 0; i < entries_.size(); ++i)
            x[i] = random.uniform(ranges_[i][0], ranges_[i][1]);
    }

    // Shift angles by whole turns to the nearest value to `guess` within the limits.
    void unwind(double* x, const double* guess) const;

    const std::vector<double>& base() const { return q_; }
    std::vector<double> full(const double* x) const;    // q with these moving values
    std::vector<double> moving(const double* q) const;  // the moving values of q
    bool out_of_reach(const Pose& target, const IkSettings& settings) const;
    // Return whether two frames (by number) have the same relative pose in every solution: each
    // moves with the tip or with the reference, whose relative pose the target fixes.
    bool is_fixed_by_target(FramePair pair) const;
    // Return whether a frame that does not move with the tip is in a list or below a frame of it.
    bool is_still_part_of(std::int32_t frame, const std::vector<std::string>& frames) const;

private:
    // The nearest frame at or above this one that a moving joint carries, or -1.
    std::int32_t mover(std::int32_t frame) const;

    SceneGraph scene_;
    std::int32_t tip_, reference_;
    std::vector<std::int32_t> entries_;
    std::vector<double> q_;
    Chain chain_;
    std::vector<std::array<double, 2>> limits_, ranges_;
    std::vector<bool> turns_;  // angles, for which a whole turn gives the same pose
};

// Number of rejections by each pair of frames: most frequent first, then by frame number.
struct PairCount {
    FramePair pair;
    std::int64_t count = 0;
};
class PairCounter {
public:
    void add(FramePair pair);
    std::vector<PairCount> sorted() const;

private:
    std::vector<PairCount> counts_;
};

struct InverseKinematicsSolutions {
    InverseKinematicsStatus status = InverseKinematicsStatus::not_found;
    std::vector<std::vector<double>> configurations;  // full configurations, by distance to q
    int tries = 0;
    int in_collision = 0;
    std::vector<PairCount> blocking;
    // proved: every solution collides, in frames that the target fixes.
    bool target_collides = false;
};

// Return up to `max_solutions` solutions that differ by more than `separation` in the maximum norm,
// sorted by that distance from q. With a world, only collision-free ones. A solution that collides
// in frames whose relative pose the target fixes (the hand and a wall) proves that all solutions
// collide, and the search ends. One such pair is then named, if possible one without movable
// frames. `interrupted` is called regularly and ends the search if it returns true.
InverseKinematicsSolutions solve_all(const InverseKinematics& problem, const Pose& target,
                                     const IkSettings& settings, const CollisionWorld* world,
                                     const std::function<bool()>& interrupted = {});

// Return the configuration entries of joints by name. Throws unknown_name; Error(configuration) for
// a mimic joint or one named twice.
std::vector<std::int32_t> joint_entries(const SceneGraph& scene,
                                        const std::vector<std::string>& joints);

// The joint of a configuration entry.
const Joint& joint_of_entry(const SceneGraph& scene, std::int32_t entry);

}  // namespace tmkit
