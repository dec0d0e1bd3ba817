// Another root for a tree: the edges on the way up from a frame are turned round, and nothing moves.
#include <algorithm>

#include "ascent.hpp"
#include "tmkit/scene_edit.hpp"
#include "tmkit/scene_errors.hpp"

namespace tmkit {
namespace {

// The edge above a frame, as it is kept below that frame once it is turned round.
struct TurnedEdge {
    FrameId child, parent;
    JointType type;
    Pose pose;  // of the old parent relative to the old child
    Ref<const EdgeNoise> noise;
    Ref<const StampedPoses> stamps;
};

TurnedEdge turned(const FrameRecord& edge) {
    TurnedEdge made{edge.id, edge.parent, edge.joint_type, edge.pose.inverse(), nullptr, nullptr};
    if (edge.noise) {  // P exp(xi) turned round is exp(-xi) P^-1 = P^-1 exp(-Ad(P) xi)
        NoiseSum sum;
        sum.add(*edge.noise, [&](const Vector6& xi) { return negative(carried_up(xi, edge.pose)); });
        made.noise = sum.edge();
    }
    if (edge.details && edge.details->stamps) {
        const Ref<StampedPoses> stamps(new StampedPoses(*edge.details->stamps));
        for (StampedPose& entry : stamps->entries) entry.pose = entry.pose.inverse();
        made.stamps = stamps;
    }
    return made;
}

}  // namespace

void SceneEdit::make_root(std::string_view name) {
    const Ascent ascent(scene_, record(name));
    std::vector<TurnedEdge> edges;
    std::vector<std::pair<FrameId, FrameId>> tops;  // of the bodies on the way: as they are, and as they will be
    for (std::size_t i = 0; i < ascent.size(); ++i) {
        const FrameRecord& frame = *ascent[i];
        const bool is_first = i == 0 || ascent[i - 1]->body != frame.body;
        if (is_first) tops.push_back({frame.id, frame.id});
        else tops.back().first = frame.id;
        if (frame.parent == no_frame) break;
        if (is_actuated(frame.joint_type))
            throw Error(ErrorKind::scene, "frame '{}' cannot be the root of its tree: joint '{}' is above it", name,
                        frame.joint->name)
                .with({{"frame", name}, {"joint", frame.joint->name}});
        edges.push_back(turned(frame));
    }
    if (edges.empty()) return;
    all_or_nothing([&] {
        for (const auto& [old_top, new_top] : tops) {
            if (old_top == new_top) continue;
            const BodyId id = record(old_top).body;
            const Ref<BodyRecord> changed(new BodyRecord(body(id)));
            std::replace(changed->tops.begin(), changed->tops.end(), old_top, new_top);
            scene_.bodies_.assign(id, Ref<const BodyRecord>(changed));
        }
        for (const TurnedEdge& edge : edges) put_noise(edge.child, nullptr);
        for (const TurnedEdge& edge : edges) end_stamps(own(edge.child));
        FrameRecord& root = own(edges.front().child);
        root.parent = no_frame;
        root.pose = Pose{};
        root.joint_type = JointType::fixed;
        note_change(root.id, false);
        for (const TurnedEdge& edge : edges) {
            FrameRecord& changed = own(edge.parent);
            changed.parent = edge.child;
            changed.pose = edge.pose;
            changed.joint_type = edge.type;
            if (edge.stamps) change_details(changed, [&](FrameDetails& details) { details.stamps = edge.stamps; });
            note_change(edge.parent, false);
            put_noise(edge.parent, edge.noise);
        }
    });
}

}  // namespace tmkit
