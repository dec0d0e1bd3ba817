// Small scenes for the tests of the motion half.
#pragma once

#include <numbers>
#include <string>
#include <vector>

#include "support/editable_scene.hpp"
#include "tmkit/collision_world.hpp"
#include "tmkit/random.hpp"

namespace tmkit::test {

inline constexpr double pi = std::numbers::pi;

inline AttachedShape attached(ShapeKind kind, std::vector<double> dimensions,
                              const Pose& pose = {}) {
    AttachedShape result;
    result.shape = Shape::primitive(kind, std::move(dimensions));
    result.pose = pose;
    return result;
}

inline EditableScene with_frame(const EditableScene& scene, const std::string& name,
                                const std::string& parent, const Pose& pose,
                                std::vector<AttachedShape> shapes = {}, const Joint& joint = {}) {
    return scene.add_frame({name, parent, pose, joint, "", {}, std::move(shapes), {}});
}

inline EditableScene with_box(const EditableScene& scene, const std::string& name,
                              const Vector3& size, const Vector3& at,
                              const std::string& parent = "world") {
    return with_frame(scene, name, parent, {at, {0.0, 0.0, 0.0, 1.0}},
                      {attached(ShapeKind::box, {size[0], size[1], size[2]})});
}

inline Joint joint_of_type(JointType type, const Vector3& axis, double lower = -Joint::unlimited,
                           double upper = Joint::unlimited) {
    Joint joint;
    joint.type = type;
    joint.axis = axis;
    joint.lower = lower;
    joint.upper = upper;
    return joint;
}

inline EditableScene world_only() { return EditableScene().add_root("world"); }

// A seven-joint arm with capsule links, about 1 m long: frames j0 .. j6 and the tip.
inline EditableScene with_arm(EditableScene scene, const std::string& prefix = "",
                              const Pose& base = {}) {
    const Vector3 axes[7] = {{0, 0, 1}, {0, 1, 0}, {0, 0, 1}, {0, -1, 0},
                             {0, 0, 1}, {0, 1, 0}, {0, 0, 1}};
    const double lengths[7] = {0.15, 0.15, 0.2, 0.2, 0.15, 0.1, 0.08};
    std::string parent = "world";
    Pose pose = base;
    for (int i = 0; i < 7; ++i) {
        const double length = lengths[i];
        const std::string name = prefix + "j" + std::to_string(i);
        const Pose middle{{0.0, 0.0, 0.5 * length}, {0.0, 0.0, 0.0, 1.0}};
        scene = with_frame(scene, name, parent, pose,
                           {attached(ShapeKind::capsule,
                                     {0.03, length - 0.07 > 0 ? length - 0.07 : 0.01}, middle)},
                           joint_of_type(JointType::revolute, axes[i], -2.6, 2.6));
        if (i > 0) scene = scene.allow_collision(parent, name, "adjacent");
        parent = name;
        pose = {{0.0, 0.0, length}, {0.0, 0.0, 0.0, 1.0}};
    }
    return with_frame(scene, prefix + "tip", parent, pose);
}

// The arm before a wall, under a shelf and over a floor, at a position in the world.
inline EditableScene arm_among_boxes(const Vector3& at = {}) {
    EditableScene scene = with_arm(world_only(), "", {at, {0.0, 0.0, 0.0, 1.0}});
    scene = with_box(scene, "wall", {0.3, 0.04, 0.5}, at + Vector3{0.5, 0.0, 0.25});
    scene = with_box(scene, "shelf", {0.4, 0.8, 0.03}, at + Vector3{0.5, 0.0, 0.9});
    return with_box(scene, "floor", {2.0, 2.0, 0.1}, at + Vector3{0.0, 0.0, -0.12})
        .allow_collision("floor", "j0", "mounted");
}

inline CollisionOptions with_margin(double margin) {
    CollisionOptions options;
    options.margin = margin;
    return options;
}

inline std::vector<double> random_configuration(const EditableScene& scene, Random& random,
                                                double bound = 2.6) {
    std::vector<double> q(scene.joint_count());
    for (double& value : q) value = random.uniform(-bound, bound);
    return q;
}

inline std::int32_t number(const EditableScene& scene, const std::string& frame) {
    return scene.layout().index_of(scene.record(frame).id);
}

inline std::vector<std::int32_t> all_entries(const EditableScene& scene) {
    std::vector<std::int32_t> entries(scene.joint_count());
    for (std::size_t i = 0; i < entries.size(); ++i) entries[i] = static_cast<std::int32_t>(i);
    return entries;
}

inline FramePair pair_of(const EditableScene& scene, const std::string& a, const std::string& b) {
    const std::int32_t i = number(scene, a), j = number(scene, b);
    return i < j ? FramePair{i, j} : FramePair{j, i};
}

}  // namespace tmkit::test
