// Edits of bodies and their inertia.
#pragma once

#include "tmkit/scene_edit_state.hpp"

namespace tmkit {

class BodyEdits : public SceneEditState {
public:
    using SceneEditState::SceneEditState;

    void add_body(std::string_view name);  // no frames yet; the body is removed with its last frame
    void remove_body(std::string_view name);  // without a frame
    void set_inertia(std::string_view frame, const std::optional<Inertia>& inertia);

protected:
    BodyId make_body(std::string_view name, std::vector<FrameId> tops);
    void check_entry(const FrameSpecification& specification, const FrameRecord* parent) const;
    BodyId enter_body(const FrameSpecification& specification, FrameId frame, FrameId parent);
    void leave_body(const FrameRecord& record);
    template <class Change> void change_body(BodyId id, Change&& change) {
        const Ref<BodyRecord> changed(new BodyRecord(body(id)));
        change(*changed);
        scene_.bodies_.assign(id, Ref<const BodyRecord>(changed));
    }
    // Attaches a root of its body to another frame of it: one root fewer.
    void join_parts(const FrameRecord& moving) {
        change_body(moving.body, [&](BodyRecord& changed) { std::erase(changed.tops, moving.id); });
    }
};

}  // namespace tmkit
