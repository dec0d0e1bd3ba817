// Relations between the frames and bodies of a scene, in numbers.
//
// A frame is a point and an orientation frame of its name, on its body. A pose may combine one
// frame's origin with another's axes, and be expressed in the axes of a third; a twist is of any
// frame's origin, in any axes. The relations follow from poses between frames and, for twists, from
// the twist edges between two bodies.
//
// Invariants: functions of the scene and their arguments. Each throws as SceneGraph::pose for
// missing poses.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tmkit/scene_graph.hpp"

namespace tmkit {

// Return whether there is a frame of this name, on a body of that name.
bool sits_on(const SceneGraph& scene, std::string_view frame, std::string_view body);

// The vector from the origin of one frame to that of another, in the axes of a third.
Vector3 related_position(const SceneGraph& scene, std::string_view point,
                         std::string_view reference, std::string_view axes, const double* q);

// The orientation of one frame relative to another, as a matrix in the axes of a third; in those of
// the reference it is the rotation matrix.
Matrix3 related_orientation(const SceneGraph& scene, std::string_view frame,
                            std::string_view reference, std::string_view axes, const double* q);

// The twist [linear, angular] of a body relative to another, at the point `point`, in the axes of a
// frame. The point is a frame of the body; without one only the angular part is defined. Bodies
// move by the twist edges whose frames are joined by poses to the point, or to the axes. Bodies
// that a fixed edge of poses joins move together, unless that edge is a pose without stated motion.
// With `qd` joints move at these velocities and free edges do not; without it they do not
// contribute. nullopt if the relative motion is not determined.
//
// O(depth + t) for t edges, in one walk, if the edges in question are along edges of poses and no
// error is required; else O(t depth). The error of the edges, and of the poses that move them to
// the point and into the axes, is added to `error` if given, source by source and to first order.
std::optional<Vector6> related_twist(const SceneGraph& scene, const FrameRecord* point, BodyId body,
                                     BodyId reference, const FrameRecord& axes, const double* q,
                                     const double* qd = nullptr, NoiseSum* error = nullptr);

// The frames below the edges of poses, in the tree of a frame, that twist edges cover. These alone
// then determine the relative motion of their ends. O(t depth) for t twist edges.
std::vector<std::string> edges_of_twists(const SceneGraph& scene, std::string_view frame);

// The first edge of poses between two frames of a tree without a stated motion: it has no joint,
// and no twist edge covers it. If twist edges cover the path, also one between these and the first
// frame. Null if there is none.
const FrameRecord* unstated_edge(const SceneGraph& scene, const FrameRecord& a,
                                 const FrameRecord& b);

// Throws Error(scene) if there is one.
void require_stated_motion(const SceneGraph& scene, const FrameRecord& a, const FrameRecord& b);

// Scratch for twists. It holds the relative motion of bodies, by the twist edge of a frame or the
// edge of poses above it. It also holds the bodies reached from one, each with the index of the
// previous body, the step, and the direction, and the edges of poses to skip, ascending.
template <class Frame, class Body> struct BodyPaths {
    struct Step {
        Frame frame;
        Body body, reference;
        bool by_twist;
    };
    struct Reached {
        Body body;
        std::size_t before, step;
        double sign;
    };
    std::vector<Step> steps;
    std::vector<Reached> reached;
    std::vector<Frame> edges;
};

}  // namespace tmkit
