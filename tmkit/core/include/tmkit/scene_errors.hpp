// What a scene refuses, in words: one function for each rule that an edit or a query may break.
//
// Most rules are checked in two places, by the persistent scene and by its arrays, which know them by different means;
// that both refuse with the same class, message and facts is seen to by this page.
#pragma once

#include <limits>
#include <string>
#include <string_view>

#include "tmkit/error.hpp"
#include "tmkit/pose.hpp"

namespace tmkit {

inline std::string quoted(std::string_view name) {
    std::string text(1, '\'');
    text.append(name);
    text.push_back('\'');
    return text;
}
inline Error duplicate(const std::string& kind, std::string_view name) {
    return Error(ErrorKind::duplicate_name, "a {} named '{}' is already in the scene", kind, name)
        .with({{"kind", kind}, {"name", name}});
}

namespace refusals {

// Poses this near are one pose said twice: rounding of a product, not a move.
inline constexpr double same_pose_tolerance = 1e-9;

template <class... Parts> Error scene(std::string_view pattern, const Parts&... parts) {
    return Error(ErrorKind::scene, pattern, parts...);
}
// A broken rule of edges between frames and bodies, by its name in docs/concepts/relations.md: PE1 to PE6, TE1 to TE6.
template <class... Parts> Error rule(const char* name, std::string_view pattern, const Parts&... parts) {
    return scene(pattern, parts...).with({{"rule", name}});
}

// --- names -----------------------------------------------------------------------------------------------------------

inline Error empty_frame_name() { return scene("a frame needs a name that is not empty"); }

// --- trees -----------------------------------------------------------------------------------------------------------

inline Error on_no_body(std::string_view frame) {
    return rule("N3", "frame '{}' has neither a parent nor a body; give parent= or body=", frame);
}
inline Error without_parent(std::string_view frame) { return scene("frame '{}' needs a parent", frame); }
inline Error root_with_edge(std::string_view frame) {
    return scene("frame '{}' is a root, which has no joint and no pose", frame);
}
// what: "parent to change", "pose" or "joint"
inline Error root_without(std::string_view frame, const std::string& what) {
    return scene("frame '{}' is a root, which has no {}", frame, what);
}
inline Error cycle(std::string_view frame, std::string_view parent) {
    return Error(ErrorKind::cycle, "frame '{}' cannot have parent '{}', which is itself or its descendant", frame,
                 parent)
        .with({{"frame", frame}, {"parent", parent}, {"rule", "PE5"}});
}
inline Error has_children(std::string_view frame, std::string_view first_child) {
    return scene(
        "frame '{}' has children, the first is '{}'; remove them first, or the whole subtree with subtree=True", frame,
        first_child);
}
inline Error disconnected(std::string_view target, std::string_view reference, std::string_view target_root,
                          std::string_view reference_root) {
    return Error(ErrorKind::disconnected,
                 "frames '{}' and '{}' are in different trees ('{}' and '{}'), so no pose between them is known",
                 target, reference, target_root, reference_root)
        .with({{"frame", target}, {"relative_to", reference}});
}
inline Error collides_with_itself(std::string_view frame) {
    return scene("frame '{}' cannot collide with itself; name two frames", frame);
}

// --- bodies ----------------------------------------------------------------------------------------------------------

inline Error new_edge_inside_body(std::string_view frame, std::string_view parent, std::string_view body) {
    return rule("PE4", "frame '{}' and its parent '{}' are on one body '{}', so the edge between them must be fixed",
                frame, parent, body);
}
inline Error body_in_this_tree(std::string_view frame, std::string_view body, std::string_view top) {
    return rule("PE6",
                "body '{}' is already in this tree, with frame '{}'; put frame '{}' under a frame of "
                "that body, or on another body",
                body, top, frame);
}
inline Error two_paths(std::string_view frame, std::string_view parent, std::string_view body, std::string_view top) {
    return rule("PE6",
                "moving frame '{}' under '{}' would give body '{}' two paths: that tree already has its frame '{}'",
                frame, parent, body, top);
}
inline Error joins_parts_by_joint(std::string_view frame) {
    return rule("PE4", "frame '{}' and its new parent are on one body, so the edge between them must be fixed", frame);
}
inline Error leaves_body(std::string_view frame, std::string_view body) {
    return rule("PE4", "frame '{}' is fixed on body '{}' and cannot leave it; reparent the topmost frame of the body",
                frame, body);
}
inline Error moves_on_body(std::string_view frame, std::string_view parent) {
    return rule("PE4", "frames '{}' and '{}' are on one body, so the pose between them cannot change", frame, parent);
}
inline Error has_parent(std::string_view frame, std::string_view parent) {
    return rule("PE3", "frame '{}' already has parent '{}' and can have only one; change it with reparent", frame,
                parent);
}
inline Error body_has_frames(std::string_view body, std::string_view frame) {
    return scene("body '{}' has frame '{}'; remove its frames, and it is gone with the last one", body, frame);
}
inline Error joint_inside_body(std::string_view frame) {
    return rule("PE4", "frame '{}' and its parent are on one body, so the edge between them must be fixed", frame);
}

// --- twists ----------------------------------------------------------------------------------------------------------

inline Error twist_on_own_body(std::string_view frame, std::string_view body) {
    return rule("TE1",
                "frame '{}' is on body '{}', relative to which it does not move: a twist joins a body "
                "and a frame of another",
                frame, body);
}
inline Error second_twist(std::string_view frame, std::string_view reference, std::string_view other) {
    return rule("TE3",
                "frame '{}' has a twist relative to body '{}' already, so it can have none relative "
                "to '{}'; remove that first",
                frame, reference, other);
}
inline Error second_twist_path(std::string_view frame, std::string_view reference, std::string_view joined) {
    return rule("TE4",
                "a twist of frame '{}' relative to body '{}' would be the second: frame '{}', joined "
                "to it by poses, has a path of twists from that body already",
                frame, reference, joined)
        .with({{"rule", "TE4"}, {"frame", frame}});
}
inline Error twist_back(std::string_view frame, std::string_view body, std::string_view reference) {
    return rule("TE5",
                "a twist of frame '{}' relative to body '{}' would close a cycle: a path of twists "
                "leads from its body '{}' to '{}' already",
                frame, reference, body, reference);
}
inline Error joined_twice(std::string_view frame, std::string_view body, std::string_view reference) {
    return rule("TE6",
                "a twist of frame '{}' relative to body '{}' would be the second between bodies '{}' and '{}': "
                "twists of frames that poses join to it lead from one to the other already; remove one of them with "
                "remove_twist",
                frame, reference, body, reference)
        .with({{"rule", "TE6"}, {"frame", frame}});
}
inline Error twists_contradict(std::string_view frame, std::string_view reference, const Vector6& vector,
                               std::string_view loop, const Vector6& sum) {
    const auto text = [](const Vector6& numbers) {
        std::string made;
        for (const double number : numbers) made += (made.empty() ? "[" : ", ") + number_text(number);
        return made + "]";
    };
    return rule("TE6",
                "the twist of frame '{}' relative to body '{}' is {}, but those of frames {}, which poses join to it, "
                "make {}; remove or correct one of them",
                frame, reference, text(vector), loop, text(sum))
        .with({{"rule", "TE6"}, {"frame", frame}});
}
inline Error no_longer_waits(std::string_view frame) {
    return scene("frame '{}' has a twist that waits as an observation; remove that first with remove_twist", frame);
}
// A twist edge that joint velocities, or stamped poses, do not contain.
inline Error twist_left_out(std::string_view target, std::string_view reference, std::string_view frame,
                            std::string_view body, bool by_stamps) {
    const std::string known = by_stamps ? "poses at two stamps" : "joint velocities";
    return scene(
               "frame '{}' also moves relative to '{}' by the twist edge of frame '{}' relative to body "
               "'{}', which {} do not contain; compute what twist edges alone give with relate() without "
               "qd, or remove that edge with remove_twist",
               target, reference, frame, body, known)
        .with({{"queried_frame", target}, {"relative_to", reference}, {"frame", frame}, {"body", body}});
}
inline Error motion_unknown(std::string_view frame, std::string_view reference) {
    return scene(
               "nothing says how frame '{}' moves relative to '{}': no twist edges, fixed edges or, with qd, joints "
               "lead "
               "from one to the other; add a twist edge with set_twist, or give qd",
               frame, reference)
        .with({{"frame", frame}, {"relative_to", reference}});
}
inline Error no_such_body(std::string_view name, const std::vector<std::string>& bodies) {
    const Error unknown = unknown_name("body", name, bodies);
    const char* hint = "{}; add it with add_body, or omit body= for a new body of the frame's own name";
    return Error(ErrorKind::unknown_name, hint, unknown.what()).with(unknown.facts());
}
inline Error is_reference(std::string_view body, std::string_view frame) {
    return scene("body '{}' cannot be removed while the twist of frame '{}' is relative to it", body, frame);
}
inline Error twist_not_finite(std::string_view frame) {
    return scene("the twist of frame '{}' has a number that is not finite", frame);
}
inline Error without_twist(std::string_view frame) {
    return scene("frame '{}' has no twist edge to set an error on; add one with set_twist", frame);
}
inline Error empty_body_name() { return scene("a body needs a name that is not empty"); }

// --- groups ----------------------------------------------------------------------------------------------------------

inline Error empty_group_name() { return scene("a group needs a name that is not empty"); }
inline Error group_holds_itself(std::string_view group) {
    return Error(ErrorKind::cycle, "group '{}' cannot contain itself", group);
}
inline Error group_holds_in_turn(std::string_view holder, std::string_view group) {
    return Error(ErrorKind::cycle, "group '{}' contains group '{}', which cannot contain it in turn", holder, group);
}

// --- joints ----------------------------------------------------------------------------------------------------------

inline Error mimics_itself(std::string_view joint) {
    return Error(ErrorKind::cycle, "joint '{}' cannot mimic itself", joint);
}
inline Error mimics_in_turn(std::string_view joint, std::string_view leader) {
    return Error(ErrorKind::cycle, "joint '{}' mimics '{}', which mimics it in turn", joint, leader);
}
inline Error is_followed(std::string_view leader, std::string_view follower) {
    return scene("joint '{}' cannot be removed while joint '{}' mimics it", leader, follower);
}

// --- configurations --------------------------------------------------------------------------------------------------

inline Error wrong_length(std::size_t expected, std::size_t received) {
    return Error(ErrorKind::configuration, "q must hold {} numbers, but has {}", expected, received)
        .with({{"expected", expected}, {"received", received}});
}

// --- arrays ----------------------------------------------------------------------------------------------------------

// what: "frame", "body", "attached shape" or "allowed pair"; keyword: the argument that makes more room
inline Error full(const std::string& what, std::size_t capacity, const std::string& keyword) {
    return Error(ErrorKind::capacity,
                 "no room for another {}: all {} are taken; construct SceneArrays with a larger {}", what, capacity,
                 keyword)
        .with({{"kind", keyword == "capacity" ? "frames" : keyword}, {"capacity", capacity}});
}
inline Error no_ids_left() {
    return Error(ErrorKind::capacity, "all ids of frames have been used; make the scene anew of its specifications")
        .with({{"kind", "ids"}, {"capacity", std::numeric_limits<std::uint32_t>::max()}});
}
inline Error too_long(std::string_view text, std::size_t capacity) {
    return Error(ErrorKind::capacity,
                 "'{}' has {} bytes, but only {} are kept for a name; construct SceneArrays with a larger name_bytes",
                 text, text.size(), capacity)
        .with({{"kind", "name_bytes"}, {"capacity", capacity}});
}

}  // namespace refusals

}  // namespace tmkit
