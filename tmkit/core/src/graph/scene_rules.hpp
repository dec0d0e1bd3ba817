// Rules of scenes, and the walks that check them, shared by the persistent scene, which refers to
// frames by their records, and its arrays, which refer to them by slots. Both then raise the same
// errors.
//
// A view is the interface of the rules to a scene. It has types Frame and Body, with `none` for no
// frame and `no_body`. Of a frame it has parent, body, id, name, joint_type, is_stated, pose,
// is_uncertain, has_stamps, leader (the frame whose joint its joint mimics), joint_numbers,
// joint_name, twist_reference (the reference body of its twist edge), twist_vector and waits (it is
// an observation). It also has find_top (the first root frame of a body for which a test holds),
// each_below (the subtree, parents first), each_joint (by insertion), each_twist (frame and
// reference, ascending by ids), relative (a pose along fixed edges), frame_with (an id) and
// body_name. Readers of arrays may get links of two states at once, so every walk ends after
// `most_steps`, and its result is discarded.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include "tmkit/leader_range.hpp"
#include "tmkit/scene_errors.hpp"
#include "tmkit/scene_relations.hpp"
#include "tmkit/twist_rules.hpp"

namespace tmkit {

inline bool is_observation(const std::vector<std::string>& classes) {
    return std::find(classes.begin(), classes.end(), "observation") != classes.end();
}

class GraphView {
public:
    using Frame = const FrameRecord*;
    using Body = BodyId;
    static constexpr Frame none = nullptr;
    static constexpr Body no_body = 0;
    static constexpr std::size_t most_steps() { return static_cast<std::size_t>(-1); }

    explicit GraphView(const SceneGraph& scene, const double* q = nullptr) : scene_(scene), q_(q) {}

    Frame frame_with(FrameId id) const { return id == no_frame ? none : &scene_.record(id); }
    Frame parent(Frame frame) const { return frame_with(frame->parent); }
    Body body(Frame frame) const { return frame->body; }
    FrameId id(Frame frame) const { return frame->id; }
    std::string_view name(Frame frame) const { return frame->name->text; }
    std::string_view body_name(Body body) const { return scene_.body(body).name->text; }
    JointType joint_type(Frame frame) const { return frame->joint_type; }
    bool is_stated(Frame frame) const { return frame->is_stated; }
    const Pose& pose(Frame frame) const { return frame->pose; }
    bool is_uncertain(Frame frame) const { return static_cast<bool>(frame->noise); }
    bool has_stamps(Frame frame) const { return frame->details && frame->details->stamps; }
    Frame leader(Frame frame) const {
        const Joint* joint = frame->joint.get();
        return joint && !joint->mimic.empty() ? &scene_.record(scene_.joint_frame(joint->mimic))
                                              : none;
    }
    const JointNumbers& joint_numbers(Frame frame) const { return frame->joint->numbers(); }
    std::vector<std::string> joint_names() const { return scene_.joint_names(); }
    std::string_view joint_name(Frame frame) const { return frame->joint->name; }
    void each_joint(auto&& visit) const {
        scene_.for_each_frame([&](const FrameRecord& frame) {
            if (frame.joint) visit(&frame);
        });
    }
    Body twist_reference(Frame frame) const {
        return frame->details && frame->details->twist ? scene_.twist_reference(frame->id)
                                                       : no_body;
    }
    const Vector6& twist_vector(Frame frame) const { return frame->details->twist->vector; }
    bool waits(Frame frame) const {
        return frame->details && is_observation(frame->details->classes);
    }
    Frame find_top(Body body, auto&& test) const {
        for (const FrameId top : scene_.body(body).tops)
            if (const Frame frame = frame_with(top); test(frame)) return frame;
        return none;
    }
    void each_below(Frame top, auto&& visit) const {
        for (const FrameId id : scene_.subtree(top->id)) visit(frame_with(id));
    }
    void each_body(auto&& visit) const { scene_.for_each_body(visit); }
    std::size_t twist_count() const { return scene_.twist_count(); }
    void each_twist(auto&& visit) const {
        scene_.for_each_twist(
            [&](FrameId id, Body reference) { visit(frame_with(id), reference); });
    }
    Pose relative(Frame target, Frame reference) const {
        return scene_.pose(*target, *reference, q_);
    }

