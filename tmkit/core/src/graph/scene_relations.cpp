// See the header. A way from one body to another is a chain of steps: twist edges, and edges of poses over which no
// twist edge leads, since these say how their frames move.
#include "tmkit/scene_relations.hpp"

#include <algorithm>

#include "ascent.hpp"
#include "tmkit/scene_gaussian.hpp"

namespace tmkit {
namespace {

// How a body moves relative to another: by a twist edge, or as the edge of poses between them does. The twist is that
// of the frame's origin, in its axes.
struct Step {
    const FrameRecord* frame;
    BodyId body, reference;
    Vector6 twist;
    const EdgeNoise* noise;
};

// A body, and how it was reached: the place of the body before in the list, the step, and whether up or down.
struct Reached {
    BodyId body;
    std::size_t before, step;
    double sign;
};

// The way from one body to another, from its end; empty when there is none. It is the only one: an edge of poses that
// no twist edge leads over parts the bodies on its two sides, and twist edges join two bodies only once.
std::vector<Reached> way(const std::vector<Step>& steps, BodyId from, BodyId to) {
    std::vector<Reached> reached{{from, 0, 0, 0.0}};
    for (std::size_t next = 0; next < reached.size(); ++next)
        for (std::size_t k = 0; k < steps.size(); ++k) {
            const bool up = steps[k].body == reached[next].body, down = steps[k].reference == reached[next].body;
            const BodyId other = up ? steps[k].reference : steps[k].body;
            const auto is_it = [&](const Reached& known) { return known.body == other; };
            if ((!up && !down) || std::any_of(reached.begin(), reached.end(), is_it)) continue;
            reached.push_back({other, next, k, up ? 1.0 : -1.0});
            if (other != to) continue;
            std::vector<Reached> found;
            for (Reached at = reached.back(); at.sign != 0.0; at = reached[at.before]) found.push_back(at);
            return found;
        }
    return {};
}

// The frames from the topmost one of a body in a tree up to its root; none when the body is not in the tree.
std::vector<const FrameRecord*> frames_up(const SceneGraph& scene, BodyId body, FrameId root) {
    std::vector<const FrameRecord*> above;
    for (const FrameId top : scene.body(body).tops) {
        if (scene.root_of(top) != root) continue;
        for (FrameId at = top; at != no_frame; at = above.back()->parent) above.push_back(&scene.record(at));
        break;
    }
    return above;
}

std::vector<Step> twist_steps(const SceneGraph& scene, FrameId root) {
    std::vector<Step> steps;
    steps.reserve(scene.twist_count());
    scene.for_each_twist([&](FrameId id, BodyId above) {
        if (scene.root_of(id) != root) return;
        const FrameRecord& frame = scene.record(id);
        steps.push_back({&frame, frame.body, above, frame.details->twist->vector, frame.twist_noise()});
    });
    return steps;
}

// The edges of poses over which twist edges lead: their motion is said by these. In ascending order of ids.
std::vector<FrameId> crossed_edges(const SceneGraph& scene, FrameId root, const std::vector<Step>& steps) {
    std::vector<FrameId> crossed;
    for (const Step& step : steps) {
        std::vector<FrameId> edges;  // those above both ends are there twice
        for (FrameId at = step.frame->id; at != no_frame; at = scene.record(at).parent) edges.push_back(at);
        for (const FrameRecord* at : frames_up(scene, step.reference, root)) edges.push_back(at->id);
        std::sort(edges.begin(), edges.end());
        for (std::size_t i = 0; i < edges.size(); ++i)
            if (i + 1 < edges.size() && edges[i] == edges[i + 1]) ++i;
            else crossed.push_back(edges[i]);
    }
    std::sort(crossed.begin(), crossed.end());
    return crossed;
}

// Adds what is known of how edges of poses above a body move: fixed ones not at all, the others as `qd` says if given.
void add_pose_steps(std::vector<Step>& steps, const SceneGraph& scene, const std::vector<const FrameRecord*>& above,
                    const std::vector<FrameId>& crossed, const double* qd) {
    for (std::size_t i = 0; i + 1 < above.size(); ++i) {
        const FrameRecord& frame = *above[i];
        const BodyId reference = above[i + 1]->body;
        if (frame.body == reference || (!qd && frame.joint_type != JointType::fixed) ||
            std::binary_search(crossed.begin(), crossed.end(), frame.id))
            continue;
        Vector6 twist{};
        if (is_actuated(frame.joint_type)) {
            const JointRule rule = scene.joint_rule(frame);
            const std::size_t first = frame.joint_type == JointType::prismatic ? 0 : 3;
            for (std::size_t k = 0; k < 3; ++k)
                twist[first + k] = rule.multiplier * qd[rule.entry] * frame.joint->axis[k];
        }
        steps.push_back({&frame, frame.body, reference, twist, nullptr});
    }
}

// The steps from one body to another, from its end, by twist edges alone or else with the edges of poses.
std::vector<std::pair<Step, double>> steps_between(const SceneGraph& scene, FrameId root, BodyId from, BodyId to,
                                                   const double* qd) {
    std::vector<Step> steps = twist_steps(scene, root);
    std::vector<Reached> found = way(steps, from, to);
    if (found.empty()) {
        std::vector<BodyId> bodies{from, to};
        for (const Step& step : steps) bodies.insert(bodies.end(), {step.body, step.reference});
        std::sort(bodies.begin(), bodies.end());
        bodies.erase(std::unique(bodies.begin(), bodies.end()), bodies.end());
        const std::vector<FrameId> crossed = crossed_edges(scene, root, steps);
        for (const BodyId body : bodies) add_pose_steps(steps, scene, frames_up(scene, body, root), crossed, qd);
        found = way(steps, from, to);
    }
    std::vector<std::pair<Step, double>> signed_steps;
    for (const Reached& reached : found) signed_steps.push_back({steps[reached.step], reached.sign});
    return signed_steps;
}

// Where a frame is relative to another above it, and how it moves: the twist of the point at that one's origin, in its
// axes.
struct Motion {
    Pose pose;
    Vector3 linear{}, angular{};
};

// The motion of the first frame of an ascent relative to the one after `below`; nullopt where an edge says nothing.
std::optional<Motion> motion_up(const SceneGraph& scene, const Ascent& ascent, std::size_t below, const double* q,
                                const double* qd) {
    Motion motion;
    for (std::size_t i = below; i-- > 0;) {
        const FrameRecord& edge = *ascent[i];
        if (!edge.joint) {
            if (!qd && edge.joint_type == JointType::free) return std::nullopt;
            motion.pose = motion.pose * edge.pose;
            continue;
        }
        if (!qd) return std::nullopt;
        const JointRule rule = scene.joint_rule(edge);
        const double value = q ? rule.value(q) : scene.joint_value(edge, q);  // which throws without q
        motion.pose = motion.pose * moved(edge.pose, edge.joint_type, edge.joint->axis, value);
        const Vector3 along = rule.multiplier * qd[rule.entry] * motion.pose.rotate(edge.joint->axis);
        if (edge.joint_type == JointType::prismatic) {
            motion.linear = motion.linear + along;
        } else {
            motion.angular = motion.angular + along;
            motion.linear = motion.linear + cross(motion.pose.translation, along);
        }
    }
    return motion;
}

// As `related_twist`, in a scene without twist edges, exactly: in one way up from either side.
std::optional<Vector6> joints_twist(const SceneGraph& scene, std::optional<std::string_view> point, BodyId body,
                                    BodyId reference, std::string_view axes, const double* q, const double* qd) {
    const FrameRecord& named = scene.record(point ? *point : axes);
    const FrameId root = scene.root_of(named.id);
    const auto end = [&](BodyId on) -> const FrameRecord* {
        if (named.body == on) return &named;
        for (const FrameId top : scene.body(on).tops)
            if (scene.root_of(top) == root) return &scene.record(top);
        return nullptr;
    };
    const FrameRecord *moving = end(body), *still = end(reference);
    if (!moving || !still) return std::nullopt;
    const Ascent up(scene, *moving), down(scene, *still);
    const auto [i, j] = below_common(up, down);
    const std::optional<Motion> a = motion_up(scene, up, i, q, qd), b = motion_up(scene, down, j, q, qd);
    if (!a || !b) return std::nullopt;
    const std::string_view top = up[i]->name->text;
    const auto pose_of = [&](std::string_view frame) {
        if (frame == top) return Pose{};
        return frame == moving->name->text ? a->pose : frame == still->name->text ? b->pose : scene.pose(frame, top, q);
    };
    Vector3 linear = a->linear - b->linear;
    const Vector3 angular = a->angular - b->angular;
    if (point) linear = linear + cross(angular, pose_of(*point).translation);
    const Pose from_axes = pose_of(axes);
    const auto turned = [&](const Vector3& vector) { return from_axes.inverse().rotate(vector); };
    const Vector3 v = turned(linear), w = turned(angular);
    return Vector6{v[0], v[1], v[2], w[0], w[1], w[2]};
}

// What the error xi of a frame's pose does to a twist that is said in the frame: Ad(exp(xi)) V = V + [xi, V] to first
// order.
Vector6 bracket(const Vector6& xi, const Vector6& twist) {
    const Vector3 rho{xi[0], xi[1], xi[2]}, theta{xi[3], xi[4], xi[5]}, linear{twist[0], twist[1], twist[2]},
        angular{twist[3], twist[4], twist[5]};
    const Vector3 moved = cross(theta, linear) + cross(rho, angular), turned = cross(theta, angular);
    return {moved[0], moved[1], moved[2], turned[0], turned[1], turned[2]};
}

Vector6 scaled(double factor, const Vector6& x) {
    Vector6 result;
    for (std::size_t k = 0; k < 6; ++k) result[k] = factor * x[k];
    return result;
}

// Adds the error of the pose of a frame in the axes, as `effect` has it, where there is one.
template <class Effect>
void add_pose_error(NoiseSum& error, const SceneGraph& scene, std::string_view axes, const FrameRecord& frame,
                    const double* q, Effect&& effect) {
    const NoiseSum noise = path_noise(scene, scene.record(axes), frame, q);
    for (const NoiseTerm& term : noise.terms()) error.add(term.source, noise.map(term), effect);
}

}  // namespace

bool sits_on(const SceneGraph& scene, std::string_view frame, std::string_view body) {
    const FrameRecord* found = scene.find(frame);
    return found && scene.body(found->body).name->text == body;
}

Vector3 related_position(const SceneGraph& scene, std::string_view point, std::string_view reference,
                         std::string_view axes, const double* q) {
    const Vector3 way = scene.pose(point, reference, q).translation;
    return axes == reference ? way : scene.pose(reference, axes, q).rotate(way);
}

Matrix3 related_orientation(const SceneGraph& scene, std::string_view frame, std::string_view reference,
                            std::string_view axes, const double* q) {
    const Matrix3 turned = scene.pose(frame, reference, q).rotation();
    if (axes == reference) return turned;
    const Matrix3 by = scene.pose(reference, axes, q).rotation();
    return multiply_transposed(by * turned, by);
}

std::optional<Vector6> related_twist(const SceneGraph& scene, std::optional<std::string_view> point, BodyId body,
                                     BodyId reference, std::string_view axes, const double* q, const double* qd,
                                     NoiseSum* error) {
    if (body == reference) return Vector6{};
    if (scene.twist_count() == 0 && !error) return joints_twist(scene, point, body, reference, axes, q, qd);
    const FrameId root = scene.root_of(scene.record(point ? *point : axes).id);
    const auto steps = steps_between(scene, root, body, reference, qd);
    if (steps.empty()) return std::nullopt;
    const bool apart = point && *point != axes, unsure_poses = error && scene.has_noise();
    const Pose place = apart ? scene.pose(*point, axes, q) : Pose{};
    Vector6 total{};
    for (const auto& [step, sign] : steps) {
        const FrameRecord& frame = *step.frame;
        if (step.twist == Vector6{} && !step.noise) continue;
        Pose from_point = frame.name->text == axes ? Pose{} : scene.pose(frame.name->text, axes, q);  // in the axes
        from_point.translation = from_point.translation - place.translation;
        const auto moved = [&, turn = sign](const Vector6& x) { return scaled(turn, carried_up(x, from_point)); };
        const Vector6 part = moved(step.twist);
        for (std::size_t k = 0; k < 6; ++k) total[k] += part[k];
        if (error && step.noise) error->add(*step.noise, moved);
        if (unsure_poses && frame.name->text != axes)
            add_pose_error(*error, scene, axes, frame, q,
                           [&, twist = step.twist](const Vector6& xi) { return moved(bracket(xi, twist)); });
    }
    if (unsure_poses && apart)  // the point itself is elsewhere
        add_pose_error(*error, scene, axes, scene.record(*point), q, [&](const Vector6& xi) {
            const Vector3 off = cross({total[3], total[4], total[5]}, place.rotate({xi[0], xi[1], xi[2]}));
            return Vector6{off[0], off[1], off[2], 0.0, 0.0, 0.0};
        });
    return total;
}

}  // namespace tmkit
