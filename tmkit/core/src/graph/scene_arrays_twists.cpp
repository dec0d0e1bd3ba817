// Bodies without frames and twist edges of the arrays: the rules of scene_edit_twists.cpp, kept without a list that
// grows.
//
// Twist edges stand in a dense table. The rules of the set are those of twist_rules.hpp, checked in scratch that has
// room for all edges; they come to it in the order of the frames, so that a refusal names the same edges as that of the
// persistent scene.
#include <algorithm>
#include <cmath>

#include "tmkit/scene_arrays.hpp"
#include "tmkit/scene_errors.hpp"

namespace tmkit {

// --- bodies ----------------------------------------------------------------------------------------------------------

SceneArrays::Slot SceneArrays::require_body(std::string_view name) const {
    const Slot body = body_names_.find(name);
    if (body == none) throw unknown_body(name);
    return body;
}

Error SceneArrays::unknown_body(std::string_view name) const { return unknown_name("body", name, body_names()); }

void SceneArrays::add_body(std::string_view name) {
    const Writer writer(lock_);
    if (name.empty()) throw refusals::empty_body_name();
    if (body_names_.find(name) != none) throw duplicate("body", name);
    require_fit(name);
    if (free_bodies_.empty()) throw refusals::full("body", capacities_.bodies, "bodies");
    const Section section(lock_);
    bare_.store(take_body(name), 1);
}

void SceneArrays::remove_body(std::string_view name) {
    const Writer writer(lock_);
    const Slot body = require_body(name);
    Slot first = first_top_[body];
    if (first != none) {  // of several, the one that came first is named
        for (Slot top = first; top != none; top = next_top_[top])
            if (id_[top] < id_[first]) first = top;
        throw refusals::body_has_frames(name, frame_names_.view(first));
    }
    Slot refers = none;
    for (Slot twist = 0; twist < counts_[twist_count]; ++twist)
        if (twist_reference_[twist] == body && (refers == none || id_[twist_frame_[twist]] < id_[refers]))
            refers = twist_frame_[twist];
    if (refers != none) throw refusals::is_reference(name, frame_names_.view(refers));
    const Section section(lock_);
    bare_.store(body, 0);
    body_names_.erase(body);
    free_bodies_.push_back(body);
}

// --- rules -----------------------------------------------------------------------------------------------------------

Error SceneArrays::refusal(const TwistRules::Broken& broken) const {
    const auto frame_named = [this](FrameId id) {
        std::int32_t at = 0;
        while (id_[sequence_[at]] != id) ++at;
        return frame_names_.view(sequence_[at]);
    };
    const auto body_named = [this](BodyId body) { return body_names_.view(static_cast<Slot>(body)); };
    return TwistRules::refusal(broken, frame_named, body_named);
}

void SceneArrays::check_new_twist(Slot slot, Slot reference) const {
    if (counts_[twist_count] == 0) return;
    const auto link = [this](Slot frame, Slot from) {
        return TwistRules::Link{id_[frame], id_[root_of(frame)], static_cast<TwistRules::Number>(body_[frame]),
                                static_cast<TwistRules::Number>(from)};
    };
    twist_rules_.clear();
    for (Slot twist = 0; twist < counts_[twist_count]; ++twist)
        twist_rules_.add(link(twist_frame_[twist], twist_reference_[twist]));
    twist_rules_.sort();
    twist_rules_.add(link(slot, reference));
    if (const auto broken = twist_rules_.broken(true)) throw refusal(*broken);
}

// For readers, too: bounded whatever they read.
bool SceneArrays::is_below(Slot top, Slot slot) const {
    for (std::size_t steps = 0; slot != none && slot != top && steps < capacities_.frames; ++steps)
        slot = parent_.load(slot);
    return slot == top;
}

// Of the twist edges in the tree of a root whose path leads over the edge above a frame, the one that a scene names: by
// its frame.
SceneArrays::Slot SceneArrays::first_twist_across(Slot edge, Slot root) const {
    const auto reaches = [this, edge](Slot body) {
        for (std::size_t i = 0; i < size(); ++i) {
            const Slot frame = sequence_.load(static_cast<std::int32_t>(i));
            if (body_.load(frame) == body && is_below(edge, frame)) return true;
        }
        return false;
    };
    Slot found = none;
    for (Slot twist = 0; twist < static_cast<Slot>(counts_.load(twist_count)); ++twist) {
        const Slot frame = twist_frame_.load(twist);
        if (frame == none || root_of(frame) != root || is_below(edge, frame) == reaches(twist_reference_.load(twist)))
            continue;
        if (found == none || id_.load(frame) < id_.load(found)) found = frame;
    }
    return found;
}

// As SceneGraph::twist_on_way beside stamps, for readers: the frame of such an edge.
SceneArrays::Slot SceneArrays::unstamped_twist(Slot target, Slot reference) const {
    if (counts_.load(twist_count) == 0 || target == none || reference == none) return none;
    const Slot root = root_of(target);
    for (const auto& [from, to] : {std::pair(target, reference), std::pair(reference, target)}) {
        Slot above = none;
        for (Slot at = from; at != none && !is_below(at, to) && is_below(root, at); at = above) {
            above = parent_.load(at);
            if (above == none || body_.load(above) == body_.load(at) || stamp_count_.load(at) != none) continue;
            if (const Slot found = first_twist_across(at, root); found != none) return found;
        }
    }
    return none;
}

// As SceneGraph::twists_across: in `twist_goes_`, by twist edge.
void SceneArrays::mark_twists_across(Slot edge) const {
    const Slot root = root_of(edge);
    for (Slot twist = 0; twist < counts_[twist_count]; ++twist) {
        Slot top = first_top_[twist_reference_[twist]];
        while (top != none && !is_below(edge, top)) top = next_top_[top];
        const Slot frame = twist_frame_[twist];
        twist_goes_[twist] = root_of(frame) == root && is_below(edge, frame) != (top != none);
    }
}

// The tree below `moving` comes to hang under a frame of another tree; the edges across the one above it go, which are
// marked.
void SceneArrays::check_twists_joined(Slot moving, Slot parent) const {
    const Slot tree = root_of(parent);
    if (counts_[twist_count] < 2 || root_of(moving) == tree) return;
    twist_rules_.clear();
    for (Slot twist = 0; twist < counts_[twist_count]; ++twist) {
        const Slot frame = twist_frame_[twist];
        if (!twist_goes_[twist])
            twist_rules_.add({id_[frame], id_[is_below(moving, frame) ? tree : root_of(frame)],
                              static_cast<TwistRules::Number>(body_[frame]),
                              static_cast<TwistRules::Number>(twist_reference_[twist])});
    }
    twist_rules_.sort();
    if (const auto broken = twist_rules_.broken(false)) throw refusal(*broken);
}

void SceneArrays::require_no_twists_from() const {
    Slot refers = none, referred = none;
    for (Slot twist = 0; twist < counts_[twist_count]; ++twist) {
        const Slot frame = twist_frame_[twist], body = twist_reference_[twist];
        const Slot first = first_top_[body];
        if (marks_.has(frame) || first == none || (refers != none && id_[refers] < id_[frame])) continue;
        bool goes = true;
        for (Slot top = first; top != none; top = next_top_[top]) goes &= marks_.has(top);
        if (!goes) continue;
        refers = frame;
        referred = body;
    }
    if (refers != none) throw refusals::is_reference(body_names_.view(referred), frame_names_.view(refers));
}

// --- edits -----------------------------------------------------------------------------------------------------------

void SceneArrays::set_twist(std::string_view frame, const TwistEdge& edge) {
    const Writer writer(lock_);
    const auto& [reference, vector, noise] = edge;
    const Slot slot = require_frame(frame), body = require_body(reference);
    if (!std::all_of(vector.begin(), vector.end(), [](double number) { return std::isfinite(number); }))
        throw refusals::twist_not_finite(frame);
    if (body == body_[slot]) throw refusals::twist_on_own_body(frame, reference);
    const Slot present = twist_[slot];
    if (present != none && twist_reference_[present] != body)
        throw refusals::second_twist(frame, body_names_.view(twist_reference_[present]), reference);
    if (present == none) {
        check_new_twist(slot, body);
        if (static_cast<std::size_t>(counts_[twist_count]) == capacities_.twists)
            throw refusals::full("twist", capacities_.twists, "twists");
    }
    const Section section(lock_);
    const Slot twist = present == none ? append_twist(slot, body) : present;
    twist_vector_.store(twist, vector);
    twist_noise_[twist] = noise;
}

void SceneArrays::set_twist_noise(std::string_view frame, Ref<const EdgeNoise> noise) {
    const Writer writer(lock_);
    const Slot twist = twist_[require_frame(frame)];
    if (twist == none) throw refusals::without_twist(frame);
    twist_noise_[twist] = std::move(noise);
}

Ref<const EdgeNoise> SceneArrays::twist_noise(std::string_view frame) const {
    const Slot twist = twist_[require_frame(frame)];
    return twist == none ? nullptr : twist_noise_[twist];
}

SceneArrays::Slot SceneArrays::append_twist(Slot slot, Slot reference) {
    const Slot twist = counts_[twist_count];
    counts_.store(twist_count, twist + 1);
    twist_frame_.store(twist, slot);
    twist_on_.store(twist, body_[slot]);
    twist_reference_.store(twist, reference);
    twist_.store(slot, twist);
    return twist;
}

void SceneArrays::remove_twist(std::string_view frame) {
    const Writer writer(lock_);
    const Slot slot = require_frame(frame);
    if (twist_[slot] == none) return;
    const Section section(lock_);
    drop_twist(slot);
}

// The last edge takes the place of the one that goes.
void SceneArrays::drop_twist(Slot slot) {
    const Slot twist = twist_[slot];
    if (twist == none) return;
    const Slot last = counts_[twist_count] - 1;
    twist_frame_.store(twist, twist_frame_[last]);
    twist_on_.store(twist, twist_on_[last]);
    twist_reference_.store(twist, twist_reference_[last]);
    twist_vector_.store(twist, twist_vector_[last]);
    std::swap(twist_noise_[twist], twist_noise_[last]);
    twist_noise_[last] = nullptr;
    twist_.store(twist_frame_[twist], twist);
    twist_.store(slot, none);
    counts_.store(twist_count, last);
}

// --- queries, from any thread ----------------------------------------------------------------------------------------

std::string SceneArrays::body(std::string_view frame) const {
    return read_frame(frame, [this](Slot slot) {
        const Slot body = body_.load(slot);
        return body == none ? std::string() : body_names_.text(body);
    });
}

void SceneArrays::add_bare_bodies(std::vector<std::string>& names) const {
    const auto first = static_cast<std::ptrdiff_t>(names.size());
    for (std::size_t body = 0; body < capacities_.bodies; ++body)
        if (const auto slot = static_cast<Slot>(body); bare_.load(slot)) names.push_back(body_names_.text(slot));
    std::sort(names.begin() + first, names.end());
}

std::vector<std::string> SceneArrays::bodies_without_frames() const {
    return lock_.read([&] {
        std::vector<std::string> found;
        add_bare_bodies(found);
        return found;
    });
}

std::vector<std::string> SceneArrays::body_names() const {
    return lock_.read([&] {
        std::vector<std::string> found;
        std::vector<char> seen(capacities_.bodies, 0);
        for (std::size_t i = 0; i < size(); ++i) {
            const Slot body = body_.load(sequence_.load(static_cast<std::int32_t>(i)));
            if (body == none || std::exchange(seen[body], 1)) continue;
            found.push_back(body_names_.text(body));
        }
        add_bare_bodies(found);
        return found;
    });
}

std::optional<TwistEdge> SceneArrays::twist(std::string_view frame) const {
    return read_frame(frame, [this](Slot slot) -> std::optional<TwistEdge> {
        const Slot twist = twist_.load(slot);
        if (twist == none) return std::nullopt;
        const Slot reference = twist_reference_.load(twist);
        return TwistEdge{reference == none ? std::string() : body_names_.text(reference), twist_vector_.load(twist),
                         nullptr};
    });
}

std::vector<SceneArrays::TwistRow> SceneArrays::twist_rows() const {
    std::vector<TwistRow> rows;
    const std::int32_t count = counts_.load(twist_count);
    for (Slot twist = 0; twist < count; ++twist) {
        const TwistRow row{no_frame, twist_frame_.load(twist), twist_on_.load(twist), twist_reference_.load(twist)};
        if (row.frame != none) rows.push_back({id_.load(row.frame), row.frame, row.body, row.reference});
    }
    std::sort(rows.begin(), rows.end(), [](const TwistRow& a, const TwistRow& b) { return a.id < b.id; });
    return rows;
}

std::vector<std::string> SceneArrays::twist_frames() const {
    return lock_.read([&] {
        std::vector<std::string> names;
        for (const TwistRow& row : twist_rows()) names.push_back(frame_names_.text(row.frame));
        return names;
    });
}

std::vector<std::string> SceneArrays::twist_path(std::string_view from, std::string_view to) const {
    Trouble trouble = Trouble::nothing;
    std::vector<std::string> path = lock_.read([&] {
        std::vector<std::string> names;
        const Slot start = body_names_.find(from), end = body_names_.find(to);
        trouble = start == none ? Trouble::reference : end == none ? Trouble::target : Trouble::nothing;
        if (trouble != Trouble::nothing) return names;
        for (const TwistRow& row : tmkit::twist_path(twist_rows(), start, end))
            names.push_back(frame_names_.text(row.frame));
        return names;
    });
    if (trouble != Trouble::nothing) throw unknown_body(trouble == Trouble::reference ? from : to);
    return path;
}

}  // namespace tmkit
