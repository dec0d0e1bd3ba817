#include <algorithm>
#include <unordered_set>

#include "graph/ascent.hpp"
#include "graph/scene_rules.hpp"
#include "tmkit/scene_graph.hpp"

namespace tmkit {
template <class Map> static std::vector<std::string> keys_of(const Map& map) {
    std::vector<std::string> names;
    names.reserve(map.size());
    map.for_each([&](const Ref<const Name>& name, const auto&) { names.push_back(name->text); });
    return names;
}

const FrameRecord* SceneGraph::find(std::string_view name) const {
    const FrameId* id = names_.find(name);
    return id ? frames_.find(*id)->get() : nullptr;
}

const FrameRecord& SceneGraph::record(std::string_view name) const {
    const FrameRecord* match = find(name);
    if (!match) throw unknown_name("frame", name, keys_of(names_));
    return *match;
}

FrameSpecification SceneGraph::specification(std::string_view name) const {
    const FrameRecord& frame = record(name);
    FrameSpecification new_specification;
    new_specification.name = frame.name->text;
    if (frame.parent != no_frame) new_specification.parent = record(frame.parent).name->text;
    new_specification.pose = frame.pose;
    if (frame.joint) new_specification.joint = *frame.joint;
    new_specification.joint.type = frame.joint_type;
    new_specification.joint.is_stated = frame.is_stated;
    new_specification.body = body(frame.body).name->text;
    if (frame.details) {
        new_specification.classes = frame.details->classes;
        new_specification.shapes = frame.details->shapes;
        new_specification.attributes = frame.details->attributes;
        new_specification.twist = frame.details->twist;
        new_specification.stamps = frame.details->stamps;
    }
    new_specification.noise = frame.noise;
    if (body(frame.body).inertia_frame == frame.id)
        new_specification.inertia = body(frame.body).inertia;
    return new_specification;
}

FrameId SceneGraph::joint_frame(std::string_view joint_name) const {
    const FrameId* match = joint_names_.find(joint_name);
    if (!match) throw unknown_name("joint", joint_name, keys_of(joint_names_));
    return *match;
}

FrameId SceneGraph::root_of(FrameId id) const {
    return rules::root_of(GraphView(*this), &record(id))->id;
}

bool SceneGraph::is_ancestor(FrameId ancestor, FrameId frame) const {
    return rules::is_below(GraphView(*this), find(ancestor), find(frame));
}

std::optional<Inertia> SceneGraph::inertia(std::string_view frame) const {
    const FrameRecord& on = record(frame);
    const BodyRecord& carrier = body(on.body);
    if (carrier.inertia_frame == no_frame) return std::nullopt;
    if (carrier.inertia_frame == on.id) return carrier.inertia;
    return carrier.inertia.in_axes_of(
        pose(record(carrier.inertia_frame).name->text, frame, nullptr));
}

bool SceneGraph::is_allowed(FrameId a, FrameId b) const {
    return allowed_.find(Pair{a, b}) != nullptr;
}

bool SceneGraph::is_allowed(std::string_view a, std::string_view b) const {
    return is_allowed(record(a).id, record(b).id);
}

std::vector<std::string> SceneGraph::frame_names() const {
    std::vector<std::string> names;
    names.reserve(frames_.size());
    frames_.for_each(
        [&](FrameId, const Ref<const FrameRecord>& frame) { names.push_back(frame->name->text); });
    return names;
}

std::vector<std::string> SceneGraph::joint_names() const {
    std::vector<std::string> names;
    names.reserve(joints_.size());
    joints_.for_each([&](FrameId, const Ref<const Joint>& joint) { names.push_back(joint->name); });
    return names;
}

std::vector<std::string> SceneGraph::body_names() const {
    std::vector<std::string> names;
    names.reserve(bodies_.size());
    std::unordered_set<BodyId> seen;
    frames_.for_each([&](FrameId, const Ref<const FrameRecord>& frame) {
        if (seen.insert(frame->body).second) names.push_back(body(frame->body).name->text);
    });
    if (names.size() < bodies_.size())
        for (std::string& name : bodies_without_frames()) names.push_back(std::move(name));
    return names;
}

std::vector<AllowedPair> SceneGraph::allowed_pairs() const {
    std::vector<AllowedPair> pairs;
    pairs.reserve(pair_count());
    allowed_.for_each([&](const Pair& pair, const Ref<const Name>& reason) {
        if (pair.first < pair.second)
            pairs.push_back(
                {record(pair.first).name->text, record(pair.second).name->text, reason->text});
    });
    return pairs;
}

JointRule SceneGraph::joint_rule(const FrameRecord& frame) const {
    auto [rule, leader] = rules::leader_rule(GraphView(*this), &frame);
    rule.entry = joints_.rank(leader->id);
    return rule;
}

std::vector<EntryLimits> SceneGraph::entry_limits() const {
    std::vector<EntryLimits> limits;
    limits.reserve(joint_count());
    joints_.for_each([&](FrameId, const Ref<const Joint>& joint) {
        const auto own = LeaderRange::of(no_frame, joint->type, *joint);
        limits.push_back({own.lower, own.upper, joint->velocity, joint->effort});
    });
    if (!has_followers()) return limits;
    const auto narrow = [](double& limit, double by) {
        if (by > 0.0 && (limit <= 0.0 || by < limit)) limit = by;
    };
    joint_names_.for_each([&](const Ref<const Name>&, FrameId id) {
        const FrameRecord& frame = record(id);
        if (frame.joint->mimic.empty()) return;
        const JointRule rule = joint_rule(frame);
        EntryLimits& leader = limits[rule.entry];
        LeaderRange range{.lower = leader.lower, .upper = leader.upper};
        range.narrow(rules::own_range(GraphView(*this), &frame), rule.multiplier, rule.offset, 0);
        leader.lower = range.lower;
        leader.upper = range.upper;
        if (rule.multiplier == 0.0) return;
        narrow(leader.velocity, frame.joint->velocity / std::abs(rule.multiplier));
        narrow(leader.effort, frame.joint->effort * std::abs(rule.multiplier));
    });
    for (EntryLimits& entry : limits)  // ends that rounding alone has swapped are one value
        if (entry.lower > entry.upper)
            entry.lower = entry.upper = entry.lower + 0.5 * (entry.upper - entry.lower);
    return limits;
}

double SceneGraph::joint_value(const FrameRecord& frame, const double* q) const {
    if (!q)
        throw Error(ErrorKind::configuration,
                    "joint '{}' is on the path, so a configuration q is needed", frame.joint->name)
            .with({{"joint", frame.joint->name}});
    return joint_rule(frame).value(q);
}

std::vector<FrameId> SceneGraph::path(FrameId from, FrameId to) const {
    const Ascent up(*this, record(from)), down(*this, record(to));
    const auto [steps_up, steps_down] = below_common(up, down);
    std::vector<FrameId> frames;
    for (std::size_t i = 0; i <= steps_up; ++i) frames.push_back(up[i]->id);
    for (std::size_t i = steps_down; i > 0; --i) frames.push_back(down[i - 1]->id);
    return frames;
}

// The pose of the frame `last` of an ascent relative to the frame `first`, which is above it.
// edge_of: parent_from_frame of a record, including its joint's motion.
template <class EdgeOf>
static Pose descend(const Ascent& path, std::size_t first, std::size_t last, EdgeOf&& edge_of) {
    Pose result;
    for (std::size_t i = first; i > last; --i) result = compose(result, edge_of(*path[i - 1]));
    return result;
}

template <class EdgeOf>
static Pose path_pose(const Ascent& to, const Ascent& from, EdgeOf&& edge_of) {
    const auto [to_steps, from_steps] = below_common(to, from);
    const Pose down = descend(to, to_steps, 0, edge_of);
    return from_steps == 0 ? down : descend(from, from_steps, 0, edge_of).inverse() * down;
}

Pose SceneGraph::pose(const FrameRecord& target, const FrameRecord& reference,
                      const double* q) const {
    const Ascent to(*this, target), from(*this, reference);
    return path_pose(to, from, [&](const FrameRecord& edge) { return edge_pose(*this, edge, q); });
}

std::vector<Pose> SceneGraph::poses(const std::vector<std::string>& targets,
                                    std::optional<std::string_view> reference,
                                    const double* q) const {
    const auto edge_of = [&](const FrameRecord& edge) { return edge_pose(*this, edge, q); };
    // Parent of the last target, if it is below the nearest common ancestor.
    struct Parent {
        FrameId id = no_frame;
        Pose common_from_parent;
        std::optional<Pose> reference_from_common;  // none if they are one frame
        const FrameRecord* to_reference = nullptr;  // the child of the ancestor above the reference
    } parent;
    std::vector<Pose> poses;
    poses.reserve(targets.size());
    for (const std::string& name : targets) {
        const FrameRecord& target = record(name);
        if (parent.id == no_frame || target.parent != parent.id || &target == parent.to_reference) {
            const Ascent to(*this, target),
                from(*this, reference ? record(*reference) : *to.back());
            const auto [to_steps, from_steps] = below_common(to, from);
            if (to_steps == 0) {
                poses.push_back(path_pose(to, from, edge_of));
                continue;
            }
            parent = {target.parent, descend(to, to_steps, 1, edge_of), std::nullopt, nullptr};
            if (from_steps > 0) {
                parent.reference_from_common = descend(from, from_steps, 0, edge_of).inverse();
                parent.to_reference = from[from_steps - 1];
            }
        }
        const Pose down = compose(parent.common_from_parent, edge_of(target));
        poses.push_back(parent.reference_from_common ? *parent.reference_from_common * down : down);
    }
    return poses;
}

Pose SceneGraph::pose(std::string_view target, std::string_view reference, const double* q,
                      const Moment& moment) const {
    const Ascent to(*this, record(target)), from(*this, record(reference));
    return path_pose(to, from, [&](const FrameRecord& edge) {
        const Pose pose = edge.details && edge.details->stamps
                              ? edge.details->stamps->at(moment, edge.name->text)
                              : edge.pose;
        return edge.joint
                   ? apply_joint(pose, edge.joint_type, edge.joint->axis, joint_value(edge, q))
                   : pose;
    });
}

// --- groups

std::vector<std::string> SceneGraph::group_names() const { return keys_of(groups_); }

GroupSpecification SceneGraph::group(std::string_view name) const {
    const Ref<const GroupRecord>* match = groups_.find(name);
    if (!match) throw unknown_name("group", name, group_names());
    GroupSpecification group{std::string(name), {}, {}};
    for (FrameId id : (*match)->frames) group.frames.push_back(record(id).name->text);
    for (FrameId id : (*match)->parents) group.parents.push_back(record(id).name->text);
    for (const Ref<const Name>& nested : (*match)->groups) group.groups.push_back(nested->text);
    group.attributes = (*match)->attributes;
    return group;
}

std::vector<GroupSpecification> SceneGraph::groups_inside_out() const {
    std::vector<GroupSpecification> waiting, ordered;
    for (const std::string& name : group_names()) waiting.push_back(group(name));
    const auto is_there = [&](const std::string& name) {
        return std::any_of(ordered.begin(), ordered.end(),
                           [&](const GroupSpecification& g) { return g.name == name; });
    };
    while (!waiting.empty())  // no group contains itself, so each iteration removes one
        std::erase_if(waiting, [&](const GroupSpecification& group) {
            if (!std::all_of(group.groups.begin(), group.groups.end(), is_there)) return false;
            ordered.push_back(group);
            return true;
        });
    return ordered;
}

std::vector<FrameId> SceneGraph::frames_of_group(std::string_view name) const {
    if (!groups_.find(name)) throw unknown_name("group", name, group_names());
    std::vector<std::string_view> reached{name};
    std::vector<FrameId> frames;
    for (std::size_t next = 0; next < reached.size(); ++next) {
        const GroupRecord& group = **groups_.find(reached[next]);
        frames.insert(frames.end(), group.frames.begin(), group.frames.end());
        for (const Ref<const Name>& nested : group.groups)
            if (std::find(reached.begin(), reached.end(), nested->text) == reached.end())
                reached.push_back(nested->text);
    }
    std::sort(frames.begin(), frames.end());
    frames.erase(std::unique(frames.begin(), frames.end()), frames.end());
    return frames;
}

std::vector<std::string> SceneGraph::groups_of(std::string_view frame, bool nested) const {
    const FrameId id = record(frame).id;
    std::vector<std::string> names;
    groups_.for_each([&](const Ref<const Name>& name, const Ref<const GroupRecord>& group) {
        const std::vector<FrameId> frames = nested ? frames_of_group(name->text) : group->frames;
        if (std::find(frames.begin(), frames.end(), id) != frames.end())
            names.push_back(name->text);
    });
    return names;
}

// --- records

static constexpr double inertia_slack = 1e-9;  // relative to the trace: rounding

static double trace_of(const Matrix3& m) { return m[0] + m[4] + m[8]; }

// Sylvester's criterion: all principal minors, for semi-definite matrices. Numbers of the order of
// 1.
static bool is_positive_semidefinite(const Matrix3& m, double slack) {
    const double xy = m[0] * m[4] - m[1] * m[1], xz = m[0] * m[8] - m[2] * m[2],
                 yz = m[4] * m[8] - m[5] * m[5];
    const double determinant =
        m[0] * yz - m[1] * (m[1] * m[8] - m[5] * m[2]) + m[2] * (m[1] * m[5] - m[4] * m[2]);
    return std::min({m[0], m[4], m[8], xy, xz, yz, determinant}) >= -slack;
}

// The matrix with numbers of the order of 1, symmetric and without negative moments.
static Matrix3 scaled_semidefinite(Matrix3 m) {
    const double largest =
        std::abs(*std::ranges::max_element(m, {}, [](double value) { return std::abs(value); }));
    if (largest == 0.0) return m;
    for (double& value : m) value /= largest;
    const double slack = inertia_slack * std::abs(trace_of(m));
    if (std::abs(m[1] - m[3]) > slack || std::abs(m[2] - m[6]) > slack ||
        std::abs(m[5] - m[7]) > slack)
        throw Error(ErrorKind::scene, "inertia matrix must be symmetric");
    if (!is_positive_semidefinite(m, slack))
        throw Error(ErrorKind::scene,
                    "invalid inertia: the inertia matrix must be positive semi-definite");
    return m;
}

void Inertia::check() const {
    const Matrix3 m = check_stored();
    // No principal moment exceeds the sum of the others. Equivalently, in any axes, the second
    // moments of mass, trace / 2 - inertia, have no negative eigenvalue.
    constexpr double rounded = 0.0025;  // relative to the trace: numbers in files have few digits
    const double trace = trace_of(m);
    Matrix3 second = m;
    for (double& value : second) value = -value;
    for (int k = 0; k < 3; ++k) second[4 * k] += (0.5 + rounded) * trace;
    if (!is_positive_semidefinite(second, inertia_slack * trace))
        throw Error(ErrorKind::scene,
                    "invalid inertia: its largest principal moment exceeds the sum of "
                    "the other two");
}

Matrix3 Inertia::check_stored() const {
    if (!(mass > 0.0) || !std::isfinite(mass))
        throw Error(
            ErrorKind::scene,
            "mass must be positive and finite, not {}; omit the inertia of a body without mass",
            mass);
    for (double value : center)
        if (!std::isfinite(value)) throw Error(ErrorKind::scene, "centre of mass must be finite");
    for (double value : matrix)
        if (!std::isfinite(value)) throw Error(ErrorKind::scene, "inertia matrix must be finite");
    return scaled_semidefinite(matrix);
}

Inertia Inertia::in_axes_of(const Pose& frame_from_axes) const {
    Inertia result{mass, frame_from_axes.apply(center), {}};
    const Matrix3 r = frame_from_axes.rotation();
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j)
            for (int k = 0; k < 3; ++k)
                for (int l = 0; l < 3; ++l)
                    result.matrix[3 * i + j] += r[3 * i + k] * matrix[3 * k + l] * r[3 * j + l];
    require_in_range(result.center, "the centre of mass");
    require_in_range(result.matrix, "the inertia");
    return result;
}