    const SceneGraph& scene() const { return scene_; }
    const double* q() const { return q_; }

private:
    const SceneGraph& scene_;
    const double* q_;
};

namespace rules {

// --- walks

// Climb from a frame while `goes_on` holds: the first frame for which it does not, none if it holds
// for all.
auto climb(const auto& view, auto node, auto&& goes_on) {
    for (std::size_t steps = 0; node != view.none && goes_on(node) && steps < view.most_steps();
         ++steps)
        node = view.parent(node);
    return node;
}

auto root_of(const auto& view, auto frame) {
    climb(view, frame, [&](auto node) {
        frame = node;
        return true;
    });
    return frame;
}

// True also for the frame itself.
bool is_below(const auto& view, auto top, auto frame) {
    return top != view.none && climb(view, frame, [&](auto node) { return node != top; }) == top;
}

// The root frame of a body in the tree of a root.
auto top_in_tree(const auto& view, auto body, auto root) {
    return view.find_top(body, [&](auto top) { return root_of(view, top) == root; });
}

// The rule by which a joint follows its leader, with that leader: the rule's entry is that of the
// leader.
auto leader_rule(const auto& view, auto frame) {
    JointRule rule;
    for (auto next = view.leader(frame); next != view.none; next = view.leader(frame)) {
        const JointNumbers& numbers = view.joint_numbers(frame);
        rule.offset += rule.multiplier * numbers.mimic_offset;
        rule.multiplier *= numbers.mimic_multiplier;
        frame = next;
    }
    return std::pair(rule, frame);
}

// The number of rules from a joint up to its final leader.
std::size_t mimics_above(const auto& view, auto frame) {
    std::size_t count = 0;
    for (auto next = view.leader(frame); next != view.none; next = view.leader(next)) ++count;
    return count;
}

// --- limits of joints that follow others

// A scene with another joint on a frame, or on a new one (none).
template <class View> struct RejointedView : View {
    using Frame = View::Frame;
    RejointedView(const View& before, Frame changed, FrameId id, Frame leader, const Joint& joint,
                  std::string_view name)
        : View(before), changed_(changed), leader_(leader), id_(id), joint_(joint), name_(name) {}
    Frame changed() const { return changed_; }
    Frame leader(Frame frame) const { return frame == changed_ ? leader_ : View::leader(frame); }
    FrameId id(Frame frame) const { return frame == changed_ ? id_ : View::id(frame); }
    JointType joint_type(Frame frame) const {
        return frame == changed_ ? joint_.type : View::joint_type(frame);
    }
    const JointNumbers& joint_numbers(Frame frame) const {
        return frame == changed_ ? joint_.numbers() : View::joint_numbers(frame);
    }
    std::string joint_name(FrameId id) const {
        return id == id_ ? std::string(name_) : std::string(View::joint_name(this->frame_with(id)));
    }

private:
    Frame changed_, leader_;
    FrameId id_;
    const Joint& joint_;
    std::string_view name_;
};

LeaderRange own_range(const auto& view, auto frame) {
    return LeaderRange::of(view.id(frame), view.joint_type(frame), view.joint_numbers(frame));
}

void require_values(const auto& view, auto leader, const LeaderRange& range) {
    if (range.mimics > most_mimics)
        throw errors::scene(
            "joint '{}' is followed by a row of {} joints that mimic one another; expected at most "
            "{}",
            view.joint_name(view.id(leader)), range.mimics, most_mimics);
    if (!range.is_empty()) return;
    const std::string name = view.joint_name(view.id(leader)), low = view.joint_name(range.lowest);
    const std::string high = view.joint_name(range.highest);
    if (std::isinf(range.lower) || std::isinf(range.upper))
        throw errors::scene(
            "no value of joint '{}' puts joint '{}', which follows it, within its limits", name,
            range.lower == Joint::unlimited ? low : high);
    throw errors::scene(
        "no value of joint '{}' keeps all limits of the joints that follow it: joint '{}' needs at "
        "least {}, joint "
        "'{}' at most {}",
        name, low, range.lower, high, range.upper);
}

// The changed joint, its leader and its followers must have a common range.
template <class View> void check_leader_range(const RejointedView<View>& view) {
    const auto leader = leader_rule(view, view.changed()).second;
    LeaderRange range = own_range(view, leader);
    const auto narrow = [&](auto frame) {
        const auto [rule, end] = leader_rule(view, frame);
        if (frame != leader && end == leader)
            range.narrow(own_range(view, frame), rule.multiplier, rule.offset,
                         mimics_above(view, frame));
    };
    view.each_joint([&](auto frame) {
        if (frame != view.changed()) narrow(frame);
    });
    narrow(view.changed());
    require_values(view, leader, range);
}

// --- joints and bodies

// Check that the joint of a frame (none: a new one) may mimic that of `leader` (none: missing).
void check_leader(const auto& view, std::string_view name, std::string_view mimicked, auto frame,
                  auto leader) {
    if (mimicked == name)
        throw Error(ErrorKind::cycle, "joint '{}' cannot mimic itself", name)
            .with({{"joint", name}});
    if (leader == view.none || leader == frame)
        throw unknown_name("joint", mimicked, view.joint_names());
    for (auto node = view.leader(leader); node != view.none; node = view.leader(node))
        if (node == frame)
            throw Error(ErrorKind::cycle, "joint '{}' mimics '{}', which mimics it in turn", name,
                        mimicked)
                .with({{"joint", name}});
}

// Check that a new frame may join an existing body; `is_body_named`: the caller named the body.
void check_entry(const auto& view, std::string_view name, auto body, bool is_body_named,
                 auto parent, JointType type) {
    if (!is_body_named) throw duplicate("body", name);
    if (parent == view.none) return;
    if (body == view.body(parent)) {
        if (type != JointType::fixed)
            throw errors::rule("PE4",
                               "frame '{}' and its parent '{}' are on one body '{}', so the edge "
                               "between them must be fixed",
                               name, view.name(parent), view.body_name(body));
        return;
    }
    if (const auto top = top_in_tree(view, body, root_of(view, parent)); top != view.none)
        throw errors::rule(
            "PE6",
            "body '{}' is already in this tree, with frame '{}'; put frame '{}' under a frame of "
            "that body, or on another body",
            view.body_name(body), view.name(top), name);
}

// Check that a body may be removed.
void check_bare(const auto& view, auto body) {
    auto first = view.none;  // of several frames, the error names the first
    view.find_top(body, [&](auto top) {
        if (first == view.none || view.id(top) < view.id(first)) first = top;
        return false;
    });
    if (first != view.none)
        throw errors::scene(
            "body '{}' has frame '{}'; remove its frames; it is removed with the last one",
            view.body_name(body), view.name(first));
    view.each_twist([&](auto frame, auto reference) {
        if (reference == body) throw errors::is_reference(view.body_name(body), view.name(frame));
    });
}

// An edge that may have stamped poses lies between two bodies.
void check_edge_for_stamps(const auto& view, auto frame) {
    const auto parent = view.parent(frame);
    if (parent == view.none) throw errors::root_without(view.name(frame), "pose");
    if (view.body(parent) == view.body(frame))
        throw errors::moves_on_body(view.name(frame), view.name(parent));
}

// --- twists

Error twist_error(const auto& view, const TwistRules::Violation& violation) {
    using Body = std::remove_cvref_t<decltype(view)>::Body;
    const TwistRules::Link& link = violation.link;
    const auto frame = view.name(view.frame_with(link.frame));
    const auto body_named = [&](TwistRules::Number body) {
        return view.body_name(static_cast<Body>(body));
    };
    if (violation.rule == TwistRules::Rule::TE6)
        return errors::joined_twice(frame, body_named(link.body), body_named(link.reference));
    if (violation.rule == TwistRules::Rule::TE4)
        return errors::rule("TE4",
                            "a twist of frame '{}' relative to body '{}' would be the second: "
                            "frame '{}', joined "
                            "to it by poses, has a path of twists from that body already",
                            frame, body_named(violation.above),
                            view.name(view.frame_with(violation.other)))
            .with({{"rule", "TE4"}, {"frame", frame}});
    return errors::rule(
        "TE5",
        "a twist of frame '{}' relative to body '{}' would close a cycle: a path of twists "
        "leads from its body '{}' to '{}' already",
        frame, body_named(link.reference), body_named(link.body), body_named(link.reference));
}

TwistRules::Link link_of(const auto& view, auto frame, auto root, auto reference) {
    return {view.id(frame), view.id(root), static_cast<TwistRules::Number>(view.body(frame)),
            static_cast<TwistRules::Number>(reference), view.waits(frame)};
}

// Return whether a rejected twist may become an observation: its frame has another, or twists of
// other trees determine it, in numbers that no poses can compare yet.
inline bool may_wait(const Error& twist_error) {
    const auto is = [&](const char* rule) {
        return twist_error.facts()[0].value == decltype(Error::Fact::value)(rule);
    };
    return !twist_error.facts().empty() && (is("TE3") || is("TE4") || is("TE5"));
}

// Check the twist of a frame relative to a body; `set` is scratch. Returns whether it is a new
// edge, and not a new value of an existing one.
bool check_twist(const auto& view, TwistRules& set, auto frame, auto reference,
                 const Vector6& vector) {
    const auto is_finite = [](double number) { return std::isfinite(number); };
    if (!std::all_of(vector.begin(), vector.end(), is_finite))
        throw errors::scene("the twist of frame '{}' has a number that is not finite",
                            view.name(frame));
    if (reference == view.body(frame))
        throw errors::rule(
            "TE1",
            "frame '{}' is on body '{}', relative to which it does not move: a twist joins a body "
            "and a frame of another",
            view.name(frame), view.body_name(reference));
    if (const auto present = view.twist_reference(frame); present != view.no_body) {
        if (present == reference) return false;
        throw errors::rule(
            "TE3",
            "frame '{}' has a twist relative to body '{}' already, so it can have none relative "
            "to '{}'; remove that first",
            view.name(frame), view.body_name(present), view.body_name(reference));
    }
    if (view.twist_count() == 0) return true;
    set.clear();
    view.each_twist([&](auto other_frame, auto from) {
        set.add(link_of(view, other_frame, root_of(view, other_frame), from));
    });
    set.add(link_of(view, frame, root_of(view, frame), reference));
    if (const auto violation = set.find_violation(true)) throw twist_error(view, *violation);
    return true;
}

// Visit the edges of poses between two frames of one tree.
void each_between(const auto& view, auto a, auto b, auto&& visit) {
    std::size_t above_a = 0, above_b = 0;
    climb(view, a, [&](auto) { return ++above_a > 0; });
    climb(view, b, [&](auto) { return ++above_b > 0; });
    while (a != b && above_a + above_b > 0) {
        auto& lower = above_a >= above_b ? a : b;
        --(above_a >= above_b ? above_a : above_b);
        visit(lower);
        lower = view.parent(lower);
    }
}

// Return whether steps lead from one body to another; `reached` then ends with that.
bool reaches(auto& paths, auto from, auto to) {
    auto& reached = paths.reached;
    reached.assign(1, {from, 0, 0, 0.0});
    for (std::size_t next = 0; next < reached.size(); ++next)
        for (std::size_t k = 0; k < paths.steps.size(); ++k) {
            const auto& step = paths.steps[k];
            const bool up = step.body == reached[next].body,
                       down = step.reference == reached[next].body;
            const auto other_body = up ? step.reference : step.body;
            const auto is_it = [&](const auto& entry) { return entry.body == other_body; };
            if ((!up && !down) || std::any_of(reached.begin(), reached.end(), is_it)) continue;
            reached.push_back({other_body, next, k, up ? 1.0 : -1.0});
            if (other_body == to) return true;
        }
    return false;
}

inline bool is_same(const Vector6& a, const Vector6& b) {
    for (std::size_t k = 0; k < 6; ++k)
        if (!(std::abs(a[k] - b[k]) <= 1e-9 * (1.0 + std::abs(b[k])))) return false;
    return true;
}

// Return whether other twist edges of its tree, without those selected by `goes`, determine the
// twist of a frame relative to a body. They must then agree, to rounding. False also if a joint is
// between, since its value is unknown.
bool is_said_too(const auto& view, auto& paths, auto frame, auto reference, const Vector6& vector,
                 auto&& goes) {
    paths.steps.clear();
    view.each_twist([&](auto other_frame, auto from) {
        if ((other_frame != frame || from != reference) && !goes(other_frame) &&
            root_of(view, other_frame) == root_of(view, frame))
            paths.steps.push_back({other_frame, view.body(other_frame), from, true});
    });
    if (!reaches(paths, view.body(frame), reference)) return false;
    Vector6 sum{};
    std::string loop;
    bool is_fixed = true;
    for (auto node = paths.reached.back(); node.sign != 0.0; node = paths.reached[node.before]) {
        const auto other_frame = paths.steps[node.step].frame;
        each_between(view, other_frame, frame,
                     [&](auto edge) { is_fixed &= !is_actuated(view.joint_type(edge)); });
        if (!is_fixed) return false;
        const Vector6 part =
            carry_up(view.twist_vector(other_frame), view.relative(other_frame, frame));
        for (std::size_t k = 0; k < 6; ++k) sum[k] += node.sign * part[k];
    }
    if (is_same(sum, vector)) return true;
    for (auto node = paths.reached.back(); node.sign != 0.0; node = paths.reached[node.before])
        loop += (loop.empty() ? "'" : ", '") +
                std::string(view.name(paths.steps[node.step].frame)) + "'";
    throw errors::twists_contradict(view.name(frame), view.body_name(reference), vector, loop, sum);
}

// A scene after a frame, with its subtree, is attached to a frame of another tree.
template <class View> struct JoinedView : View {
    using Frame = View::Frame;
    JoinedView(const View& before, Frame moved, Frame target, const Pose& pose, JointType type)
        : View(before), moved_(moved), target_(target), pose_(pose), type_(type) {}
    Frame parent(Frame frame) const { return frame == moved_ ? target_ : View::parent(frame); }
    JointType joint_type(Frame frame) const {
        return frame == moved_ ? type_ : View::joint_type(frame);
    }
    Pose relative(Frame target, Frame reference) const {
        const View& before = *this;
        const bool is_moved = is_below(before, moved_, target);
        if (is_moved == is_below(before, moved_, reference))
            return View::relative(target, reference);
        if (!is_moved) return relative(reference, target).inverse();
        return View::relative(target_, reference) * pose_ * View::relative(target, moved_);
    }

private:
    Frame moved_, target_;
    Pose pose_;
    JointType type_;
};

// Check that a frame, with its subtree, may be attached to a frame of another tree. Redundant twist
// edges are removed: `drop` is called for each, and `goes` selects them and other removed ones.
// `set` and `ways` are scratch.
template <class View>
void join_twists(const View& before, TwistRules& set, auto& paths, typename View::Frame moving,
                 typename View::Frame parent, const Pose& pose, JointType type, auto&& goes,
                 auto&& drop) {
    if (before.twist_count() < 2 || root_of(before, moving) == root_of(before, parent)) return;
    const JoinedView<View> view(before, moving, parent, pose, type);
    const auto add_link = [&](auto frame, auto from) {
        if (!goes(frame)) set.add(link_of(view, frame, root_of(view, frame), from));
    };
    while (true) {
        set.clear();
        view.each_twist(add_link);
        const auto violation = set.find_violation(false);
        if (!violation) return;
        const auto frame = view.frame_with(violation->link.frame);
        if (violation->rule != TwistRules::Rule::TE6 ||
            !is_said_too(view, paths, frame, view.twist_reference(frame), view.twist_vector(frame),
                         goes))
            throw twist_error(view, *violation);
        drop(frame);
    }
}

// Check other classes of a frame: an observation is a twist that TE4 or TE5 may forbid.
void check_classes(const auto& view, auto frame, const std::vector<std::string>& classes) {
    if (view.twist_reference(frame) != view.no_body && view.waits(frame) &&
        !is_observation(classes))
        throw errors::scene(
            "frame '{}' has a twist that waits as an observation; remove that first with "
            "remove_twist",
            view.name(frame));
}

// Check the removal of frames, which must not remove the reference body of a remaining twist.
void check_twists_stay(const auto& view, auto&& goes) {
    const auto stays = [&](auto top) { return !goes(top); };
    view.each_twist([&](auto frame, auto reference) {
        if (goes(frame) || view.find_top(reference, stays) != view.none ||
            view.find_top(reference, goes) == view.none)
            return;
        throw errors::is_reference(view.body_name(reference), view.name(frame));
    });
}

// Visit the twist edges whose path of poses, from the frame to its reference body, covers the edge
// above a frame, which is the root frame of its body in its tree. Between trees, the path is that
// by the roots.
void each_twist_across(const auto& view, auto edge, auto&& visit) {
    if (view.twist_count() == 0) return;
    const auto root = root_of(view, edge);
    const auto below = [&](auto node) { return is_below(view, edge, node); };
    view.each_twist([&](auto frame, auto reference) {
        const bool is_inside = below(frame);
        const auto tree = root_of(view, frame);
        // No pose between them changes.
        if (tree != root && top_in_tree(view, reference, tree) != view.none) return;
        if (is_inside != (view.find_top(reference, below) != view.none)) visit(frame, reference);
    });
}

// Visit the paths between two frames of a tree that twist edges cover, with the frame of one. Twist
// edges that lead out of the tree may lead back by any other of these, and by bodies with frames in
// other trees.
void each_told_way(const auto& view, auto root, auto&& visit) {
    auto exit_frame = view.none, last = view.none;
    const auto leave = [&](auto frame, auto node) {
        if (exit_frame == view.none) exit_frame = node;
        visit(frame, node, exit_frame);
    };
    view.each_twist([&](auto frame, auto reference) {
        const auto to = top_in_tree(view, reference, root);
        const bool is_inside = root_of(view, frame) == root;
        if (is_inside && to != view.none) return visit(frame, frame, to);
        last = frame;
        if (is_inside || to != view.none) leave(frame, is_inside ? frame : to);
    });
    if (last == view.none) return;
    view.each_body([&](auto body) {
        std::size_t tops = 0;
        if (view.find_top(body, [&](auto) { return ++tops > 1; }) == view.none) return;
        if (const auto top = top_in_tree(view, body, root); top != view.none) leave(last, top);
    });
}

// An edge of poses without a stated motion.
Error unknown_motion(const auto& view, auto edge) {
    return errors::unknown_motion(view.name(edge), view.name(view.parent(edge)));
}

// See SceneGraph::require_no_twist_on_path.
void check_no_twist_on_path(const auto& view, auto target, auto reference, bool unstamped) {
    auto result = view.none;
    if (view.twist_count() == 0) return;
    each_told_way(view, root_of(view, target), [&](auto frame, auto from, auto to) {
        each_between(view, from, to, [&](auto node) {
            const auto above = view.parent(node);
            const bool moves = above != view.none && view.body(above) != view.body(node);
            if (result == view.none && moves && !(unstamped && view.has_stamps(node)) &&
                is_below(view, node, target) != is_below(view, node, reference))
                result = frame;
        });
    });
    if (result != view.none)
        throw errors::twist_left_out(view.name(target), view.name(reference), view.name(result),
                                     view.body_name(view.twist_reference(result)), unstamped);
}

// Every edge of poses between two frames must have stamped poses, or a stated motion.
void check_stamped_or_stated(const auto& view, auto target, auto reference) {
    each_between(view, target, reference, [&](auto node) {
        if (!view.is_stated(node) && !view.has_stamps(node)) throw unknown_motion(view, node);
    });
}

// --- moves

// The root above a frame; throws if the path to it passes the moving frame.
auto root_beside(const auto& view, auto moving, auto parent) {
    auto root = parent;
    climb(view, parent, [&](auto node) {
        if (node == moving) throw errors::cycle(view.name(moving), view.name(parent));
        root = node;
        return true;
    });
    return root;
}

// Check that no body of the moving subtree has frames in the tree of a root already.
void check_bodies_on_move(const auto& view, auto moving, auto parent, auto root) {
    if (root_of(view, moving) == root) return;  // the bodies of one tree remain joined
    const bool joins = view.body(parent) == view.body(moving);
    view.each_below(moving, [&](auto node) {
        const auto body = view.body(node);
        if (joins && body == view.body(moving)) return;  // joined by the new edge
        if (const auto top = top_in_tree(view, body, root); top != view.none)
            throw errors::rule("PE6",
                               "moving frame '{}' under '{}' would give body '{}' two paths: that "
                               "tree already has its frame '{}'",
                               view.name(moving), view.name(parent), view.body_name(body),
                               view.name(top));
    });
}

// Return whether the moving frame is attached to its own body; then it must remain there, at its
// pose. The pose of an edge with an error is constant but not known exactly, and another estimate
// may replace it.
bool stays_on_body(const auto& view, auto moving, auto parent, const Pose& pose) {
    if (view.body(view.parent(moving)) != view.body(moving)) return false;
    if (view.body(parent) != view.body(moving))
        throw errors::rule("PE4",
                           "frame '{}' is fixed on body '{}' and cannot leave it; reparent the "
                           "topmost frame of the body",
                           view.name(moving), view.body_name(view.body(moving)));
    if (view.is_uncertain(moving)) return true;
    // Along fixed edges of the body only.
    const auto [metres, radians] = view.relative(moving, parent).distance(pose);
    if (metres > errors::same_pose_tolerance || radians > errors::same_pose_tolerance)
        throw errors::moves_on_body(view.name(moving), view.name(parent));
    return true;
}

// Return whether a frame is attached to its own body in another tree, as the root frame of its body
// in its own tree; a fixed edge may do that.
bool joins_parts(const auto& view, auto moving, auto parent, JointType type) {
    if (view.body(parent) != view.body(moving)) return false;
    if (type != JointType::fixed)
        throw errors::rule(
            "PE4",
            "frame '{}' and its new parent are on one body, so the edge between them must be fixed",
            view.name(moving));
    return true;
}

struct Move {
    // `cuts`: removes twist edges over the old edge
    bool nothing = false, joins = false, cuts = false;
};

Move check_move(const auto& view, auto moving, auto parent, const Pose& pose) {
    const auto before = view.parent(moving);
    if (before == view.none) throw errors::root_without(view.name(moving), "parent to change");
    if (before == parent && view.pose(moving) == pose) return {.nothing = true};
    const auto root = root_beside(view, moving, parent);
    require_in_range(pose, "the pose of a frame");
    if (before != parent) check_bodies_on_move(view, moving, parent, root);
    const bool stays = stays_on_body(view, moving, parent, pose);
    if (stays && before == parent && !view.is_uncertain(moving)) return {.nothing = true};
    return {false, !stays && joins_parts(view, moving, parent, view.joint_type(moving)),
            before != parent && !stays};
}

// Check that a root may be attached to a frame of another tree, by a joint. Returns whether that
// joins two parts of one body.
bool check_attachment(const auto& view, auto root, auto parent, JointType type) {
    if (const auto above = view.parent(root); above != view.none)
        throw errors::rule(
            "PE3",
            "frame '{}' already has parent '{}' and can have only one; change it with reparent",
            view.name(root), view.name(above));
    check_bodies_on_move(view, root, parent, root_beside(view, root, parent));
    return joins_parts(view, root, parent, type);
}

}  // namespace rules

}  // namespace tmkit
