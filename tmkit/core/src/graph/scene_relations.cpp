// See the header. A way from one body to another is a chain of steps: twist edges, and edges of
// poses over which no twist edge leads, since these say how their frames move. It is the only one:
// an edge of poses that no twist edge leads over parts the bodies on its two sides, and twist edges
// join two bodies only once.
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
        return moved(frame->pose, frame->joint_type, frame->joint->axis, rule.value(q()));
    }
    const Vector3& axis(Frame frame) const { return frame->joint->axis; }
    const EdgeNoise* twist_noise(Frame frame) const { return frame->twist_noise(); }
};

const FrameRecord* below(const FrameRecord& edge) { return &edge; }
SceneArrays::Slot below(SceneArrays::Slot edge) { return edge; }

// Whether an edge of poses comes to the list, in which each is once.
bool enters(auto& edges, auto frame) {
    const auto at = std::lower_bound(edges.begin(), edges.end(), frame, std::less<>());
    if (at != edges.end() && *at == frame) return false;
    edges.insert(at, frame);
    return true;
}

// Lists the edges of poses over which twist edges lead: their motion is said by these.
void list_crossed_edges(const auto& view, auto& edges, auto root) {
    rules::each_told_way(view, root, [&](auto, auto from, auto to) {
        rules::each_between(view, from, to, [&](auto at) { enters(edges, at); });
    });
}

// Adds what is known of how edges of poses above a body move: fixed ones not at all, the others as
// `qd` says if given.
void add_pose_steps(const auto& view, auto& paths, auto root, auto body, bool with_qd) {
    rules::climb(view, rules::top_in_tree(view, body, root), [&](auto frame) {
        const auto parent = view.parent(frame);
        if (parent != view.none && view.body(parent) != view.body(frame) && view.is_stated(frame) &&
            (with_qd || view.joint_type(frame) == JointType::fixed) && enters(paths.edges, frame))
            paths.steps.push_back({frame, view.body(frame), view.body(parent), false});
        return true;
    });
}

// Whether steps lead there by twist edges alone, or else with the edges of poses.
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
    auto found = view.none;
    bool is_crossed = false;
    const auto visit = [&](auto at) {
        const bool is_told = std::binary_search(edges.begin(), edges.end(), at, std::less<>());
        is_crossed |= is_told;
        if (found == view.none && !is_told && !view.is_stated(at)) found = at;
    };
    rules::each_between(view, a, b, visit);
    if (!is_crossed) return found;
    view.each_twist([&](auto head, auto) {
        if (rules::root_of(view, head) == rules::root_of(view, a))
            rules::each_between(view, a, head, visit);
    });
    return found;
}

// The pose of a frame, or of none, in the axes.
Pose pose_in(const auto& view, auto axes, auto frame) {
    return frame == view.none || frame == axes ? Pose{} : view.relative(frame, axes);
}

// Whether a twist edge says how the edge of poses above its frame moves, and nothing else.
bool is_along_edge(const auto& view, auto frame, auto reference) {
    if (reference == view.no_body) return false;
    const auto parent = view.parent(frame);
    return parent != view.none && view.body(parent) == reference;
}

// Whether that holds of all twist edges, and all are in the tree of a root: then none leads
// elsewhere.
bool all_along_edges(const auto& view, auto root) {
    bool holds = true;
    auto inside = root;  // the last frame that was found in the tree
    view.each_twist([&](auto frame, auto reference) {
        if (!holds) return;
        const auto top =
            rules::climb(view, frame, [&](auto at) { return at != inside && at != root; });
        holds = top != view.none && is_along_edge(view, frame, reference);
        inside = frame;
    });
    return holds;
}

// The twist of the end of an edge at its origin and in its axes, by its twist edge or as its joint
// moves.
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

// The origin of the end of one side of a way, and the twist of that frame, at the origin and in the
// axes of the top.
struct Motion {
    Vector3 origin{};
    Vector6 twist{};
    bool by_poses = false;  // whether an edge of poses between two bodies says a part of it
};

// Goes up one side of a way: what the twist edges along its edges say, else what `qd` says of
// these; nullopt where an edge says nothing.
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
        motion.twist = carried_up(motion.twist + twist_of(view, frame, by_twist, rule, qd), edge);
    }
    return motion;
}

