#include "tmkit/stamped_poses.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "ascent.hpp"
#include "scene_rules.hpp"
#include "tmkit/scene_edit.hpp"

namespace tmkit {
namespace {

constexpr std::array<std::string_view, 5> policy_names{"closest", "preceding", "interpolated",
                                                       "screw", "clamped"};

std::string seconds(double value) { return number_text(value) + " s"; }

std::string named(std::string_view frame) {
    return frame.empty() ? "the history" : "frame '" + std::string(frame) + "'";
}

// The pattern begins with the frame.
template <class... Parts>
Error stamp_error(std::string_view frame, double stamp, std::string_view pattern,
                  const Parts&... parts) {
    return Error(ErrorKind::stamp, pattern, named(frame), parts...)
        .with({{"frame", frame}, {"stamp", stamp}});
}

auto first_not_before(const std::vector<StampedPose>& entries, double stamp) {
    return std::lower_bound(entries.begin(), entries.end(), stamp,
                            [](const StampedPose& e, double s) { return e.stamp < s; });
}

}  // namespace

StampBounds bounds_of(const StampedPoses& poses) {
    if (poses.entries.empty()) return {0, poses.capacity, poses.window, 0.0, 0.0};
    return {poses.entries.size(), poses.capacity, poses.window, poses.oldest(), poses.newest()};
}

StampPolicy stamp_policy(std::string_view name) {
    const auto position = std::find(policy_names.begin(), policy_names.end(), name);
    if (position == policy_names.end())
        throw unknown_name("policy", name, {policy_names.begin(), policy_names.end()});
    return static_cast<StampPolicy>(position - policy_names.begin());
}

void require_limits(std::size_t capacity, double window, std::string_view frame) {
    if (capacity == 0)
        throw stamp_error(frame, 0.0, "the stamped poses of {} need room for one at least");
    if (!(window > 0.0))
        throw stamp_error(frame, 0.0,
                          "the stamped poses of {} need a window longer than 0 s, not {}",
                          seconds(window));
}

void require_admission(double stamp, const StampBounds& bounds, std::string_view frame) {
    if (!std::isfinite(stamp)) throw stamp_error(frame, stamp, "a pose of {} needs a finite stamp");
    if (bounds.count == 0) return;
    if (stamp < bounds.newest - bounds.window)
        throw stamp_error(
            frame, stamp,
            "a pose of {} at {} is too old: the newest is of {}, and those of the last {} are kept",
            seconds(stamp), seconds(bounds.newest), seconds(bounds.window));
    if (bounds.count == bounds.capacity && stamp < bounds.oldest)
        throw stamp_error(
            frame, stamp,
            "a pose of {} at {} is too old: {} are kept, and the oldest of them is of {}",
            seconds(stamp), bounds.capacity, seconds(bounds.oldest));
}

Error duplicate_stamp(double stamp, std::string_view frame) {
    return stamp_error(frame, stamp, "{} has a pose at {} already", seconds(stamp));
}

Error outside_stamps(double stamp, const StampBounds& bounds, std::string_view frame) {
    if (bounds.count == 0 && std::isfinite(stamp))
        return stamp_error(frame, stamp, "{} has no stamped pose yet, so none at {} is known",
                           seconds(stamp));
    if (bounds.count == 0)  // the latest of no stamps is infinite
        return stamp_error(frame, stamp, "{} has no stamped pose yet");
    return stamp_error(frame, stamp, "{} has poses from {} to {}, so none at {} is known",
                       seconds(bounds.oldest), seconds(bounds.newest), seconds(stamp))
        .with({{"frame", frame},
               {"stamp", stamp},
               {"oldest", bounds.oldest},
               {"newest", bounds.newest}});
}

void StampedPoses::check(std::string_view frame) const {
    require_limits(capacity, window, frame);
    if (entries.size() > capacity)
        throw stamp_error(frame, 0.0, "{} was given {} stamped poses, but {} are kept",
                          entries.size(), capacity);
    for (std::size_t i = 0; i < entries.size(); ++i) {
        if (!std::isfinite(entries[i].stamp))
            throw stamp_error(frame, entries[i].stamp, "a pose of {} needs a finite stamp");
        if (i > 0 && entries[i].stamp <= entries[i - 1].stamp)
            throw stamp_error(frame, entries[i].stamp,
                              "the stamps of {} must ascend, but {} follows {}",
                              seconds(entries[i].stamp), seconds(entries[i - 1].stamp));
    }
    if (!entries.empty() && oldest() < newest() - window)
        throw stamp_error(frame, oldest(),
                          "the stamps of {} lie further apart than the window of {}",
                          seconds(window));
}

Ref<const StampedPoses> StampedPoses::with(const StampedPose& entry, std::size_t most,
                                           double seconds, std::string_view frame) const {
    require_limits(most, seconds, frame);
    const auto first_kept = [&](double end, std::size_t room) {
        const auto first_entry = first_not_before(entries, end - seconds);
        const auto remaining = static_cast<std::size_t>(entries.end() - first_entry);
        return remaining > room ? first_entry + static_cast<std::ptrdiff_t>(remaining - room)
                                : first_entry;
    };
    StampBounds bounds{0, most, seconds, 0.0, entry.stamp};
    if (!entries.empty()) {
        const auto first_entry = first_kept(newest(), most);
        bounds = {static_cast<std::size_t>(entries.end() - first_entry), most, seconds,
                  first_entry->stamp, newest()};
    }
    require_admission(entry.stamp, bounds, frame);
    const auto position = first_not_before(entries, entry.stamp);
    if (position != entries.end() && position->stamp == entry.stamp)
        throw duplicate_stamp(entry.stamp, frame);
    const auto first = first_kept(std::max(bounds.newest, entry.stamp), most - 1);
    const Ref<StampedPoses> result(new StampedPoses());
    result->capacity = most;
    result->window = seconds;
    // Each of the others is copied once.
    result->entries.reserve(static_cast<std::size_t>(entries.end() - first) + 1);
    result->entries.assign(first, position);
    result->entries.push_back(entry);
    result->entries.insert(result->entries.end(), position, entries.end());
    return result;
}

// The one of two poses that answers alone; null if both do.
static const StampedPose* single_pose(const StampedPose& before, const StampedPose& after,
                                      const Moment& moment) {
    if (moment.stamp == after.stamp) return &after;
    if (moment.stamp == before.stamp) return &before;
    if (moment.policy == StampPolicy::preceding) return &before;
    if (moment.policy != StampPolicy::closest) return nullptr;
    return moment.stamp - before.stamp < after.stamp - moment.stamp ? &before : &after;
}

std::array<const StampedPose*, 2> StampedPoses::around(const Moment& moment,
                                                       std::string_view frame) const {
    if (moment.policy == StampPolicy::clamped && !entries.empty()) {
        if (moment.stamp < oldest()) return {&entries.front(), &entries.front()};
        if (moment.stamp > newest()) return {&entries.back(), &entries.back()};
    }
    if (entries.empty() || !(moment.stamp >= oldest() && moment.stamp <= newest()))
        throw outside_stamps(moment.stamp, bounds_of(*this), frame);
    const auto after = first_not_before(entries, moment.stamp);
    const auto before = after == entries.begin() ? after : after - 1;
    if (const StampedPose* single = single_pose(*before, *after, moment)) return {single, single};
    return {&*before, &*after};
}

Pose StampedPoses::at(const Moment& moment, std::string_view frame) const {
    const auto [before, after] = around(moment, frame);
    return before == after ? after->pose : pose_between(*before, *after, moment);
}

bool StampedPoses::has_covariances() const {
    return std::any_of(entries.begin(), entries.end(),
                       [](const StampedPose& entry) { return bool(entry.covariance); });
}

StampedPoses StampedPoses::with_covariance(double stamp, const Covariance& covariance) const {
    StampedPoses result = *this;
    for (StampedPose& entry : result.entries) {
        if (entry.stamp != stamp) continue;
        entry.covariance = Ref<const StampCovariance>(new StampCovariance(covariance));
        return result;
    }
    throw stamp_error("", stamp, "{} has no pose at {}", seconds(stamp));
}

StampedPoses StampedPoses::moved(const Pose& parent_from_old_parent) const {
    StampedPoses result = *this;
    for (StampedPose& entry : result.entries) {
        entry.pose = parent_from_old_parent * entry.pose;
        require_in_range(entry.pose, "a stamped pose");
    }
    return result;
}

// Weights of two unit quaternions on the shorter arc from one to the other: sin(t a) / sin(a) as a
// series in x = cos(a) - 1 (Eberly, "A fast and accurate algorithm for computing SLERP", 2011),
// without division, root or sine. Its terms shrink by -x / 2: for a <= 0.245, half of the angle
// between the orientations, the remainder is below 1e-17.
static double slerp_weight(double t, double x) {
    double term = t, weight = t;
    for (int i = 1; i <= 8; ++i) {
        term *= (t * t - i * i) * (x * (1.0 / (i * (2 * i + 1))));
        weight += term;
    }
    return weight;
}

static Pose interpolated(const Pose& before, const Pose& after, double fraction) {
    const Vector4 &p = before.quat_xyzw, &q = after.quat_xyzw;
    const double cosine = p[0] * q[0] + p[1] * q[1] + p[2] * q[2] + p[3] * q[3];
    if (std::abs(cosine) < 0.97) return before.interpolate(after, fraction);
    const double x = std::min(std::abs(cosine) - 1.0, 0.0), one = slerp_weight(1.0 - fraction, x),
                 other = std::copysign(slerp_weight(fraction, x), cosine);
    Vector4 turned;
    for (std::size_t i = 0; i < 4; ++i) turned[i] = one * p[i] + other * q[i];
    return Pose::checked(before.translation + fraction * (after.translation - before.translation),
                         turned);
}

Pose pose_between(const StampedPose& before, const StampedPose& after, const Moment& moment) {
    if (const StampedPose* single = single_pose(before, after, moment)) return single->pose;
    const double fraction = (moment.stamp - before.stamp) / (after.stamp - before.stamp);
    if (moment.policy != StampPolicy::screw) return interpolated(before.pose, after.pose, fraction);
    Vector6 xi = (before.pose.inverse() * after.pose).log();
    for (double& number : xi) number *= fraction;
    return before.pose * Pose::exp(xi);
}

// --- errors between stamps

Ref<const EdgeNoise> noise_of(const StampedPose& entry, std::string_view frame,
                              std::string_view parent) {
    if (!entry.covariance) return nullptr;
    return EdgeNoise::of_covariance(
        entry.covariance->value,
        format_text("'{}' in '{}' at {}", frame, parent, seconds(entry.stamp)));
}

static Vector6 product(const Matrix6& m, const Vector6& x) {
    Vector6 y{};
    for (std::size_t i = 0; i < 6; ++i)
        for (std::size_t k = 0; k < 6; ++k) y[i] += m[6 * i + k] * x[k];
    return y;
}

Ref<const EdgeNoise> StampedPoses::noise_at(const Moment& moment, std::string_view frame,
                                            std::string_view parent,
                                            const Ref<const EdgeNoise>& of_edge) const {
    const auto [before, after] = around(moment, frame);
    const auto newest_with =
        std::find_if(entries.rbegin(), entries.rend(),
                     [](const StampedPose& entry) { return bool(entry.covariance); });
    const auto noise_of_entry = [&](const StampedPose& entry) {
        const bool is_of_edge =
            !entry.covariance ||
            (&entry == &*newest_with && of_edge && of_edge->covariance == entry.covariance->value);
        return is_of_edge ? of_edge : noise_of(entry, frame, parent);
    };
    Ref<const EdgeNoise> first = noise_of_entry(*before),
                         second = before == after ? first : noise_of_entry(*after);
    if (first == second) return first;  // of one pose, or of the edge at both

    const double s = (moment.stamp - before->stamp) / (after->stamp - before->stamp);
    Vector6 xi = (before->pose.inverse() * after->pose).log();
    const bool is_screw = moment.policy == StampPolicy::screw;
    if (!is_screw) xi[0] = xi[1] = xi[2] = 0.0;
    const Matrix6 of_start = right_jacobian(s * xi), of_end = inverse_right_jacobian(xi);
    const auto carry_after = [&](const Vector6& error) {
        return s * product(of_start, product(of_end, error));
    };
    const Pose turn = pose_between(*before, *after, moment).inverse();
    const auto with_linear = [&](Vector6 error, double share, const Pose& end, const Vector6& own) {
        const Vector3 linear = turn.rotate(end.rotate({own[0], own[1], own[2]}));
        for (std::size_t i = 0; i < 3; ++i) error[i] = share * linear[i];
        return error;
    };
    NoiseSum sum;
    if (first)
        sum.add(*first, [&](const Vector6& own) {
            const Vector6 error = own + negative(carry_after(own));
            return is_screw ? error : with_linear(error, 1.0 - s, before->pose, own);
        });
    if (second)
        sum.add(*second, [&](const Vector6& own) {
            const Vector6 error = carry_after(own);
            return is_screw ? error : with_linear(error, s, after->pose, own);
        });
    return sum.edge();
}

void require_later(double first, double second, std::string_view frame) {
    if (second > first) return;
    throw stamp_error(frame, second,
                      "a twist of {} needs two stamps, the second later: not {} and {}",
                      seconds(first), seconds(second));
}

Vector6 twist_between(const Pose& before, const Pose& after, double seconds) {
    Vector6 twist = (before.inverse() * after).log();
    for (double& number : twist) number /= seconds;
    return twist;
}

// --- edits of scenes

void EdgeEdits::check_new_stamps(const FrameSpecification& specification,
                                 const FrameRecord* parent) const {
    if (!parent) throw errors::root_without(specification.name, "pose");
    if (body(parent->body).name->text ==
        (specification.body.empty() ? specification.name : specification.body))
        throw errors::moves_on_body(specification.name, parent->name->text);
    specification.stamps->check(specification.name);
}

// A history belongs to an edge: under another parent its poses have no meaning.
void EdgeEdits::end_stamps(FrameRecord& changed) {
    if (!changed.details || !changed.details->stamps) return;
    FrameDetails details = *changed.details;
    details.stamps = nullptr;
    changed.details =
        details.empty() ? nullptr : Ref<const FrameDetails>(new FrameDetails(std::move(details)));
}

void EdgeEdits::add_stamped_pose(std::string_view frame, const StampedPose& entry,
                                 std::optional<std::size_t> capacity,
                                 std::optional<double> window) {
    const FrameRecord& on = record(frame);
    rules::check_edge_for_stamps(GraphView(scene_), &on);
    const Ref<const StampedPoses> old = on.details ? on.details->stamps : nullptr;
    const StampedPoses none, &history = old ? *old : none;
    const Ref<const StampedPoses> result = history.with(entry, capacity.value_or(history.capacity),
                                                        window.value_or(history.window), frame);
    const bool is_newest = entry.stamp == result->newest();
    const FrameId id = on.id;
    if (is_newest && entry.covariance)
        store_noise(id, noise_of(entry, frame, record(on.parent).name->text));
    FrameRecord& changed = own(id);
    const Ref<FrameDetails> details(changed.details ? new FrameDetails(*changed.details)
                                                    : new FrameDetails());
    details->stamps = result;
    changed.details = details;
    if (!is_newest || changed.pose == entry.pose) return;
    changed.pose = entry.pose;
    note_change(id, false);
}

void EdgeEdits::set_stamped_poses(std::string_view frame, const Ref<const StampedPoses>& stamps) {
    const FrameRecord& on = record(frame);
    if (stamps) {
        rules::check_edge_for_stamps(GraphView(scene_), &on);
        stamps->check(frame);
    }
    change_details(on, [&](FrameDetails& details) { details.stamps = stamps; });
}

// --- queries of scenes

Ref<const StampedPoses> SceneGraph::stamped_poses(std::string_view frame) const {
    const FrameRecord& on = record(frame);
    return on.details ? on.details->stamps : nullptr;
}

std::optional<std::array<double, 2>> SceneGraph::common_stamps(std::string_view a,
                                                               std::string_view b) const {
    constexpr double end = std::numeric_limits<double>::infinity();
    const Ascent first(*this, record(a)), second(*this, record(b));
    const auto [steps_first, steps_second] = below_common(first, second);
    std::optional<std::array<double, 2>> interval;
    const auto intersect = [&](const FrameRecord& edge) {
        if (!edge.details || !edge.details->stamps) return;
        const StampedPoses& history = *edge.details->stamps;
        if (!interval) interval = {-end, end};
        (*interval)[0] = history.entries.empty() ? end : std::max((*interval)[0], history.oldest());
        (*interval)[1] =
            history.entries.empty() ? -end : std::min((*interval)[1], history.newest());
    };
    for (std::size_t i = 0; i < steps_first; ++i) intersect(*first[i]);
    for (std::size_t i = 0; i < steps_second; ++i) intersect(*second[i]);
    return interval;
}

Vector6 SceneGraph::twist_from_stamps(std::string_view target, std::string_view reference,
                                      double first, double second, const double* q,
                                      StampPolicy policy) const {
    require_later(first, second, target);
    const Pose before = pose(target, reference, q, {first, policy}),
               after = pose(target, reference, q, {second, policy});
    require_no_twist_on_path(target, reference, true);
    rules::check_stamped_or_stated(GraphView(*this), &record(target), &record(reference));
    return twist_between(before, after, second - first);
}

}  // namespace tmkit
