#include "tmkit/scene_edit_state.hpp"

#include <algorithm>
#include <utility>

namespace tmkit {

Ref<const FrameDetails> SceneEditState::details_or_null(FrameDetails details) {
    if (details.empty()) return nullptr;
    return Ref<const FrameDetails>(new FrameDetails(std::move(details)));
}

FrameRecord& SceneEditState::own(FrameId id) {
    if (Ref<const FrameRecord>* mine = scene_.frames_.find_unshared(id)) {
        if (!(*mine)->has_one_owner()) *mine = Ref<const FrameRecord>(new FrameRecord(**mine));
        return const_cast<FrameRecord&>(**mine);
    }
    const Ref<FrameRecord> copy(new FrameRecord(record(id)));
    scene_.frames_.assign(id, Ref<const FrameRecord>(copy));
    return *copy;
}

void SceneEditState::all_or_nothing(const std::function<void()>& edits) {
    const SceneGraph before = scene_;
    try {
        edits();
    } catch (...) {
        replace(before);
        throw;
    }
}

void SceneEditState::note_change(FrameId id, bool of_joint) {
    SceneGraph& s = scene_;
    if (Ref<const Layout> built = s.layout_.take()) {
        s.layout_before_ = std::move(built);
        s.change_count_ = 0;
        s.joints_as_before_ = true;
    }
    if (!s.layout_before_) return;
    if (of_joint) s.joints_as_before_ = false;
    const auto end = s.changed_.begin() + s.change_count_;
    if (std::find(s.changed_.begin(), end, id) != end) return;
    if (s.change_count_ == SceneGraph::most_changes) s.layout_before_ = nullptr;
    else s.changed_[s.change_count_++] = id;
}

void SceneEditState::set_details(const FrameRecord& frame, FrameDetails details) {
    if (frame.details ? frame.details->same_content(details) : details.empty()) return;
    own(frame.id).details = details_or_null(std::move(details));
}

}  // namespace tmkit
