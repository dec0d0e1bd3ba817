// Twist edges and bodies without frames: how bodies move relative to each other, and the rules that keep it
// unambiguous.
//
// A twist edge leads from a reference body to a frame of another body and holds the twist of that frame relative to it,
// at the frame's origin and in its axes (g|C, D, [g]; TE2: other twists are converted above the core). It joins a body
// and a frame of another body (TE1); a frame has one reference body, and the same one again changes the value (TE3).
// TE4 to TE6 keep the set of edges unambiguous: twist_rules.hpp. The rules are those of De Laet, Bruyninckx and De
// Schutter's scene graph of poses and twists (2013), made decidable; docs/concepts/relations.md.
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
#include "scene_rules.hpp"
#include "tmkit/scene_edit.hpp"

namespace tmkit {

// --- bodies without frames -------------------------------------------------------------------------------------------

void SceneEdit::add_body(std::string_view name) {
    if (name.empty()) throw refusals::empty_body_name();
    if (scene_.has_body(name)) throw duplicate("body", name);
    make_body(name, {});
}

BodyId SceneEdit::make_body(std::string_view name, std::vector<FrameId> tops) {
    const auto made = make_ref<BodyRecord>();
    made->name = make_ref<const Name>(name);
    made->tops = std::move(tops);
    const BodyId id = scene_.next_body_++;
    scene_.body_names_.assign(made->name, id);
    scene_.bodies_.assign(id, Ref<const BodyRecord>(made));
    return id;
}

void SceneEdit::remove_body(std::string_view name) {
    const BodyId id = scene_.body_id(name);
    rules::check_bare(GraphView(scene_), id);
    scene_.body_names_.remove(name);
    scene_.bodies_.remove(id);
}

// --- twist edges -----------------------------------------------------------------------------------------------------

void SceneEdit::set_twist(std::string_view frame, const TwistEdge& edge) {
    const FrameRecord& on = record(frame);
    const BodyId reference = scene_.body_id(edge.reference);
    TwistRules set;
    const bool is_new = rules::check_twist(GraphView(scene_), set, &on, reference, edge.vector);
    const FrameId id = on.id;
    change_details(on, [&](FrameDetails& details) { details.twist = edge; });
    if (is_new) scene_.twists_.assign(id, reference);
}

void SceneEdit::join_twist(std::string_view frame, const TwistEdge& edge) {
    if (const std::optional<TwistEdge> known = scene_.twist(frame); known && known->reference == edge.reference) {
        if (rules::is_same(known->vector, edge.vector)) return;
        throw refusals::twists_contradict(frame, edge.reference, edge.vector, quoted(frame), known->vector);
    }
    try {
        set_twist(frame, edge);
    } catch (const Error& refusal) {
        BodyWays<const FrameRecord*, BodyId> ways;
        const auto none_goes = [](auto) { return false; };
        const FrameRecord& on = record(frame);
        const BodyId reference = scene_.body_id(edge.reference);
        if (rules::is_said_too(GraphView(scene_), ways, &on, reference, edge.vector, none_goes)) return;
        if (!rules::may_wait(refusal)) throw;
        FrameSpecification waiting{std::string(frame) + " relative to " + edge.reference, std::string(frame)};
        const std::string wanted = waiting.name;
        for (int n = 2; scene_.find(waiting.name) || scene_.has_group(waiting.name); ++n)
            waiting.name = formatted("{} ({})", wanted, n);
        waiting.body = body(on.body).name->text;
        waiting.classes = {"observation"};
        waiting.attributes = {{"observation", R"({"kind": "twist", "stamp": null, "tags": []})"}};
        add(waiting, scene_.next_frame_);
        set_group({waiting.name, {std::string(frame), waiting.name}});
        set_twist(waiting.name, edge);
    }
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

void SceneGraph::require_no_twist_on_way(std::string_view target, std::string_view reference, bool unstamped) const {
    rules::check_no_twist_on_way(GraphView(*this), &record(target), &record(reference), unstamped);
}

}  // namespace tmkit
