// Edits of bodies and their inertia.
#pragma once

#include "tmkit/scene_edit_state.hpp"

namespace tmkit {

class BodyEdits : public SceneEditState {
public:
    using SceneEditState::SceneEditState;

    void add_body(std::string_view name);     // without a frame yet; it is gone with its last one
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
    void join_parts(
        const FrameRecord& moving) {  // a top of its body comes to hang off that: one top less
        change_body(moving.body, [&](BodyRecord& changed) { std::erase(changed.tops, moving.id); });
    }
};

}  // namespace tmkit
