// Twist edges and bodies without frames: how bodies move relative to each other, and the rules that keep it
// unambiguous.
//
// A twist edge leads from a reference body to a frame of another body and holds the twist of that frame relative to it,
// at the frame's origin and in its axes (g|C, D, [g]). Edges make paths: from a body to a frame, on to that frame's
// body, and from there to the next frame. Rules, after De Laet, Bruyninckx and De Schutter's scene graph of poses and
// twists (2013), made decidable (docs/concepts/relations.md tells where they differ from the letter):
//
//   TE1  an edge joins a body and a frame of another body;
//   TE2  its value is that of the frame's origin, in the frame's axes; what is given otherwise is converted above the
//   core; TE3  a frame has one reference body; the same one again changes the value; TE4 to TE6  the set of edges is
//   unambiguous: twist_rules.hpp.
//
// An edge describes a motion along the path of poses between its frame and its reference body. Reparenting replaces an
// edge of poses, and with it what was known of motions across: twist edges whose path leads over it are removed, like
// stamped poses, and what was grasped moves with the hand.
//
// The error of an edge is of its six numbers and stays the same for as long as they hold (a bias, not noise that is new
// at every instant), so it goes wherever they go. Another value is exact, unless it comes with an error.
//
// With t edges a check costs O(t (log t + depth log n)), in scenes where bodies have few frames with twists in one
// tree; a scene without twists pays nothing.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tmkit/scene_edit.hpp"
#include "tmkit/scene_errors.hpp"
#include "tmkit/twist_rules.hpp"

