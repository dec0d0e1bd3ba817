// Damped least squares with fixed joints at limits, and restarts.
#include "tmkit/inverse_kinematics.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kinematics/damped_step.hpp"
#include "tmkit/random.hpp"

namespace tmkit {
namespace {

constexpr double pi = std::numbers::pi;

// Length with the weight of one radian in the error that a step reduces [m].
constexpr double rotation_weight = 0.3;

// The rotation vector of target * current^T, in the common axes of both.
Vector3 rotation_error(const Matrix3& target, const Matrix3& current) {
    const Matrix3 m = multiply_transposed(target, current);
    const Vector3 v{0.5 * (m[7] - m[5]), 0.5 * (m[2] - m[6]), 0.5 * (m[3] - m[1])};
    const double sine = norm(v), cosine = 0.5 * (m[0] + m[4] + m[8] - 1.0);
    if (sine > 1e-7) return (arctangent(sine, cosine) / sine) * v;
    if (cosine > 0.0) return v;
    // Half a turn: m is 2 a a^T - I, so the axis is the column of its largest diagonal entry.
    int k = 0;
    for (int i = 1; i < 3; ++i)
        if (m[4 * i] > m[4 * k]) k = i;
    Vector3 axis{m[k], m[3 + k], m[6 + k]};
    axis[k] += 1.0;
    return (pi / norm(axis)) * axis;
}

// The entries that move a joint above the tip or the reference. Throws Error(disconnected).
std::vector<std::int32_t> on_chain(const SceneGraph& scene, std::int32_t tip,
                                   std::int32_t reference, const std::vector<std::int32_t>& entries,
                                   const double* q) {
    const Layout& layout = scene.layout();
    const auto name = [&](std::int32_t frame) {
        return scene.record(layout.ids[frame]).name->text;
    };
    // Throws with the reason.
    if (layout.root[tip] != layout.root[reference]) scene.pose(name(tip), name(reference), q);
    std::vector<int> times(layout.joint_count(), 0);
    for (const std::int32_t end : {tip, reference})
        for (std::int32_t frame = end; frame >= 0; frame = layout.parent[frame])
            if (layout.q_index[frame] >= 0) ++times[layout.q_index[frame]];
    std::vector<std::int32_t> result;
    for (const std::int32_t entry : entries)
        if (times[entry] > 0) result.push_back(entry);
    return result;
}

// Distance past a limit at which a start is moved to the limit [rad or m].
double start_tolerance(const Joint& joint) {
    return joint.type == JointType::prismatic ? 1e-4 : 1e-3;
}

}  // namespace

void clamp_to_limits(const SceneGraph& scene, const std::vector<EntryLimits>& limits,
                     const std::vector<std::int32_t>& entries, std::vector<double>& q) {
    for (const std::int32_t entry : entries) {
        const double nearest = std::clamp(q[entry], limits[entry].lower, limits[entry].upper);
        const double excess = std::abs(q[entry] - nearest);
        if (excess > limit_tolerance && excess <= start_tolerance(joint_of_entry(scene, entry)))
            q[entry] = nearest;
    }
}

InverseKinematics::InverseKinematics(const SceneGraph& scene, std::int32_t tip,
                                     std::int32_t reference,
                                     const std::vector<std::int32_t>& entries,
                                     const std::vector<double>& q)
    : scene_(scene), tip_(tip), reference_(reference),
      entries_(on_chain(scene, tip, reference, entries, q.data())), q_(q),
      chain_(scene.layout(), tip, reference, entries_, q.data()), turns_(entries_.size(), true) {
    const std::vector<EntryLimits> limits = scene.entry_limits();
    clamp_to_limits(scene, limits, entries_, q_);
    for (const std::int32_t entry : entries_) {
        const Joint& joint = joint_of_entry(scene, entry);
        const double lower = limits[entry].lower, upper = limits[entry].upper;
        if (!(q_[entry] >= lower - limit_tolerance && q_[entry] <= upper + limit_tolerance))
            throw Error(ErrorKind::configuration,
                        "joint '{}' is at {}, outside its limits {} to {} by more than the"
                        " tolerance of {} for a start",
                        joint.name, q_[entry], lower, upper, start_tolerance(joint))
                .with({{"joint", joint.name},
                       {"value", q_[entry]},
                       {"lower", lower},
                       {"upper", upper}});
        limits_.push_back({lower, upper});
        const bool prismatic = joint.type == JointType::prismatic;
        ranges_.push_back({std::isinf(lower) ? (prismatic ? q_[entry] - 1.0 : -pi) : lower,
                           std::isinf(upper) ? (prismatic ? q_[entry] + 1.0 : pi) : upper});
    }
    for (const Chain::Segment& segment : chain_.segments())
        if (segment.prismatic || segment.multiplier != std::round(segment.multiplier))
            turns_[segment.column] = false;
}

bool InverseKinematics::improve(const Pose& target, const IkSettings& settings, double* x,
                                double errors[2], int& iterations, bool with_limits) const {
    const std::size_t n = entries_.size();
    const Matrix3 target_rotation = target.rotation();
    std::array<Vector6, max_chain_joints> columns;
    std::array<double, max_chain_joints> step;
    std::array<bool, max_chain_joints> held;
    double best = std::numeric_limits<double>::infinity();
    int stalled = 0;
    for (int iteration = 0;; ++iteration) {
        Matrix3 rotation;
        Vector3 translation;
        chain_.jacobian(x, rotation, translation, columns.data());
        const Vector3 linear = target.translation - translation;
        const Vector3 angular =
            settings.is_position_only() ? Vector3{} : rotation_error(target_rotation, rotation);
        errors[0] = norm(linear);
        errors[1] = norm(angular);
        if (errors[0] <= settings.position_tolerance && errors[1] <= settings.rotation_tolerance)
            return true;
        if (iteration == settings.max_iterations) return false;
        ++iterations;
        const double weight = settings.is_position_only() ? 0.0 : rotation_weight;
        Vector6 error;
        for (int i = 0; i < 3; ++i) {
            error[i] = linear[i];
            error[3 + i] = weight * angular[i];
        }
        for (std::size_t c = 0; c < n; ++c)
            for (int i = 3; i < 6; ++i) columns[c][i] *= weight;
        const double cost = errors[0] * errors[0] + weight * weight * errors[1] * errors[1];
        stalled = cost < 0.9 * best ? 0 : stalled + 1;
        best = std::min(best, cost);
        if (stalled > 6) return false;

        std::fill(held.begin(), held.begin() + n, false);
        do damped_step(columns.data(), n, held.data(), error, 0.05 * cost + 1e-10, step.data());
        while (with_limits && hold_at_limits(x, step.data(), limits_, held.data()));
        take_step(x, step.data(), n, with_limits ? limits_.data() : nullptr);
    }
}

void InverseKinematics::unwind(double* x, const double* guess) const {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        if (!turns_[i]) continue;
        const double turned = x[i] - 2.0 * pi * std::round((x[i] - guess[i]) / (2.0 * pi));
        if (turned >= limits_[i][0] && turned <= limits_[i][1]) x[i] = turned;
    }
}

