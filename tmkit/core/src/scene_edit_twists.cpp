// Twist edges and bodies without frames: how bodies move relative to each other, and the rules that keep it unambiguous.
//
// A twist edge leads from a reference body to a frame of another body and holds the twist of that frame relative to it, at
// the frame's origin and in its axes (g|C, D, [g]). Edges make paths: from a body to a frame, on to that frame's body, and
// from there to the next frame. Rules, after De Laet, Bruyninckx and De Schutter's scene graph of poses
// and twists (2013), made decidable (docs/relations.md tells where they differ from the letter):
//
//   TE1  an edge joins a body and a frame of another body;
//   TE2  its value is that of the frame's origin, in the frame's axes; what is given otherwise is converted above the core;
//   TE3  a frame has one reference body; the same one again changes the value;
//   TE4  no two frames of one body that are joined by poses have paths from one body: their twists would be said twice;
//   TE5  no path leads from a frame's body back to the body that it would refer to.
//
// The error of an edge is of its six numbers and stays the same for as long as they hold (a bias, not noise that is new at every
// instant), so it goes wherever they go: reparenting changes neither. Another value is exact, unless it comes with an error.
//
// With t edges a check costs O(t log t); a scene without twists pays nothing.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "scene_errors.hpp"
#include "tmkit/scene_edit.hpp"

namespace tmkit {
namespace {

// For each body, the reference bodies of its frames: one step up a path.
std::multimap<BodyId, BodyId> steps_up(const SceneGraph& scene) {
    std::multimap<BodyId, BodyId> steps;
    for (FrameId id : scene.frames_with_twists()) {
        const FrameRecord& frame = scene.record(id);
        steps.emplace(frame.body, scene.body_id(frame.details->twist->reference));
    }
    return steps;
}

// All bodies from which a path leads to a body, itself included.
std::set<BodyId> bodies_above(const std::multimap<BodyId, BodyId>& steps, BodyId body) {
    std::set<BodyId> above{body};
    std::vector<BodyId> waiting{body};
    while (!waiting.empty()) {
        const auto [first, last] = steps.equal_range(waiting.back());
        waiting.pop_back();
        for (auto step = first; step != last; ++step)
            if (above.insert(step->second).second) waiting.push_back(step->second);
    }
    return above;
}

}  // namespace

// --- bodies without frames ---------------------------------------------------------------------------------------------

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

// --- twist edges -------------------------------------------------------------------------------------------------------

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
    if (scene_.twists_.size() == 0) return;
    const std::multimap<BodyId, BodyId> steps = steps_up(scene_);
    if (bodies_above(steps, reference).count(frame.body))
        throw refusals::twist_back(name, body(frame.body).name->text, edge.reference);
    const FrameId root = scene_.root_of(frame.id);
    scene_.twists_.for_each([&](FrameId id, BodyId from) {
        const FrameRecord& other = record(id);
        if (other.body != frame.body || scene_.root_of(id) != root) return;
        if (bodies_above(steps, from).count(reference)) throw refusals::second_twist_path(name, edge.reference, other.name->text);
    });
    // The new edge makes paths from all that is above its reference body; TE4 asks for those from the body itself.
}

void SceneEdit::set_twist(std::string_view frame, const TwistEdge& edge) {
    const FrameRecord& on = record(frame);
    check_twist(on, edge);
    const FrameId id = on.id;
    FrameDetails details = details_of(on);
    details.twist = edge;
    set_details(on, std::move(details));
    scene_.twists_.assign(id, scene_.body_id(edge.reference));
}

void SceneEdit::set_twist_noise(std::string_view frame, Ref<const EdgeNoise> noise) {
    const FrameRecord& on = record(frame);
    if (!on.details || !on.details->twist) throw refusals::without_twist(frame);
    FrameDetails details = details_of(on);
    details.twist->noise = std::move(noise);
    set_details(on, std::move(details));
}

void SceneEdit::remove_twist(std::string_view frame) {
    const FrameRecord& on = record(frame);
    if (!on.details || !on.details->twist) return;
    const FrameId id = on.id;
    FrameDetails details = details_of(on);
    details.twist.reset();
    set_details(on, std::move(details));
    scene_.twists_.remove(id);
}

// Two trees became one, and with them the frames of one body: TE4 for all of its frames in this tree.
void SceneEdit::check_twists_joined(FrameId joined) const {
    if (scene_.twists_.size() < 2) return;
    const std::multimap<BodyId, BodyId> steps = steps_up(scene_);
    const FrameId root = scene_.root_of(joined);
    const BodyId on = record(joined).body;
    std::vector<std::pair<FrameId, BodyId>> together;
    scene_.twists_.for_each([&](FrameId id, BodyId from) {
        if (record(id).body == on && scene_.root_of(id) == root) together.emplace_back(id, from);
    });
    for (const auto& [frame, from] : together)
        for (const auto& [other, other_from] : together)
            if (frame != other && bodies_above(steps, other_from).count(from))
                throw refusals::second_twist_path(record(frame).name->text, body(from).name->text, record(other).name->text);
}

void SceneEdit::require_no_twists_from(const std::vector<FrameId>& leaving) const {
    if (scene_.twists_.size() == 0) return;
    const auto goes = [&](FrameId id) { return std::binary_search(leaving.begin(), leaving.end(), id); };
    scene_.twists_.for_each([&](FrameId id, BodyId reference) {
        const BodyRecord& referred = body(reference);
        if (goes(id) || referred.tops.empty() || !std::all_of(referred.tops.begin(), referred.tops.end(), goes)) return;
        throw refusals::is_reference(referred.name->text, record(id).name->text);
    });
}

// --- queries -----------------------------------------------------------------------------------------------------------

BodyId SceneGraph::body_id(std::string_view name) const {
    const BodyId* found = find_body(name);
    if (!found) throw unknown_name("body", name, body_names());
    return *found;
}

std::vector<std::string> SceneGraph::bare_bodies() const {
    std::vector<std::string> names;
    if (bodies_.size() == 0) return names;
    body_names_.for_each([&](const Ref<const Name>& name, BodyId id) {
        if (body(id).tops.empty()) names.push_back(name->text);
    });
    return names;
}

std::optional<TwistEdge> SceneGraph::twist(std::string_view frame) const {
    const FrameRecord& on = record(frame);
    return on.details ? on.details->twist : std::nullopt;
}

std::vector<FrameId> SceneGraph::frames_with_twists() const {
    std::vector<FrameId> frames;
    frames.reserve(twists_.size());
    twists_.for_each([&](FrameId id, BodyId) { frames.push_back(id); });
    return frames;
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