namespace tmkit {
namespace {

Error refusal(const SceneGraph& scene, const TwistRules::Broken& broken) {
    const auto frame_named = [&](FrameId id) { return std::string_view(scene.record(id).name->text); };
    const auto body_named = [&](BodyId id) { return std::string_view(scene.body(id).name->text); };
    return TwistRules::refusal(broken, frame_named, body_named);
}

}  // namespace

// --- bodies without frames -------------------------------------------------------------------------------------------

void SceneEdit::add_body(std::string_view name) {
    if (name.empty()) throw refusals::empty_body_name();
    if (scene_.has_body(name)) throw duplicate("body", name);
    const auto made = make_ref<BodyRecord>();
    made->name = make_ref<const Name>(name);
    const BodyId id = scene_.next_body_++;
    scene_.body_names_.assign(made->name, id);
    scene_.bodies_.assign(id, Ref<const BodyRecord>(made));
}

void SceneEdit::remove_body(std::string_view name) {
    const BodyId id = scene_.body_id(name);
    if (!body(id).tops.empty()) throw refusals::body_has_frames(name, record(body(id).tops.front()).name->text);
    scene_.twists_.for_each([&](FrameId frame, BodyId reference) {
        if (reference == id) throw refusals::is_reference(name, record(frame).name->text);
    });
    scene_.body_names_.remove(name);
    scene_.bodies_.remove(id);
}

// --- twist edges -----------------------------------------------------------------------------------------------------

void SceneEdit::check_twist(const FrameRecord& frame, const TwistEdge& edge) const {
    const BodyId reference = scene_.body_id(edge.reference);
    const std::string& name = frame.name->text;
    const auto is_finite = [](double number) { return std::isfinite(number); };
    if (!std::all_of(edge.vector.begin(), edge.vector.end(), is_finite)) throw refusals::twist_not_finite(name);
    if (reference == frame.body) throw refusals::twist_on_own_body(name, edge.reference);
    if (frame.details && frame.details->twist) {
        const std::string& present = frame.details->twist->reference;
        if (present != edge.reference) throw refusals::second_twist(name, present, edge.reference);
        return;  // another value of the edge that is there
    }
    if (scene_.twists_.empty()) return;
    TwistRules rules;
    scene_.twists_.for_each(
        [&](FrameId id, BodyId from) { rules.add({id, scene_.root_of(id), record(id).body, from}); });
    rules.add({frame.id, scene_.root_of(frame.id), frame.body, reference});
    if (const auto broken = rules.broken(true)) throw refusal(scene_, *broken);
}

void SceneEdit::set_twist(std::string_view frame, const TwistEdge& edge) {
    const FrameRecord& on = record(frame);
    check_twist(on, edge);
    const FrameId id = on.id;
    const bool is_new = !on.details || !on.details->twist;
    change_details(on, [&](FrameDetails& details) { details.twist = edge; });
    if (is_new) scene_.twists_.assign(id, scene_.body_id(edge.reference));
}

void SceneEdit::set_twist_noise(std::string_view frame, Ref<const EdgeNoise> noise) {
    const FrameRecord& on = record(frame);
    if (!on.details || !on.details->twist) throw refusals::without_twist(frame);
    change_details(on, [&](FrameDetails& details) { details.twist->noise = std::move(noise); });
}

void SceneEdit::remove_twist(std::string_view frame) {
    const FrameRecord& on = record(frame);
    if (on.details && on.details->twist) drop_twist(on.id);
}

void SceneEdit::drop_twist(FrameId id) {
    change_details(record(id), [](FrameDetails& details) { details.twist.reset(); });
    scene_.twists_.remove(id);
}

// The tree below a frame comes to hang under a frame of another tree; the edges of `cut` go.
void SceneEdit::check_twists_joined(FrameId moving, FrameId parent, const std::vector<FrameId>& cut) const {
    if (scene_.twists_.size() < 2) return;
    const FrameId tree = scene_.root_of(parent);
    if (scene_.root_of(moving) == tree) return;
    TwistRules rules;
    scene_.twists_.for_each([&](FrameId id, BodyId from) {
        if (std::find(cut.begin(), cut.end(), id) != cut.end()) return;
        rules.add({id, scene_.is_ancestor(moving, id) ? tree : scene_.root_of(id), record(id).body, from});
    });
    if (const auto broken = rules.broken(false)) throw refusal(scene_, *broken);
}

void SceneEdit::require_no_twists_from(const std::vector<FrameId>& leaving) const {
    if (scene_.twists_.empty()) return;
    const auto goes = [&](FrameId id) { return std::binary_search(leaving.begin(), leaving.end(), id); };
    scene_.twists_.for_each([&](FrameId id, BodyId reference) {
        const BodyRecord& referred = body(reference);
        if (goes(id) || referred.tops.empty() || !std::all_of(referred.tops.begin(), referred.tops.end(), goes)) return;
        throw refusals::is_reference(referred.name->text, record(id).name->text);
    });
}

// --- queries ---------------------------------------------------------------------------------------------------------

BodyId SceneGraph::body_id(std::string_view name) const {
    const BodyId* found = find_body(name);
    if (!found) throw unknown_name("body", name, body_names());
    return *found;
}

std::vector<FrameId> SceneGraph::frames_of_body(std::string_view name) const {
    const BodyId id = body_id(name);
    std::vector<FrameId> found = body(id).tops;
    for (std::size_t at = 0; at < found.size(); ++at)
        for (const FrameId child : children(found[at]))
            if (record(child).body == id) found.push_back(child);
    std::sort(found.begin(), found.end());
    return found;
}

std::vector<std::string> SceneGraph::bodies_without_frames() const {
    std::vector<std::string> names;
    if (bodies_.empty()) return names;
    body_names_.for_each([&](const Ref<const Name>& name, BodyId id) {
        if (body(id).tops.empty()) names.push_back(name->text);
    });
    return names;
}

std::optional<TwistEdge> SceneGraph::twist(std::string_view frame) const {
    const FrameRecord& on = record(frame);
    return on.details ? on.details->twist : std::nullopt;
}

std::vector<FrameId> SceneGraph::twists_across(FrameId edge) const {
    std::vector<FrameId> across;
    if (twists_.empty()) return across;
    const FrameId root = root_of(edge);
    const auto below = [&](FrameId id) { return is_ancestor(edge, id); };
    twists_.for_each([&](FrameId id, BodyId reference) {
        const std::vector<FrameId>& tops = body(reference).tops;
        if (root_of(id) == root && below(id) != std::any_of(tops.begin(), tops.end(), below)) across.push_back(id);
    });
    return across;
}

std::optional<FrameId> SceneGraph::twist_on_way(FrameId target, FrameId reference, bool unstamped) const {
    if (twists_.empty()) return std::nullopt;
    for (const auto& [from, to] : {std::pair(target, reference), std::pair(reference, target)})
        for (FrameId at = from; at != no_frame && !is_ancestor(at, to); at = record(at).parent) {
            const FrameRecord& edge = record(at);
            const bool stamped = edge.details && edge.details->stamps;
            if (edge.parent == no_frame || record(edge.parent).body == edge.body || (unstamped && stamped)) continue;
            if (const std::vector<FrameId> across = twists_across(at); !across.empty()) return across.front();
        }
    return std::nullopt;
}

void SceneGraph::require_no_twist_on_way(std::string_view target, std::string_view reference, bool unstamped) const {
    const auto moved = twist_on_way(record(target).id, record(reference).id, unstamped);
    if (!moved) return;
    const FrameRecord& frame = record(*moved);
    throw refusals::twist_left_out(target, reference, frame.name->text, frame.details->twist->reference, unstamped);
}

std::vector<FrameId> SceneGraph::twist_path(BodyId from, BodyId to) const {
    std::map<BodyId, FrameId> reached;  // bodies, and the edge by which one came up from below
    std::vector<BodyId> waiting{to};
    std::set<BodyId> seen{to};
    for (std::size_t next = 0; next < waiting.size() && !seen.count(from); ++next) {
        const BodyId below = waiting[next];
        twists_.for_each([&](FrameId id, BodyId above) {
            if (record(id).body != below || !seen.insert(above).second) return;
            reached.emplace(above, id);
            waiting.push_back(above);
        });
    }
    std::vector<FrameId> path;
    if (!seen.count(from) || from == to) return path;
    for (BodyId at = from; at != to; at = record(path.back()).body) path.push_back(reached.at(at));
    std::reverse(path.begin(), path.end());
    return path;
}

}  // namespace tmkit
