// What a scene refuses, in words: one function for each rule that an edit or a query may break.
//
// Most rules are checked in two places, by the persistent scene and by its arrays, which know them by different means;
// that both refuse with the same class, message and facts is seen to by this page.
#pragma once

#include <limits>
#include <string>
#include <string_view>

#include "tmkit/error.hpp"

namespace tmkit {

inline std::string quoted(std::string_view name) {
    std::string text(1, '\'');
    text.append(name);
    text.push_back('\'');
    return text;
}

inline Error duplicate(const std::string& kind, std::string_view name) {
    return Error(ErrorKind::duplicate_name, "a " + kind + " named " + quoted(name) + " is already in the scene",
                 {{"kind", kind}, {"name", std::string(name)}});
}

namespace refusals {

// Poses this near are one pose said twice: rounding of a product, not a move.
inline constexpr double same_pose_tolerance = 1e-9;

inline Error scene(const std::string& message) { return Error(ErrorKind::scene, message); }
// A broken rule of edges between frames and bodies, by its name in docs/concepts/relations.md: PE1 to PE6, TE1 to TE6.
inline Error rule(const char* name, const std::string& message) {
    return Error(ErrorKind::scene, message, {{"rule", std::string(name)}});
}

// --- names -----------------------------------------------------------------------------------------------------------

inline Error empty_frame_name() { return scene("a frame needs a name that is not empty"); }

// --- trees -----------------------------------------------------------------------------------------------------------

inline Error on_no_body(std::string_view frame) {
    return rule("N3", "frame " + quoted(frame) + " has neither a parent nor a body; give parent= or body=");
}

inline Error without_parent(std::string_view frame) { return scene("frame " + quoted(frame) + " needs a parent"); }

inline Error root_with_edge(std::string_view frame) {
    return scene("frame " + quoted(frame) + " is a root, which has no joint and no pose");
}

// what: "parent to change", "pose" or "joint"
inline Error root_without(std::string_view frame, const std::string& what) {
    return scene("frame " + quoted(frame) + " is a root, which has no " + what);
}

inline Error cycle(std::string_view frame, std::string_view parent) {
    return Error(
        ErrorKind::cycle,
        "frame " + quoted(frame) + " cannot have parent " + quoted(parent) + ", which is itself or its descendant",
        {{"frame", std::string(frame)}, {"parent", std::string(parent)}, {"rule", std::string("PE5")}});
}

inline Error has_children(std::string_view frame, std::string_view first_child) {
    return scene("frame " + quoted(frame) + " has children, the first is " + quoted(first_child) +
                 "; remove them first, or the whole subtree with subtree=True");
}

inline Error disconnected(std::string_view target, std::string_view reference, std::string_view target_root,
                          std::string_view reference_root) {
    return Error(ErrorKind::disconnected,
                 "frames " + quoted(target) + " and " + quoted(reference) + " are in different trees (" +
                     quoted(target_root) + " and " + quoted(reference_root) + "), so no pose between them is known",
                 {{"frame", std::string(target)}, {"relative_to", std::string(reference)}});
}

inline Error collides_with_itself(std::string_view frame) {
    return scene("frame " + quoted(frame) + " cannot collide with itself; name two frames");
}

// --- bodies ----------------------------------------------------------------------------------------------------------

inline Error new_edge_inside_body(std::string_view frame, std::string_view parent, std::string_view body) {
    return rule("PE4", "frame " + quoted(frame) + " and its parent " + quoted(parent) + " are on one body " +
                           quoted(body) + ", so the edge between them must be fixed");
}

inline Error body_in_this_tree(std::string_view frame, std::string_view body, std::string_view top) {
    return rule("PE6", "body " + quoted(body) + " is already in this tree, with frame " + quoted(top) + "; put frame " +
                           quoted(frame) + " under a frame of that body, or on another body");
}

inline Error two_paths(std::string_view frame, std::string_view parent, std::string_view body, std::string_view top) {
    return rule("PE6", "moving frame " + quoted(frame) + " under " + quoted(parent) + " would give body " +
                           quoted(body) + " two paths: that tree already has its frame " + quoted(top));
}

inline Error joins_parts_by_joint(std::string_view frame) {
    return rule("PE4", "frame " + quoted(frame) +
                           " and its new parent are on one body, so the edge between them must be fixed");
}

inline Error leaves_body(std::string_view frame, std::string_view body) {
    return rule("PE4", "frame " + quoted(frame) + " is fixed on body " + quoted(body) +
                           " and cannot leave it; reparent the topmost frame of the body");
}

inline Error moves_on_body(std::string_view frame, std::string_view parent) {
    return rule("PE4", "frames " + quoted(frame) + " and " + quoted(parent) +
                           " are on one body, so the pose between them cannot change");
}

inline Error has_parent(std::string_view frame, std::string_view parent) {
    return rule("PE3", "frame " + quoted(frame) + " already has parent " + quoted(parent) +
                           " and can have only one; change it with reparent");
}

inline Error body_has_frames(std::string_view body, std::string_view frame) {
    return scene("body " + quoted(body) + " has frame " + quoted(frame) +
                 "; remove its frames, and it is gone with the last one");
}

inline Error joint_inside_body(std::string_view frame) {
    return rule("PE4",
                "frame " + quoted(frame) + " and its parent are on one body, so the edge between them must be fixed");
}

// --- twists ----------------------------------------------------------------------------------------------------------

inline Error twist_on_own_body(std::string_view frame, std::string_view body) {
    return rule("TE1", "frame " + quoted(frame) + " is on body " + quoted(body) +
                           ", relative to which it does not move: a twist joins a body and a frame of another");
}

inline Error second_twist(std::string_view frame, std::string_view reference, std::string_view other) {
    return rule("TE3", "frame " + quoted(frame) + " has a twist relative to body " + quoted(reference) +
                           " already, so it can have none relative to " + quoted(other) + "; remove that first");
}

inline Error second_twist_path(std::string_view frame, std::string_view reference, std::string_view joined) {
    return rule("TE4", "a twist of frame " + quoted(frame) + " relative to body " + quoted(reference) +
                           " would be the second: frame " + quoted(joined) +
                           ", joined to it by poses, has a path of twists from that body already");
}

inline Error twist_back(std::string_view frame, std::string_view body, std::string_view reference) {
    return rule("TE5", "a twist of frame " + quoted(frame) + " relative to body " + quoted(reference) +
                           " would close a cycle: a path of twists leads from its body " + quoted(body) + " to " +
                           quoted(reference) + " already");
}

inline Error joined_twice(std::string_view frame, std::string_view body, std::string_view reference) {
    return rule("TE6", "a twist of frame " + quoted(frame) + " relative to body " + quoted(reference) +
                           " would be the second between bodies " + quoted(body) + " and " + quoted(reference) +
                           ": twists of frames that poses join to it lead from one to the other already; remove one of "
                           "them with remove_twist");
}

// A twist edge that joint velocities, or stamped poses, do not contain.
inline Error twist_left_out(std::string_view target, std::string_view reference, std::string_view frame,
                            std::string_view body, bool by_stamps) {
    const std::string known = by_stamps ? "poses at two stamps" : "joint velocities";
    return Error(ErrorKind::scene,
                 "frame " + quoted(target) + " also moves relative to " + quoted(reference) +
                     " by the twist edge of frame " + quoted(frame) + " relative to body " + quoted(body) + ", which " +
                     known +
                     " do not contain; compute what twist edges alone give with relate() without qd, or "
                     "remove that edge with remove_twist",
                 {{"queried_frame", std::string(target)},
                  {"relative_to", std::string(reference)},
                  {"frame", std::string(frame)},
                  {"body", std::string(body)}});
}

inline Error no_such_body(std::string_view name, const std::vector<std::string>& bodies) {
    const Error unknown = unknown_name("body", name, bodies);
    return Error(
        ErrorKind::unknown_name,
        std::string(unknown.what()) + "; add it with add_body, or omit body= for a new body of the frame's own name",
        unknown.facts());
}

inline Error is_reference(std::string_view body, std::string_view frame) {
    return scene("body " + quoted(body) + " cannot be removed while the twist of frame " + quoted(frame) +
                 " is relative to it");
}

inline Error twist_not_finite(std::string_view frame) {
    return scene("the twist of frame " + quoted(frame) + " has a number that is not finite");
}

inline Error without_twist(std::string_view frame) {
    return scene("frame " + quoted(frame) + " has no twist edge to set an error on; add one with set_twist");
}

inline Error empty_body_name() { return scene("a body needs a name that is not empty"); }

// --- groups ----------------------------------------------------------------------------------------------------------

inline Error empty_group_name() { return scene("a group needs a name that is not empty"); }

inline Error group_holds_itself(std::string_view group) {
    return Error(ErrorKind::cycle, "group " + quoted(group) + " cannot contain itself");
}

inline Error group_holds_in_turn(std::string_view holder, std::string_view group) {
    return Error(ErrorKind::cycle,
                 "group " + quoted(holder) + " contains group " + quoted(group) + ", which cannot contain it in turn");
}

// --- joints ----------------------------------------------------------------------------------------------------------

inline Error mimics_itself(std::string_view joint) {
    return Error(ErrorKind::cycle, "joint " + quoted(joint) + " cannot mimic itself");
}

inline Error mimics_in_turn(std::string_view joint, std::string_view leader) {
    return Error(ErrorKind::cycle,
                 "joint " + quoted(joint) + " mimics " + quoted(leader) + ", which mimics it in turn");
}

inline Error is_followed(std::string_view leader, std::string_view follower) {
    return scene("joint " + quoted(leader) + " cannot be removed while joint " + quoted(follower) + " mimics it");
}

// --- configurations --------------------------------------------------------------------------------------------------

inline Error wrong_length(std::size_t expected, std::size_t received) {
    return Error(
        ErrorKind::configuration,
        "q must hold " + std::to_string(expected) + " numbers, but has " + std::to_string(received),
        {{"expected", static_cast<std::int64_t>(expected)}, {"received", static_cast<std::int64_t>(received)}});
}

// --- arrays ----------------------------------------------------------------------------------------------------------

// what: "frame", "body", "attached shape" or "allowed pair"; keyword: the argument that makes more room
inline Error full(const std::string& what, std::size_t capacity, const std::string& keyword) {
    return Error(
        ErrorKind::capacity,
        "no room for another " + what + ": all " + std::to_string(capacity) +
            " are taken; construct SceneArrays with a larger " + keyword,
        {{"kind", keyword == "capacity" ? "frames" : keyword}, {"capacity", static_cast<std::int64_t>(capacity)}});
}

inline Error no_ids_left() {
    return Error(ErrorKind::capacity, "all ids of frames have been used; make the scene anew of its specifications",
                 {{"kind", "ids"}, {"capacity", static_cast<std::int64_t>(std::numeric_limits<std::uint32_t>::max())}});
}

inline Error too_long(std::string_view text, std::size_t capacity) {
    return Error(ErrorKind::capacity,
                 quoted(text) + " has " + std::to_string(text.size()) + " bytes, but only " + std::to_string(capacity) +
                     " are kept for a name; construct SceneArrays with a larger name_bytes",
                 {{"kind", "name_bytes"}, {"capacity", static_cast<std::int64_t>(capacity)}});
}

}  // namespace refusals

}  // namespace tmkit
