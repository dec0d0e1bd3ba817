// Bodies without frames and twist edges of the arrays. What edges there are is a list of their frames, by insertion;
// their values stand beside the frames.
#include <algorithm>

#include "scene_arrays_view.hpp"

namespace tmkit {

// --- bodies ----------------------------------------------------------------------------------------------------------

SceneArrays::Slot SceneArrays::require_body(std::string_view name) const {
    const Slot body = body_names_.find(name);
    if (body == none) throw unknown_name("body", name, body_names());
    return body;
}

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
    rules::check_bare(View(*this), body);
    const Section section(lock_);
    bare_.store(body, 0);
    body_names_.erase(body);
    free_bodies_.push_back(body);
}

// --- edits -----------------------------------------------------------------------------------------------------------

void SceneArrays::set_twist(std::string_view frame, const TwistEdge& edge) {
    const Writer writer(lock_);
    const Slot slot = require_frame(frame), body = require_body(edge.reference);
    const bool is_new = rules::check_twist(View(*this), twist_rules_, slot, body, edge.vector);
    if (is_new && static_cast<std::size_t>(counts_[twist_count]) == capacities_.twists)
        throw refusals::full("twist", capacities_.twists, "twists");
    const Section section(lock_);
    if (is_new) append_twist(slot, body);
    twist_vector_.store(slot, edge.vector);
    twist_noise_[slot] = edge.noise;
}

void SceneArrays::set_twist_noise(std::string_view frame, Ref<const EdgeNoise> noise) {
    const Writer writer(lock_);
    const Slot slot = require_frame(frame);
    if (twist_reference_[slot] == none) throw refusals::without_twist(frame);
    twist_noise_[slot] = std::move(noise);
}

Ref<const EdgeNoise> SceneArrays::twist_noise(std::string_view frame) const {
    return twist_noise_[require_frame(frame)];
}

void SceneArrays::append_twist(Slot slot, Slot reference) {
    Slot at = counts_[twist_count];
    counts_.store(twist_count, at + 1);
    for (; at > 0 && id_[twists_[at - 1]] > id_[slot]; --at) twists_.store(at, twists_[at - 1]);
    twists_.store(at, slot);
    twist_reference_.store(slot, reference);
}

void SceneArrays::remove_twist(std::string_view frame) {
    const Writer writer(lock_);
    const Slot slot = require_frame(frame);
    if (twist_reference_[slot] == none) return;
    const Section section(lock_);
    drop_twists([slot](Slot frame) { return frame == slot; });
}

// --- queries, from any thread ----------------------------------------------------------------------------------------

std::string SceneArrays::body(std::string_view frame) const {
    return read_frame(frame, [view = View(*this)](Slot slot) { return view.body_name(view.body(slot)); });
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
    return read_frame(frame, [this](Slot slot) {
        const Slot reference = twist_reference_.load(slot);
        const View view(*this);
        return reference == none
                   ? std::nullopt
                   : std::optional(TwistEdge{view.body_name(reference), twist_vector_.load(slot), nullptr});
    });
}

std::vector<std::string> SceneArrays::twist_frames() const { return names_in(frame_names_, twists_, twist_count); }

}  // namespace tmkit
