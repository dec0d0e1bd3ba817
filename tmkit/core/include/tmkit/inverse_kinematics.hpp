// Inverse kinematics: joint values that put a tip frame at a target pose.
//
// Method. Damped least squares: with the error e (metres and radians, six numbers) and the Jacobian
// J of the chain, the step is  dq = J^T (J J^T + damping I)^-1 e.  The damping grows with the
// squared error (Sugihara, "Solvability-unconcerned inverse kinematics by the Levenberg-Marquardt
// method", IEEE Trans. Robotics 2011), so steps are careful far away and quadratic close by, and
// singular poses do no harm. Joints that a step would push past a limit are held there and the step
// is computed again without them, so every iterate satisfies the limits. When an iteration no
// longer gains, the next try starts from a random configuration; a seed makes the whole sequence
// reproducible.
//
// Chain. Only the joints between tip and reference matter, and only those the caller lets move:
// everything else is folded into constant transforms once, axes are turned onto z, and the
// iteration then touches a handful of small arrays on the stack. A chain may run up from the
// reference and down to the tip (two arms), and a mimic joint may follow another.
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

// The joints between two frames, as a serial chain  reference_from_tip = C0 M1 C1 M2 ... Cn  with
// every M about or along z.
class Chain {
public:
    struct Segment {
        Matrix3 rotation;  // of the constant before the joint
        Vector3 translation;
        bool prismatic;
        std::int32_t column;  // which of the moving joints
        double multiplier, offset;
    };

    // Both frames must be in one tree. `entries`: configuration entries that move; the others are
    // read from q. Throws Error(configuration) for more than max_chain_joints on the chain.
    Chain(const Layout& layout, std::int32_t tip, std::int32_t reference,
          const std::vector<std::int32_t>& entries, const double* q);

    std::size_t joint_count() const { return joints_; }
    const std::vector<Segment>& segments() const { return segments_; }

    // Rotation and translation of the tip in the reference at joint values x (one for each moving
    // entry).
    void forward(const double* x, Matrix3& rotation, Vector3& translation) const;
    // The same, and the 6 x joint_count Jacobian of the tip's origin, columns [linear, angular] in
    // reference axes.
    void jacobian(const double* x, Matrix3& rotation, Vector3& translation, Vector6* columns) const;
    Pose pose(const double* x) const;

    // The tip is never farther from the first joint (at `anchor`, fixed in the reference) than
    // this; infinite when a prismatic joint is unlimited. `limits`: lower and upper by moving
    // joint.
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
    double position_tolerance = 1e-5;  // metres
    double rotation_tolerance = 1e-5;  // radians; infinite: the orientation is free
    int max_solutions = 8;             // of solve_all
    double separation = 0.1;  // two solutions differ by more in some joint, radians or metres

    bool is_position_only() const { return std::isinf(rotation_tolerance); }
    bool operator==(const IkSettings&) const = default;
};

enum class InverseKinematicsStatus : std::uint8_t { solved, not_found, out_of_reach };

struct InverseKinematicsResult {
    InverseKinematicsStatus status = InverseKinematicsStatus::not_found;
    std::vector<double> q;  // full configuration; the best found when not solved
    double position_error = 0.0, rotation_error = 0.0;  // metres, radians
    int iterations = 0;                                 // of all tries
    int restarts = 0;                                   // random configurations used
};

// A problem made ready: which frame, relative to which, by which joints, around which
// configuration.
class InverseKinematics {
public:
    // `entries` are configuration entries, each once; q a full configuration whose moving entries
    // are within their limits (else Error(configuration) naming the joint). Entries of joints off
    // the chain stay. Throws Error(disconnected).
    InverseKinematics(const SceneGraph& scene, std::int32_t tip, std::int32_t reference,
                      const std::vector<std::int32_t>& entries, const std::vector<double>& q);

    const Chain& chain() const { return chain_; }
    const std::vector<std::array<double, 2>>& limits() const { return limits_; }
    const std::vector<std::int32_t>& entries() const { return entries_; }

    // reference_from_tip = target, trying q first and then random configurations.
    InverseKinematicsResult solve(const Pose& target, const IkSettings& settings) const;

    // One try from the moving values x (changed in place); true when the tolerances are met. No
    // heap allocation.
    bool improve(const Pose& target, const IkSettings& settings, double* x, double errors[2],
                 int& iterations, bool with_limits = true) const;

    // Random moving values within the limits; unlimited angles in -pi .. pi, unlimited lengths
    // within 1 m of q.
    template <class Generator> void sample(Generator& random, double* x) const {
        for (std::size_t i = 0; i < entries_.size(); ++i)
            x[i] = random.uniform(ranges_[i][0], ranges_[i][1]);
    }

    // Turn angles by whole turns to where they are nearest to `near`, within the limits.
    void unwind(double* x, const double* near) const;

    const std::vector<double>& base() const { return q_; }
    std::vector<double> full(const double* x) const;    // q with the moving values put in
    std::vector<double> moving(const double* q) const;  // the moving values of q
    bool out_of_reach(const Pose& target, const IkSettings& settings) const;
    // Whether two frames (by number) stand to each other alike in every solution: each moves as one
    // with the tip or with the reference, whose pose relative to each other the target fixes.
    bool is_fixed_by_target(FramePair pair) const;
    // Whether a frame that does not move as one with the tip is one of some, or hangs off one.
    bool is_still_part_of(std::int32_t frame, const std::vector<std::string>& frames) const;

private:
    // The nearest frame at or above one that a moving joint carries, or -1.
    std::int32_t mover(std::int32_t frame) const;

    SceneGraph scene_;
    std::int32_t tip_, reference_;
    std::vector<std::int32_t> entries_;
    std::vector<double> q_;
    Chain chain_;
    std::vector<std::array<double, 2>> limits_, ranges_;
    std::vector<bool> turns_;  // an angle, so a whole turn leads to the same pose
};

// How often each pair of frames was the reason: most frequent first, then by frame number.
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
    std::vector<std::vector<double>> configurations;  // full, by distance to q
    int tries = 0;
    int in_collision = 0;
    std::vector<PairCount> blocking;
    bool target_collides =
        false;  // proved: every solution collides, since one does in frames that the target fixes
};

// Up to `max_solutions` solutions that differ by more than `separation` in the maximum norm, sorted
// by that distance from q. With a world only those free of collision: when the first that is not
// collides in frames whose pose relative to each other the target fixes (the hand and a wall), so
// would all others, and the search ends. Then one such pair is named, if possible one without
// movable frames. `interrupted` is asked now and then and ends the search when true.
InverseKinematicsSolutions solve_all(const InverseKinematics& problem, const Pose& target,
                                     const IkSettings& settings, const CollisionWorld* world,
                                     const std::function<bool()>& interrupted = {});

// Configuration entries of joints by name. Throws unknown_name; Error(configuration) for a mimic
// joint or one named twice.
std::vector<std::int32_t> joint_entries(const SceneGraph& scene,
                                        const std::vector<std::string>& joints);

// The joint of a configuration entry.
const Joint& joint_of_entry(const SceneGraph& scene, std::int32_t entry);

}  // namespace tmkit
