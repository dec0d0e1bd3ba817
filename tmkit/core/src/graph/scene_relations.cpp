// See the header. A path of twists goes up from both bodies, edge by edge, to the nearest body that is above both.
#include "tmkit/scene_relations.hpp"

#include <algorithm>

#include "tmkit/scene_gaussian.hpp"

namespace tmkit {
namespace {

// Up one edge: from the body of a frame to the body that its twist refers to.
struct Step {
    FrameId frame;
    BodyId body, reference;
};

// A body above another, and how it was reached: the place of the body below in the list, and the frame of the edge.
struct Reached {
    BodyId body;
    std::size_t below;
    FrameId frame;
};

// All bodies above a body, itself first, then in order of distance, by edges whose frames stand in one tree.
std::vector<Reached> bodies_up(const SceneGraph& scene, FrameId root, const std::vector<Step>& steps, BodyId body) {
    std::vector<Reached> reached{{body, 0, no_frame}};
    for (std::size_t next = 0; next < reached.size(); ++next)
        for (const Step& step : steps) {
            const auto is_it = [&](const Reached& known) { return known.body == step.reference; };
            if (step.body == reached[next].body && std::none_of(reached.begin(), reached.end(), is_it) &&
                scene.root_of(step.frame) == root)
                reached.push_back({step.reference, next, step.frame});
        }
    return reached;
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
                                     BodyId reference, std::string_view axes, const double* q, NoiseSum* error) {
    if (body == reference) return Vector6{};
    const FrameId root = scene.root_of(scene.record(point ? *point : axes).id);
    std::vector<Step> steps;
    steps.reserve(scene.twist_count());
    scene.for_each_twist([&](FrameId id, BodyId above) { steps.push_back({id, scene.record(id).body, above}); });
    const std::vector<Reached> up = bodies_up(scene, root, steps, body),
                               down = bodies_up(scene, root, steps, reference);
    const auto in = [](const std::vector<Reached>& reached, BodyId wanted) {
        return std::find_if(reached.begin(), reached.end(), [&](const Reached& known) { return known.body == wanted; });
    };
    const auto meeting =
        std::find_if(up.begin(), up.end(), [&](const Reached& above) { return in(down, above.body) != down.end(); });
    if (meeting == up.end()) return std::nullopt;
    const bool apart = point && *point != axes, unsure_poses = error && scene.has_noise();
    const Pose place = apart ? scene.pose(*point, axes, q) : Pose{};
    Vector6 total{};
    const auto add = [&](const std::vector<Reached>& reached, std::size_t from, double sign) {
        for (std::size_t i = from; i != 0; i = reached[i].below) {
            const FrameRecord& frame = scene.record(reached[i].frame);
            const Vector6& twist = frame.details->twist->vector;
            Pose from_point = frame.name->text == axes ? Pose{} : scene.pose(frame.name->text, axes, q);  // in the axes
            from_point.translation = from_point.translation - place.translation;
            const auto moved = [&](const Vector6& x) { return scaled(sign, carried_up(x, from_point)); };
            const Vector6 part = moved(twist);
            for (std::size_t k = 0; k < 6; ++k) total[k] += part[k];
            if (error && frame.details->twist->noise) error->add(*frame.details->twist->noise, moved);
            if (unsure_poses && frame.name->text != axes)
                add_pose_error(*error, scene, axes, frame, q,
                               [&](const Vector6& xi) { return moved(bracket(xi, twist)); });
        }
    };
    add(up, static_cast<std::size_t>(meeting - up.begin()), 1.0);
    add(down, static_cast<std::size_t>(in(down, meeting->body) - down.begin()), -1.0);
    if (unsure_poses && apart)  // the point itself is elsewhere
        add_pose_error(*error, scene, axes, scene.record(*point), q, [&](const Vector6& xi) {
            const Vector3 off = cross({total[3], total[4], total[5]}, place.rotate({xi[0], xi[1], xi[2]}));
            return Vector6{off[0], off[1], off[2], 0.0, 0.0, 0.0};
        });
    return total;
}

}  // namespace tmkit
