// See the header. A path from one body to another is a chain of steps: twist edges, and edges of
// poses that no twist edge covers, since twist edges determine the motion of the frames that they
// cover. The path is unique: an edge of poses without a covering twist edge separates the bodies on
// its two sides, and twist edges join two bodies only once.
#include "tmkit/scene_relations.hpp"

#include <algorithm>
#include <functional>

#include "scene_arrays_view.hpp"
#include "uncertainty/noise_path.hpp"

namespace tmkit {
namespace {

struct RelatedFrames : GraphView {
    using GraphView::GraphView;
    Path path(Frame target, Frame reference) const {
        return Path(scene(), *reference, *target, q());
    }
    JointRule rule(Frame frame) const { return scene().joint_rule(*frame); }
    Pose edge(Frame frame, const JointRule& rule) const {
        if (!q()) scene().joint_value(*frame, q());  // throws with the reason
        return apply_joint(frame->pose, frame->joint_type, frame->joint->axis, rule.value(q()));
    }
    const Vector3& axis(Frame frame) const { return frame->joint->axis; }
    const EdgeNoise* twist_noise(Frame frame) const { return frame->twist_noise(); }
};

const FrameRecord* below(const FrameRecord& edge) { return &edge; }
SceneArrays::Slot below(SceneArrays::Slot edge) { return edge; }

// Add an edge of poses to a list without duplicates; false if it is there.
bool enters(auto& edges, auto frame) {
    const auto position = std::lower_bound(edges.begin(), edges.end(), frame, std::less<>());
    if (position != edges.end() && *position == frame) return false;
    edges.insert(position, frame);
    return true;
}

// List the edges of poses that twist edges cover, which determine their motion.
void list_crossed_edges(const auto& view, auto& edges, auto root) {
    rules::each_told_way(view, root, [&](auto, auto from, auto to) {
        rules::each_between(view, from, to, [&](auto position) { enters(edges, position); });
    });
}

// Add the motions of edges of poses above a body: none for fixed edges, those of `qd` for the
// others, if given.
void add_pose_steps(const auto& view, auto& paths, auto root, auto body, bool with_qd) {
    rules::climb(view, rules::top_in_tree(view, body, root), [&](auto frame) {
        const auto parent = view.parent(frame);
        if (parent != view.none && view.body(parent) != view.body(frame) && view.is_stated(frame) &&
            (with_qd || view.joint_type(frame) == JointType::fixed) && enters(paths.edges, frame))
            paths.steps.push_back({frame, view.body(frame), view.body(parent), false});
        return true;
    });
}

// Return whether steps lead there by twist edges alone, or else also by edges of poses.
bool find_path(const auto& view, auto& paths, auto root, auto from, auto to, bool with_qd) {
    paths.steps.clear();
    paths.edges.clear();
    view.each_twist([&](auto frame, auto reference) {
        if (rules::root_of(view, frame) == root)
            paths.steps.push_back({frame, view.body(frame), reference, true});
    });
    if (rules::reaches(paths, from, to)) return true;
    list_crossed_edges(view, paths.edges, root);
    for (const auto body : {from, to}) add_pose_steps(view, paths, root, body, with_qd);
    for (std::size_t i = 0; i < paths.steps.size() && paths.steps[i].by_twist; ++i)
        for (const auto body : {paths.steps[i].body, paths.steps[i].reference})
            add_pose_steps(view, paths, root, body, with_qd);
    return rules::reaches(paths, from, to);
}

// See scene_relations.hpp; `edges` is scratch.
auto unstated_edge(const auto& view, auto& edges, auto a, auto b) {
    edges.clear();
    list_crossed_edges(view, edges, rules::root_of(view, a));
    auto result = view.none;
    bool is_crossed = false;
    const auto visit = [&](auto position) {
        const bool is_told =
            std::binary_search(edges.begin(), edges.end(), position, std::less<>());
        is_crossed |= is_told;
        if (result == view.none && !is_told && !view.is_stated(position)) result = position;
    };
    rules::each_between(view, a, b, visit);
    if (!is_crossed) return result;
    view.each_twist([&](auto head, auto) {
        if (rules::root_of(view, head) == rules::root_of(view, a))
            rules::each_between(view, a, head, visit);
    });
    return result;
}

// The pose of a frame in the axes, or the identity for none.
Pose pose_in(const auto& view, auto axes, auto frame) {
    return frame == view.none || frame == axes ? Pose{} : view.relative(frame, axes);
}

// Return whether a twist edge determines the motion of exactly the edge of poses above its frame.
bool is_along_edge(const auto& view, auto frame, auto reference) {
    if (reference == view.no_body) return false;
    const auto parent = view.parent(frame);
    return parent != view.none && view.body(parent) == reference;
}

// Return whether that holds for all twist edges, and all are in the tree of a root: then none leads
// elsewhere.
bool all_along_edges(const auto& view, auto root) {
    bool holds = true;
    auto inside = root;  // the last frame in the tree
    view.each_twist([&](auto frame, auto reference) {
        if (!holds) return;
        const auto top = rules::climb(
            view, frame, [&](auto position) { return position != inside && position != root; });
        holds = top != view.none && is_along_edge(view, frame, reference);
        inside = frame;
    });
    return holds;
}

// The twist of the end of an edge at its origin and in its axes, by its twist edge or its joint.
Vector6 twist_of(const auto& view, auto frame, bool by_twist, const JointRule& rule,
                 const double* qd) {
    if (by_twist) return view.twist_vector(frame);
    const JointType type = view.joint_type(frame);
    if (!is_actuated(type)) return {};
    const auto& [x, y, z] = rule.multiplier * qd[rule.entry] * view.axis(frame);
    return type == JointType::prismatic ? Vector6{x, y, z, 0.0, 0.0, 0.0}
                                        : Vector6{0.0, 0.0, 0.0, x, y, z};
}

JointRule rule_of(const auto& view, auto frame) {
    return is_actuated(view.joint_type(frame)) ? view.rule(frame) : JointRule{};
}

// The origin of the end of one side of a path, and the twist of that frame, at the origin and in
// the axes of the top.
struct Motion {
    Vector3 origin{};
    Vector6 twist{};
    bool by_poses = false;  // whether an edge of poses between two bodies contributes
};

// Climb one side of a path: add the twist edges along its edges, else the joint velocities `qd`;
// nullopt if the motion of an edge is not determined.
std::optional<Motion> motion_along(const auto& view, const auto& path, bool up, const double* qd,
                                   bool with_twists) {
    Motion motion;
    for (std::size_t i = path.count(up); i-- > 0;) {
        const auto frame = below(path.edge(up, i));
        const JointType type = view.joint_type(frame);
        const bool by_twist =
            with_twists && is_along_edge(view, frame, view.twist_reference(frame));
        if (!by_twist && (!view.is_stated(frame) || (!qd && type != JointType::fixed)))
            return std::nullopt;
        if (!by_twist && !motion.by_poses)
            motion.by_poses = view.body(view.parent(frame)) != view.body(frame);
        const JointRule rule = rule_of(view, frame);
        const Pose edge = is_actuated(type) ? view.edge(frame, rule) : view.pose(frame);
        motion.origin = edge.apply(motion.origin);
        motion.twist = carry_up(motion.twist + twist_of(view, frame, by_twist, rule, qd), edge);
    }
    return motion;
}

// As `related_twist`, without errors, by one ascent on either side. nullopt if a twist edge covers
// an edge of poses of the path without being along it, or the motion of an edge is not determined.
template <class View>
std::optional<Vector6> path_twist(const View& view, typename View::Frame point,
                                  typename View::Body body, typename View::Body reference,
                                  typename View::Frame axes, const double* qd) {
    const auto named = point == view.none ? axes : point;
    const auto root = rules::root_of(view, named);
    const auto end = [&](auto on) {
        return view.body(named) == on ? named : rules::top_in_tree(view, on, root);
    };
    const auto moving = end(body), still = end(reference);
    if (moving == view.none || still == view.none) return std::nullopt;
    const auto path = view.path(moving, still);
    const auto top = path.count(false) == 0 ? moving : view.parent(below(path.edge(false, 0)));
    const bool with_twists = view.twist_count() > 0;
    const std::optional<Motion> a = motion_along(view, path, false, qd, with_twists),
                                b = motion_along(view, path, true, qd, with_twists);
    if (!a || !b || (with_twists && (a->by_poses || b->by_poses) && !all_along_edges(view, root)))
        return std::nullopt;
    // The axes at the point's origin, from the top.
    Pose axes_from_point = pose_in(view, top, axes).inverse();
    axes_from_point.translation =
        -1.0 *
        axes_from_point.rotate(point == moving ? a->origin : pose_in(view, top, point).translation);
    return carry_up(a->twist + -1.0 * b->twist, axes_from_point);
}

// The effect of the error xi of a frame's pose on a twist in its axes: Ad(exp(xi)) V = V + [xi, V]
// to first order.
Vector6 bracket(const Vector6& xi, const Vector6& twist) {
    const Vector3 rho{xi[0], xi[1], xi[2]}, theta{xi[3], xi[4], xi[5]},
        linear{twist[0], twist[1], twist[2]}, angular{twist[3], twist[4], twist[5]};
    const Vector3 linear_part = cross(theta, linear) + cross(rho, angular),
                  angular_part = cross(theta, angular);
    return {linear_part[0],  linear_part[1],  linear_part[2],
            angular_part[0], angular_part[1], angular_part[2]};
}

// Add the effect of the error of a frame's pose in the axes, if any.
void add_pose_error(NoiseSum& error, const auto& view, auto axes, auto frame, auto&& effect) {
    NoiseSum noise;
    sum_errors(view.path(frame, axes), noise);
    for (const NoiseTerm& term : noise.terms()) error.add(term.source, noise.map(term), effect);
}

template <class View>
std::optional<Vector6> twist_between(const View& view, typename View::Frame point,
                                     typename View::Body body, typename View::Body reference,
                                     typename View::Frame axes, const double* qd,
                                     BodyPaths<typename View::Frame, typename View::Body>& paths,
                                     NoiseSum* error, bool unsure_poses) {
    if (body == reference) return Vector6{};
    if (!error) {
        const auto twist = path_twist(view, point, body, reference, axes, qd);
        if (twist || view.twist_count() == 0) return twist;
    }
    const auto root = rules::root_of(view, point == view.none ? axes : point);
    if (!find_path(view, paths, root, body, reference, qd != nullptr)) return std::nullopt;
    const Pose place = pose_in(view, axes, point);
    Vector6 total{};
    for (auto position = paths.reached.back(); position.sign != 0.0;
         position = paths.reached[position.before]) {
        const auto& step = paths.steps[position.step];
        const auto frame = step.frame;
        const Vector6 twist = twist_of(view, frame, step.by_twist, rule_of(view, frame), qd);
        const EdgeNoise* noise = error && step.by_twist ? view.twist_noise(frame) : nullptr;
        if (twist == Vector6{} && !noise) continue;
        Pose from_point = pose_in(view, axes, frame);  // in the axes
        from_point.translation = from_point.translation - place.translation;
        const auto transform = [&, turn = position.sign](const Vector6& x) {
            return turn * carry_up(x, from_point);
        };
        total = total + transform(twist);
        if (noise) error->add(*noise, transform);
        if (unsure_poses)
            add_pose_error(*error, view, axes, frame,
                           [&](const Vector6& xi) { return transform(bracket(xi, twist)); });
    }
    if (unsure_poses && point != view.none)  // the point itself is at another position
        add_pose_error(*error, view, axes, point, [&](const Vector6& xi) {
            const Vector3 lever =
                cross({total[3], total[4], total[5]}, place.rotate({xi[0], xi[1], xi[2]}));
            return Vector6{lever[0], lever[1], lever[2], 0.0, 0.0, 0.0};
        });
    return total;
}

}  // namespace

bool sits_on(const SceneGraph& scene, std::string_view frame, std::string_view body) {
    const FrameRecord* result = scene.find(frame);
    return result && scene.body(result->body).name->text == body;
}

Vector3 related_position(const SceneGraph& scene, std::string_view point,
                         std::string_view reference, std::string_view axes, const double* q) {
    const Vector3 path = scene.pose(point, reference, q).translation;
    return axes == reference ? path : scene.pose(reference, axes, q).rotate(path);
}

Matrix3 related_orientation(const SceneGraph& scene, std::string_view frame,
                            std::string_view reference, std::string_view axes, const double* q) {
    const Matrix3 rotation = scene.pose(frame, reference, q).rotation();
    if (axes == reference) return rotation;
    const Matrix3 by = scene.pose(reference, axes, q).rotation();
    return multiply_transposed(by * rotation, by);
}

std::optional<Vector6> related_twist(const SceneGraph& scene, const FrameRecord* point, BodyId body,
                                     BodyId reference, const FrameRecord& axes, const double* q,
                                     const double* qd, NoiseSum* error) {
    BodyPaths<const FrameRecord*, BodyId> paths;
    return twist_between(RelatedFrames(scene, q), point, body, reference, &axes, qd, paths, error,
                         error && scene.has_noise());
}

std::vector<std::string> edges_of_twists(const SceneGraph& scene, std::string_view frame) {
    std::vector<const FrameRecord*> edges;
    const RelatedFrames view(scene, nullptr);
    list_crossed_edges(view, edges, rules::root_of(view, &scene.record(frame)));
    std::vector<std::string> names;
    for (const FrameRecord* edge : edges) names.push_back(edge->name->text);
    return names;
}

const FrameRecord* unstated_edge(const SceneGraph& scene, const FrameRecord& a,
                                 const FrameRecord& b) {
    std::vector<const FrameRecord*> edges;
    const GraphView view(scene);
    if (rules::root_of(view, &a) != rules::root_of(view, &b)) return nullptr;
    return unstated_edge(view, edges, &a, &b);
}

void require_stated_motion(const SceneGraph& scene, const FrameRecord& a, const FrameRecord& b) {
    if (const FrameRecord* edge = unstated_edge(scene, a, b))
        throw rules::unknown_motion(GraphView(scene), edge);
}

Vector6 SceneArrays::related_twist(std::string_view frame,
                                   std::optional<std::string_view> reference,
                                   std::optional<std::string_view> point,
                                   std::optional<std::string_view> axes, const Configuration& q,
                                   const Configuration& qd) {
    const Writer writer(lock_);
    require_length(q);
    require_length(qd);
    const View view(*this, q);
    const Slot moving = require_frame(frame),
               still = reference ? require_frame(*reference) : rules::root_of(view, moving);
    const Slot point_frame = point ? require_frame(*point) : moving,
               axes_frame = axes ? require_frame(*axes) : still;
    // a scene without joints has velocities too: free edges do not move.
    const double none_moves = 0.0;
    const double* velocities = !qd ? nullptr : qd->empty() ? &none_moves : qd->data();
    const auto twist = twist_between(view, point_frame, body_[moving], body_[still], axes_frame,
                                     velocities, body_ways_, nullptr, false);
    if (!twist && rules::root_of(view, moving) == rules::root_of(view, still))
        if (const Slot edge = unstated_edge(view, body_ways_.edges, moving, still); edge != none)
            throw rules::unknown_motion(view, edge);
    if (!twist)
        throw errors::scene(
            "the motion of frame '{}' relative to '{}' is unknown: no twist edges, fixed edges or, "
            "with qd, joints lead from one to the other; add a twist edge with set_twist, or give "
            "qd",
            frame, view.name(still))
            .with({{"frame", frame}, {"relative_to", view.name(still)}});
    return *twist;
}

}  // namespace tmkit