bool FrameSpecification::same_content(const FrameSpecification& o) const {
    return name == o.name && parent == o.parent && pose == o.pose && joint.type == o.joint.type &&
           joint.is_stated == o.joint.is_stated && (!is_actuated(joint.type) || joint == o.joint) &&
           body == o.body && classes == o.classes && shapes == o.shapes && inertia == o.inertia &&
           attributes == o.attributes && twist == o.twist && same_stamps(stamps, o.stamps) &&
           same_noise(noise, o.noise);
}

// --- bodies and twists

BodyId SceneGraph::body_id(std::string_view name) const {
    const BodyId* match = find_body(name);
    if (!match) throw unknown_name("body", name, body_names());
    return *match;
}

std::vector<FrameId> SceneGraph::frames_of_body(std::string_view name) const {
    const BodyId id = body_id(name);
    std::vector<FrameId> match = body(id).tops;
    for (std::size_t index = 0; index < match.size(); ++index)
        for (const FrameId child : children(match[index]))
            if (record(child).body == id) match.push_back(child);
    std::sort(match.begin(), match.end());
    return match;
}

std::vector<std::string> SceneGraph::bodies_without_frames() const {
    std::vector<std::string> names;
    if (bodies_.empty()) return names;
    body_names_.for_each([&](const Ref<const Name>& name, BodyId id) {
        if (body(id).tops.empty()) names.push_back(name->text);
    });
    return names;
}

std::optional<TwistEdge> SceneGraph::twist(std::string_view frame) const {
    const FrameRecord& on = record(frame);
    return on.details ? on.details->twist : std::nullopt;
}

void SceneGraph::require_no_twist_on_path(std::string_view target, std::string_view reference,
                                          bool unstamped) const {
    rules::check_no_twist_on_path(GraphView(*this), &record(target), &record(reference), unstamped);
}

}  // namespace tmkit
