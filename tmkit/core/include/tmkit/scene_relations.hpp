// Relations between the frames and bodies of a scene, in numbers.
//
// A frame is a point and an orientation frame of its name, on its body. A pose may speak of one
// frame's origin and another's axes, and be expressed in the axes of a third; a twist of any
// frame's origin, in any axes. All of it comes from poses between frames and, for twists, from the
// twist edges on the way between two bodies.
//
// Invariants: functions of the scene and their arguments. Each throws what SceneGraph::pose throws,
// where poses are missing.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tmkit/scene_graph.hpp"

namespace tmkit {

// Whether there is a frame of this name, on a body of that name.
bool sits_on(const SceneGraph& scene, std::string_view frame, std::string_view body);

// From the origin of one frame to that of another, in the axes of a third.
Vector3 related_position(const SceneGraph& scene, std::string_view point,
                         std::string_view reference, std::string_view axes, const double* q);

// How one frame is turned against another, as a matrix in the axes of a third; in those of the
// reference it is the rotation matrix.
Matrix3 related_orientation(const SceneGraph& scene, std::string_view frame,
                            std::string_view reference, std::string_view axes, const double* q);

// The twist [linear, angular] of a body relative to another, that of the point `point` (a frame of
// the body; any, when left out, for the angular part alone), in the axes of a frame. Bodies move by
// the twist edges whose frames poses join to the point, or to the axes; beside these, bodies that a
// fixed edge of poses joins move as one, unless it is of a pose without stated motion. With `qd`
// joints move as it says, and free edges do not; without it they say nothing. nullopt when nothing
// says how the one moves relative to the other. In one walk, O(depth + t) for t edges, where those
// on the way lie along edges of poses and no error is wanted; else O(t depth). Where its error is
// wanted, it is added to `error`, source by source and to first order: that of the edges on the
// way, and of the poses by which they are moved to the point and into the axes.
std::optional<Vector6> related_twist(const SceneGraph& scene, const FrameRecord* point, BodyId body,
                                     BodyId reference, const FrameRecord& axes, const double* q,
                                     const double* qd = nullptr, NoiseSum* error = nullptr);

// The frames below the edges of poses in the tree of a frame over which twist edges lead, so that
// these alone say how their ends move. O(t depth) for t twist edges.
std::vector<std::string> edges_of_twists(const SceneGraph& scene, std::string_view frame);

// The first edge of poses on the way between two frames of a tree whose motion nothing states: it
// has no joint, and no twist edge leads over it. If twist edges lead over the way, also one between
// these and the first frame. Null if there is none.
const FrameRecord* unstated_edge(const SceneGraph& scene, const FrameRecord& a,
                                 const FrameRecord& b);

// Throws Error(scene) if there is one.
void require_stated_motion(const SceneGraph& scene, const FrameRecord& a, const FrameRecord& b);

// Scratch for twists: how bodies move relative to each other, by the twist edge of a frame or as
// the edge of poses above it does; which bodies were reached from one, each with the place of the
// body before, the step, and whether up or down; and edges of poses that are not to be looked at
// again, ascending.
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
