// Version under edit, changed in place: the base of all edits of scenes.
//
// The edits are classes by subject, each above its dependencies: bodies, joints, contents of
// frames, errors, twists, edges, frames, whole scenes (SceneEdit). A class calls only those below.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>

#include "tmkit/leader_range.hpp"
#include "tmkit/scene_graph.hpp"

namespace tmkit {

class SceneEditState {
public:
    explicit SceneEditState(const SceneGraph& scene) : scene_(scene) {}

    const SceneGraph& scene() const { return scene_; }
    SceneGraph take() && { return std::move(scene_); }

protected:
    using LeaderRanges = std::unordered_map<FrameId, LeaderRange>;
    const FrameRecord& record(std::string_view name) const { return scene_.record(name); }
    const FrameRecord& record(FrameId id) const { return scene_.record(id); }
    const BodyRecord& body(BodyId id) const { return scene_.body(id); }
    FrameRecord& own(FrameId id);
    void all_or_nothing(const std::function<void()>& edits);
    // Record that a frame was moved, added, removed or got another joint; `of_joint`: a joint was
    // added, removed or changed with it.
    void note_change(FrameId id, bool of_joint);
    void set_details(const FrameRecord& frame, FrameDetails details);
    template <class Change> void change_details(const FrameRecord& frame, Change&& change) {
        FrameDetails details = frame.details ? *frame.details : FrameDetails{};
        change(details);
        set_details(frame, std::move(details));
    }
    static Ref<const FrameDetails> details_or_null(FrameDetails details);

    void replace(const SceneGraph& scene) {
        scene_ = scene;
        ranges_.reset();
    }

    SceneGraph scene_;
    std::optional<LeaderRanges> ranges_;  // of joints with mimic joints; null: not computed
};

}  // namespace tmkit