std::vector<double> InverseKinematics::full(const double* x) const {
    std::vector<double> q = q_;
    for (std::size_t i = 0; i < entries_.size(); ++i) q[entries_[i]] = x[i];
    return q;
}

std::vector<double> InverseKinematics::moving(const double* q) const {
    std::vector<double> x(entries_.size());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = q[entries_[i]];
    return x;
}

bool InverseKinematics::out_of_reach(const Pose& target, const IkSettings& settings) const {
    return norm(target.translation - chain_.anchor()) >
           chain_.reach(limits_) + settings.position_tolerance;
}

std::int32_t InverseKinematics::mover(std::int32_t frame) const {
    const Layout& layout = scene_.layout();
    for (; frame >= 0; frame = layout.parent[frame])
        if (std::find(entries_.begin(), entries_.end(), layout.q_index[frame]) != entries_.end())
            break;
    return frame;
}

bool InverseKinematics::is_fixed_by_target(FramePair pair) const {
    const std::int32_t with_tip = mover(tip_), with_reference = mover(reference_);
    const auto is_fixed = [&](std::int32_t frame) {
        const std::int32_t carrier = mover(frame);
        return carrier == with_tip || carrier == with_reference;
    };
    return is_fixed(pair.a) && is_fixed(pair.b);
}

bool InverseKinematics::is_still_part_of(std::int32_t frame,
                                         const std::vector<std::string>& frames) const {
    const Layout& layout = scene_.layout();
    if (mover(frame) == mover(tip_)) return false;
    for (; frame >= 0; frame = layout.parent[frame])
        if (std::find(frames.begin(), frames.end(), scene_.record(layout.ids[frame]).name->text) !=
            frames.end())
            return true;
    return false;
}

InverseKinematicsResult InverseKinematics::solve(const Pose& target,
                                                 const IkSettings& settings) const {
    InverseKinematicsResult result;
    const std::vector<double> start = moving(q_.data());
    std::array<double, max_chain_joints> x;
    std::array<double, max_chain_joints> best_x;
    double best = std::numeric_limits<double>::infinity();
    const bool hopeless = out_of_reach(target, settings);
    Random random(settings.seed);
    const int restarts = settings.restarts.value_or(IkSettings::default_restarts);
    for (int attempt = 0; attempt <= restarts; ++attempt) {
        if (attempt == 0) std::copy(start.begin(), start.end(), x.begin());
        else sample(random, x.data());
        result.restarts = attempt;
        double errors[2];
        const bool solved = improve(target, settings, x.data(), errors, result.iterations);
        const double cost = errors[0] + rotation_weight * errors[1];
        if (solved || cost < best) {
            best = cost;
            best_x = x;
            result.position_error = errors[0];
            result.rotation_error = errors[1];
        }
        if (solved) result.status = InverseKinematicsStatus::solved;
        else if (hopeless) result.status = InverseKinematicsStatus::out_of_reach;
        if (solved || hopeless || entries_.empty()) break;
    }
    unwind(best_x.data(), start.data());
    result.q = full(best_x.data());
    return result;
}

const Joint& joint_of_entry(const SceneGraph& scene, std::int32_t entry) {
    const Layout& layout = scene.layout();
    return *scene.record(layout.ids[layout.joint_frame[entry]]).joint;
}

std::vector<std::int32_t> joint_entries(const SceneGraph& scene,
                                        const std::vector<std::string>& joints) {
    const Layout& layout = scene.layout();
    std::vector<std::int32_t> entries;
    for (const std::string& name : joints) {
        const std::int32_t frame = layout.index_of(scene.joint_frame(name));
        const std::int32_t entry = layout.q_index[frame];
        if (entry < 0 || layout.joint_frame[entry] != frame)
            throw Error(ErrorKind::configuration,
                        "joint '{}' has no entry in the configuration: it follows another joint",
                        name)
                .with({{"joint", name}});
        if (std::find(entries.begin(), entries.end(), entry) != entries.end())
            throw Error(ErrorKind::configuration, "joint '{}' is named twice", name)
                .with({{"joint", name}});
        entries.push_back(entry);
    }
    return entries;
}

}  // namespace tmkit
