// The layout of a version: made from scratch, or mended from that of a version a few moves away (layout.hpp).
#include "tmkit/scene_graph.hpp"

namespace tmkit {

Ref<Layout> SceneGraph::fresh_layout() const {
    const std::size_t count = size();
    const auto flat = make_ref<LayoutFrames>();
    std::apply([count](auto&... column) { (column.resize(count), ...); }, flat->columns());
    flat->joint_frame.reserve(joints_.size());
    std::vector<FrameId> parents(count);
    std::vector<Pose> poses(count);
    std::int32_t number = 0;
    frames_.for_each([&](FrameId id, const Ref<const FrameRecord>& frame) {
        JointRule rule;
        const Joint* joint = frame->joint.get();
        if (joint && joint->mimic.empty()) {  // entries of the configuration are in the order of frames
            rule.entry = flat->joint_frame.size();
            flat->joint_frame.push_back(number);
        } else if (joint) {
            rule = joint_rule(*frame);
        }
        flat->ids[number] = id;
        flat->body[number] = frame->body;
        flat->type[number] = frame->joint_type;
        flat->axis[number] = joint ? joint->axis : Vector3{0.0, 0.0, 1.0};
        flat->q_index[number] = joint ? static_cast<std::int32_t>(rule.entry) : -1;
        flat->multiplier[number] = rule.multiplier;
        flat->offset[number] = rule.offset;
        parents[number] = frame->parent;
        poses[number++] = frame->pose;
    });
    const auto made = make_ref<Layout>(Ref<const LayoutFrames>(flat));
    made->parent.reserve(count);
    for (FrameId parent : parents) made->parent.push_back(parent == no_frame ? -1 : made->index_of(parent));
    made->pose = std::move(poses);
    made->settle(std::vector<char>(count, true));
    return made;
}

Ref<Layout> SceneGraph::mended_layout() const {
    const Layout& before = *layout_before_;
    const auto made = make_ref<Layout>(before.frames);
    made->parent = before.parent;
    made->pose = before.pose;
    made->still = before.still;
    std::vector<char> stale(made->size(), false);
    bool relinked = false;
    for (std::uint32_t i = 0; i < move_count_; ++i) {
        const FrameRecord& now = record(moved_[i]);
        const std::int32_t number = made->index_of(now.id);
        const std::int32_t parent = now.parent == no_frame ? -1 : made->index_of(now.parent);
        relinked = relinked || made->parent[number] != parent;
        made->parent[number] = parent;
        made->pose[number] = now.pose;
        stale[number] = true;
    }
    made->settle(std::move(stale));
    if (!relinked) made->share_tree(before);
    return made;
}

const Layout& SceneGraph::layout() const {
    return layout_.get([this] { return layout_before_ ? mended_layout() : fresh_layout(); });
}

}  // namespace tmkit
