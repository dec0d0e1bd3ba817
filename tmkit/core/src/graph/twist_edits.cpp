// Twist edges: the twists of bodies relative to each other, and the rules that keep them
// unambiguous.
//
// A twist edge leads from a reference body to a frame of another body and holds the twist of that
// frame relative to it, at the frame's origin and in its axes (g|C, D, [g]; TE2: other twists are
// converted above the core). It joins a body and a frame of another body (TE1); a frame has one
// reference body, and the same one again changes the value (TE3). TE4 to TE6 keep the set of edges
// unambiguous: twist_rules.hpp. The rules are those of De Laet, Bruyninckx and De Schutter's scene
// graph of poses and twists (2013), made decidable; docs/reference/scene_edge_rules.md.
//
// An edge describes a motion along the path of poses between its frame and its reference body.
// Reparenting replaces an edge of poses, and with it the motions across. Twist edges that cover the
// old edge are removed, like stamped poses, and a grasped object moves with the hand.
//
// The error of an edge is of its six numbers and constant while they hold (a bias, not noise that
// is new at every instant), so it moves with them. A new value is exact, unless it has an error.
//
// With t edges a check costs O(t (log t + depth log n)), in scenes where bodies have few frames
// with twists in one tree; a scene without twists has no cost.
#include "tmkit/twist_edits.hpp"

#include <algorithm>

#include "graph/scene_rules.hpp"

namespace tmkit {

// Add the twist edges that become redundant when a frame is attached to another to the removed
// ones; with `keep`, there may be none.
std::vector<FrameId> TwistEdits::find_redundant_twists(const FrameRecord& moving,
                                                       const FrameRecord& parent, const Pose& pose,
                                                       JointType type, std::vector<FrameId> ending,
                                                       bool keep) const {
    TwistRules set;
    BodyPaths<const FrameRecord*, BodyId> paths;
    const auto goes = [&](auto frame) {
        return std::find(ending.begin(), ending.end(), frame->id) != ending.end();
    };
    rules::join_twists(GraphView(scene_), set, paths, &moving, &parent, pose, type, goes,
                       [&](auto frame) {
        if (keep)
            throw errors::joined_twice(frame->name->text, {},
                                       {});  // the difference removes it later
        ending.push_back(frame->id);
    });
    return ending;
}

void TwistEdits::set_twist(std::string_view frame, const TwistEdge& edge) {
    const FrameRecord& on = record(frame);
    const BodyId reference = scene_.body_id(edge.reference);
    TwistRules set;
    const bool is_new = rules::check_twist(GraphView(scene_), set, &on, reference, edge.vector);
    const FrameId id = on.id;
    change_details(on, [&](FrameDetails& details) { details.twist = edge; });
    if (is_new) scene_.twists_.assign(id, reference);
}

void TwistEdits::set_twist_noise(std::string_view frame, Ref<const EdgeNoise> noise) {
    const FrameRecord& on = record(frame);
    if (!on.details || !on.details->twist) throw errors::without_twist(frame);
    change_details(on, [&](FrameDetails& details) { details.twist->noise = std::move(noise); });
}

void TwistEdits::remove_twist(std::string_view frame) {
    const FrameRecord& on = record(frame);
    if (on.details && on.details->twist) drop_twist(on.id);
}

void TwistEdits::drop_twist(FrameId id) {
    change_details(record(id), [](FrameDetails& details) { details.twist.reset(); });
    scene_.twists_.remove(id);
}

}  // namespace tmkit
