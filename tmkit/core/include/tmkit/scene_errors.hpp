// Errors of rules that are checked in several places: by the persistent scene and by its arrays.
// Both then raise the same class, message and facts. Errors of rules with one check
// (scene_rules.hpp) are defined there.
#pragma once

#include <string>
#include <string_view>

#include "tmkit/error.hpp"
#include "tmkit/pose.hpp"

namespace tmkit {

inline std::string quote(std::string_view name) {
    std::string text(1, '\'');
    text.append(name);
    text.push_back('\'');
    return text;
}
inline Error duplicate(const std::string& kind, std::string_view name) {
    return Error(ErrorKind::duplicate_name, "a {} named '{}' is already in the scene", kind, name)
        .with({{"kind", kind}, {"name", name}});
}

namespace errors {

// Poses within this distance are equal: rounding of a product, not a move.
inline constexpr double same_pose_tolerance = 1e-9;

template <class... Parts> Error scene(std::string_view pattern, const Parts&... parts) {
    return Error(ErrorKind::scene, pattern, parts...);
}
// A violated rule of edges between frames and bodies, by its name in
// docs/reference/scene_edge_rules.md: PE1 to PE6, TE1 to TE6.
template <class... Parts>
Error rule(const char* name, std::string_view pattern, const Parts&... parts) {
    return scene(pattern, parts...).with({{"rule", name}});
}

// --- frames

inline Error empty_frame_name() { return scene("a frame needs a name that is not empty"); }
inline Error without_parent(std::string_view frame) {
    return scene("frame '{}' needs a parent", frame);
}
inline Error root_with_edge(std::string_view frame) {
    return scene("frame '{}' is a root, which has no joint and no pose", frame);
}
// what: "parent to change", "pose" or "joint"
inline Error root_without(std::string_view frame, const std::string& what) {
    return scene("frame '{}' is a root, which has no {}", frame, what);
}
inline Error cycle(std::string_view frame, std::string_view parent) {
    return Error(ErrorKind::cycle,
                 "frame '{}' cannot have parent '{}', which is itself or its descendant", frame,
                 parent)
        .with({{"frame", frame}, {"parent", parent}, {"rule", "PE5"}});
}
inline Error has_children(std::string_view frame, std::string_view first_child) {
    return scene(
        "frame '{}' has children, the first is '{}'; remove them first, or the whole subtree with "
        "subtree=True",
        frame, first_child);
}
inline Error disconnected(std::string_view target, std::string_view reference,
                          std::string_view target_root, std::string_view reference_root) {
    return Error(ErrorKind::disconnected,
                 "frames '{}' and '{}' are in different trees ('{}' and '{}'), so no pose between "
                 "them is known",
                 target, reference, target_root, reference_root)
        .with({{"frame", target}, {"relative_to", reference}});
}
inline Error collides_with_itself(std::string_view frame) {
    return scene("frame '{}' cannot collide with itself; name two frames", frame);
}

// --- bodies

inline Error moves_on_body(std::string_view frame, std::string_view parent) {
    return rule("PE4",
                "frames '{}' and '{}' are on one body, so the pose between them cannot change",
                frame, parent);
}
inline Error joint_inside_body(std::string_view frame) {
    return rule("PE4",
                "frame '{}' and its parent are on one body, so the edge between them must be fixed",
                frame);
}

// --- twists

inline Error joined_twice(std::string_view frame, std::string_view body,
                          std::string_view reference) {
    return rule("TE6",
                "a twist of frame '{}' relative to body '{}' would be the second between bodies "
                "'{}' and '{}': "
                "twists of frames that poses join to it lead from one to the other already; remove "
                "one of them with "
                "remove_twist",
                frame, reference, body, reference)
        .with({{"rule", "TE6"}, {"frame", frame}});
}
inline Error twists_contradict(std::string_view frame, std::string_view reference,
                               const Vector6& vector, std::string_view loop, const Vector6& sum) {
    return rule("TE6",
                "the twist of frame '{}' relative to body '{}' is {}, but those of frames {}, "
                "which poses join to it, "
                "make {}; remove or correct one of them",
                frame, reference, vector, loop, sum)
        .with({{"rule", "TE6"}, {"frame", frame}});
}
// A twist edge that joint velocities, or stamped poses, do not contain.
inline Error twist_left_out(std::string_view target, std::string_view reference,
                            std::string_view frame, std::string_view body, bool by_stamps) {
    const std::string data_name = by_stamps ? "poses at two stamps" : "joint velocities";
    return scene(
               "frame '{}' also moves relative to '{}' by the twist edge of frame '{}' relative to "
               "body "
               "'{}', which {} do not contain; compute what twist edges alone give with relate() "
               "without "
               "qd, or remove that edge with remove_twist",
               target, reference, frame, body, data_name)
        .with({{"queried_frame", target},
               {"relative_to", reference},
               {"frame", frame},
               {"body", body}});
}
// An edge that has a pose and no stated motion. The Python layer raises the same text
// (semantic_edges/queries.py).
inline Error unknown_motion(std::string_view frame, std::string_view parent) {
    return scene(
               "the motion of the edge between '{}' and its parent '{}' is unknown, since its pose "
               "alone does not "
               "state "
               "it; add a twist with add_twist, or state a joint with set_joint (Fixed() if "
               "nothing moves there), or "
               "join the frames with attach, mount or reparent",
               frame, parent)
        .with({{"frame", frame}, {"parent", parent}});
}
inline Error no_such_body(std::string_view name, const std::vector<std::string>& bodies) {
    const Error unknown = unknown_name("body", name, bodies);
    const char* hint =
        "{}; add it with add_body, or omit body= for a new body of the frame's own name";
    return Error(ErrorKind::unknown_name, hint, unknown.what()).with(unknown.facts());
}
inline Error is_reference(std::string_view body, std::string_view frame) {
    return scene("body '{}' cannot be removed while the twist of frame '{}' is relative to it",
                 body, frame);
}
inline Error without_twist(std::string_view frame) {
    return scene("frame '{}' has no twist edge to set an error on; add one with set_twist", frame);
}
inline Error empty_body_name() { return scene("a body needs a name that is not empty"); }

// --- groups, joints, configurations

inline Error empty_group_name() { return scene("a group needs a name that is not empty"); }
inline Error group_holds_itself(std::string_view group) {
    return Error(ErrorKind::cycle, "group '{}' cannot contain itself", group);
}
inline Error group_holds_in_turn(std::string_view holder, std::string_view group) {
    return Error(ErrorKind::cycle,
                 "group '{}' contains group '{}', which cannot contain it in turn", holder, group);
}
inline Error is_followed(std::string_view leader, std::string_view follower) {
    return scene("joint '{}' cannot be removed while joint '{}' mimics it", leader, follower);
}
inline Error wrong_length(std::size_t expected, std::size_t received) {
    return Error(ErrorKind::configuration, "q must hold {} numbers, but has {}", expected, received)
        .with({{"expected", expected}, {"received", received}});
}

// --- arrays

// what: "frame", "body", "attached shape" or "allowed pair"; keyword: the argument that increases
// the capacity.
inline Error full(const std::string& what, std::size_t capacity, const std::string& keyword) {
    const std::string larger =
        keyword == "capacity" ? keyword : format_text("capacity '{}'", keyword);
    return Error(ErrorKind::capacity,
                 "no room for another {}: all {} are taken; construct SceneArrays with a larger {}",
                 what, capacity, larger)
        .with({{"kind", keyword == "capacity" ? "frames" : keyword}, {"capacity", capacity}});
}

}  // namespace errors

}  // namespace tmkit