// As `related_twist`, exactly, in one way up from either side; nullopt where a twist edge leads
// over an edge of poses on the way in another manner than along it, or an edge says nothing.
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
    Pose axes_from_point =
        pose_in(view, top, axes).inverse();  // the axes at the point's origin, from the top
    axes_from_point.translation =
        -1.0 *
        axes_from_point.rotate(point == moving ? a->origin : pose_in(view, top, point).translation);
    return carried_up(a->twist + -1.0 * b->twist, axes_from_point);
}

// What the error xi of a frame's pose does to a twist that is said in the frame: Ad(exp(xi)) V = V
// + [xi, V] to first order.
Vector6 bracket(const Vector6& xi, const Vector6& twist) {
    const Vector3 rho{xi[0], xi[1], xi[2]}, theta{xi[3], xi[4], xi[5]},
        linear{twist[0], twist[1], twist[2]}, angular{twist[3], twist[4], twist[5]};
    const Vector3 moved = cross(theta, linear) + cross(rho, angular),
                  turned = cross(theta, angular);
    return {moved[0], moved[1], moved[2], turned[0], turned[1], turned[2]};
}

// Adds the error of the pose of a frame in the axes, as `effect` has it, where there is one.
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
    for (auto at = paths.reached.back(); at.sign != 0.0; at = paths.reached[at.before]) {
        const auto& step = paths.steps[at.step];
        const auto frame = step.frame;
        const Vector6 twist = twist_of(view, frame, step.by_twist, rule_of(view, frame), qd);
        const EdgeNoise* noise = error && step.by_twist ? view.twist_noise(frame) : nullptr;
        if (twist == Vector6{} && !noise) continue;
        Pose from_point = pose_in(view, axes, frame);  // in the axes
        from_point.translation = from_point.translation - place.translation;
        const auto moved = [&, turn = at.sign](const Vector6& x) {
            return turn * carried_up(x, from_point);
        };
        total = total + moved(twist);
        if (noise) error->add(*noise, moved);
        if (unsure_poses)
            add_pose_error(*error, view, axes, frame,
                           [&](const Vector6& xi) { return moved(bracket(xi, twist)); });
    }
    if (unsure_poses && point != view.none)  // the point itself is elsewhere
        add_pose_error(*error, view, axes, point, [&](const Vector6& xi) {
            const Vector3 off =
                cross({total[3], total[4], total[5]}, place.rotate({xi[0], xi[1], xi[2]}));
            return Vector6{off[0], off[1], off[2], 0.0, 0.0, 0.0};
        });
    return total;
}

}  // namespace

bool sits_on(const SceneGraph& scene, std::string_view frame, std::string_view body) {
    const FrameRecord* found = scene.find(frame);
    return found && scene.body(found->body).name->text == body;
}

Vector3 related_position(const SceneGraph& scene, std::string_view point,
                         std::string_view reference, std::string_view axes, const double* q) {
    const Vector3 path = scene.pose(point, reference, q).translation;
    return axes == reference ? path : scene.pose(reference, axes, q).rotate(path);
}

Matrix3 related_orientation(const SceneGraph& scene, std::string_view frame,
                            std::string_view reference, std::string_view axes, const double* q) {
    const Matrix3 turned = scene.pose(frame, reference, q).rotation();
    if (axes == reference) return turned;
    const Matrix3 by = scene.pose(reference, axes, q).rotation();
    return multiply_transposed(by * turned, by);
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
    const Slot at = point ? require_frame(*point) : moving,
               turned = axes ? require_frame(*axes) : still;
    const double none_moves =
        0.0;  // without joints there are velocities, too: of free edges, which do not move
    const double* velocities = !qd ? nullptr : qd->empty() ? &none_moves : qd->data();
    const auto twist = twist_between(view, at, body_[moving], body_[still], turned, velocities,
                                     body_ways_, nullptr, false);
    if (!twist && rules::root_of(view, moving) == rules::root_of(view, still))
        if (const Slot edge = unstated_edge(view, body_ways_.edges, moving, still); edge != none)
            throw rules::unknown_motion(view, edge);
    if (!twist)
        throw errors::scene(
            "nothing says how frame '{}' moves relative to '{}': no twist edges, fixed edges or, "
            "with qd, joints lead from one to the other; add a twist edge with set_twist, or give "
            "qd",
            frame, view.name(still))
            .with({{"frame", frame}, {"relative_to", view.name(still)}});
    return *twist;
}

}  // namespace tmkit
