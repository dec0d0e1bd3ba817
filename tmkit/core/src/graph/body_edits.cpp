#include "tmkit/body_edits.hpp"

#include <algorithm>

#include "graph/scene_rules.hpp"

namespace tmkit {

// Throws if a new frame may not join the body of its specification.
void BodyEdits::check_entry(const FrameSpecification& specification,
                            const FrameRecord* parent) const {
    const bool is_body_named = !specification.body.empty();
    if (const BodyId* body =
            scene_.find_body(is_body_named ? specification.body : specification.name))
        rules::check_entry(GraphView(scene_), specification.name, *body, is_body_named, parent,
                           specification.joint.type);
}

BodyId BodyEdits::enter_body(const FrameSpecification& specification, FrameId frame,
                             FrameId parent) {
    const std::string& name = specification.body.empty() ? specification.name : specification.body;
    if (const BodyId* existing = scene_.body_names_.find(std::string_view(name))) {
        const BodyId id = *existing;
        if (parent == no_frame || record(parent).body != id)
            change_body(id, [&](BodyRecord& changed) { changed.tops.push_back(frame); });
        return id;
    }
    return make_body(name, {frame});
}

void BodyEdits::leave_body(const FrameRecord& leaving) {
    const BodyRecord& old = body(leaving.body);
    const auto position = std::find(old.tops.begin(), old.tops.end(), leaving.id);
    const bool carries_inertia = old.inertia_frame == leaving.id;
    if (position == old.tops.end() && !carries_inertia) return;
    if (position != old.tops.end() && old.tops.size() == 1) {
        const Ref<const Name> name = old.name;  // outlives the record
        scene_.body_names_.remove(std::string_view(name->text));
        scene_.bodies_.remove(leaving.body);
        return;
    }
    change_body(leaving.body, [&, is_top = position != old.tops.end()](BodyRecord& changed) {
        std::erase(changed.tops, leaving.id);
        if (!carries_inertia) return;
        // The inertia remains with the body: it is expressed in the axes of the frame above, if
        // that is on the same body. Frames in other trees have no known pose, so they cannot carry
        // it.
        changed.inertia = is_top ? Inertia{} : *scene_.inertia(record(leaving.parent).name->text);
        changed.inertia_frame = is_top ? no_frame : leaving.parent;
    });
}

void BodyEdits::set_inertia(std::string_view frame, const std::optional<Inertia>& inertia) {
    const FrameRecord& on = record(frame);
    if (inertia) inertia->check_stored();
    const BodyRecord& old = body(on.body);
    const FrameId inertia_frame = inertia ? on.id : no_frame;
    const Inertia value = inertia.value_or(Inertia{});
    if (old.inertia_frame == inertia_frame && old.inertia == value) return;
    change_body(on.body, [&](BodyRecord& changed) {
        changed.inertia_frame = inertia_frame;
        changed.inertia = value;
    });
}

void BodyEdits::add_body(std::string_view name) {
    if (name.empty()) throw errors::empty_body_name();
    if (scene_.has_body(name)) throw duplicate("body", name);
    make_body(name, {});
}

BodyId BodyEdits::make_body(std::string_view name, std::vector<FrameId> tops) {
    const auto new_body = make_ref<BodyRecord>();
    new_body->name = make_ref<const Name>(name);
    new_body->tops = std::move(tops);
    const BodyId id = scene_.next_body_++;
    scene_.body_names_.assign(new_body->name, id);
    scene_.bodies_.assign(id, Ref<const BodyRecord>(new_body));
    return id;
}

void BodyEdits::remove_body(std::string_view name) {
    const BodyId id = scene_.body_id(name);
    rules::check_bare(GraphView(scene_), id);
    scene_.body_names_.remove(name);
    scene_.bodies_.remove(id);
}

}  // namespace tmkit
