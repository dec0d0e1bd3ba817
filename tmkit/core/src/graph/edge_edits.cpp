#include "tmkit/edge_edits.hpp"

#include <algorithm>

#include "graph/ascent.hpp"
#include "graph/scene_rules.hpp"
#include "tmkit/scene_gaussian.hpp"

namespace tmkit {

void EdgeEdits::attach(std::string_view root, std::string_view parent, const Pose& pose,
                       Joint joint) {
    const FrameRecord& moving = record(root);
    const FrameRecord& target = record(parent);
    const bool joins = rules::check_attachment(GraphView(scene_), &moving, &target, joint.type);
    const FrameId id = moving.id, new_parent = target.id;
    const std::vector<FrameId> said =
        find_redundant_twists(moving, target, pose, joint.type, {}, false);
    all_or_nothing([&] {
        if (joins) join_parts(moving);
        for (const FrameId frame : said) drop_twist(frame);
        FrameRecord& changed = own(id);
        changed.parent = new_parent;
        changed.pose = pose;
        note_change(id, false);
        if (joint.type != JointType::fixed || !joint.is_stated) set_joint(root, std::move(joint));
    });
}

void EdgeEdits::move(const FrameRecord& moving, const FrameRecord& parent, const Pose& pose,
                     bool keep_twists) {
    const GraphView view(scene_);
    const rules::Move plan = rules::check_move(view, &moving, &parent, pose);
    if (plan.nothing) return;
    const FrameId id = moving.id, new_parent = parent.id;
    std::vector<FrameId> cut;  // removed twist edges
    if (plan.cuts && scene_.twist_count() > 0) {
        if (!keep_twists)
            rules::each_twist_across(view, &moving,
                                     [&](auto frame, BodyId) { cut.push_back(frame->id); });
        cut = find_redundant_twists(moving, parent, pose, moving.joint_type, std::move(cut),
                                    keep_twists);
    }
    const auto apply_move = [&] {
        if (plan.joins) join_parts(moving);
        for (const FrameId frame : cut) drop_twist(frame);
        FrameRecord& changed = own(id);
        if (changed.parent != new_parent) end_stamps(changed);
        changed.parent = new_parent;
        changed.pose = pose;
        note_change(id, false);
    };
    if (cut.empty()) return apply_move();
    all_or_nothing(apply_move);
}

void EdgeEdits::reparent(std::string_view frame, std::string_view parent, const Pose& pose,
                         Ref<const EdgeNoise> noise) {
    const FrameRecord& moving = record(frame);  // if both are unknown, the error names the first
    const FrameId id = moving.id;
    move(moving, record(parent), pose);
    state_motion(id);
    store_noise(id, std::move(noise));
}

// An edge with a joint, or one made by a grasp, has a motion.
void EdgeEdits::state_motion(FrameId frame) {
    if (!record(frame).is_stated) own(frame).is_stated = true;
}

void EdgeEdits::reparent_keeping_pose(std::string_view frame, std::string_view parent,
                                      const double* q, const Ref<const EdgeNoise>& slip) {
    const FrameRecord& moving = record(frame);
    const FrameRecord& target = record(parent);
    const FrameId id = moving.id;
    if (moving.parent == target.id) {
        if (slip) add_noise(frame, *slip);
        return state_motion(id);
    }
    // Throws the error.
    if (scene_.is_ancestor(moving.id, target.id)) return move(moving, target, moving.pose);
    Pose parent_from_frame = scene_.pose(frame, parent, q);
    if (moving.joint)  // the new edge must give this pose at the joint's present value
        parent_from_frame = parent_from_frame * joint_motion(moving.joint_type, moving.joint->axis,
                                                             scene_.joint_value(moving, q))
                                                    .inverse();
    if (!scene_.has_noise() && !slip) {
        move(moving, target, parent_from_frame);
        return state_motion(id);
    }
    NoiseSum error = path_noise(scene_, target, moving, q);
    if (slip) error.add(*slip, [](const Vector6& column) { return column; });
    Ref<const EdgeNoise> noise = error.edge();
    move(moving, target, parent_from_frame);
    state_motion(id);
    store_noise(id, std::move(noise));
}

void EdgeEdits::set_pose(std::string_view frame, const Pose& parent_from_frame) {
    const FrameRecord& moving = record(frame);
    if (moving.parent == no_frame) throw errors::root_without(frame, "pose");
    return move(moving, record(moving.parent), parent_from_frame);
}

namespace {

// The edge above a frame, as it is stored below that frame after the reversal.
struct TurnedEdge {
    FrameId child, parent;
    JointType type;
    bool is_stated;
    Pose pose;  // of the old parent relative to the old child
    Ref<const EdgeNoise> noise;
    Ref<const StampedPoses> stamps;
};

TurnedEdge reverse_edge(const FrameRecord& edge) {
    TurnedEdge result{edge.id, edge.parent, edge.joint_type, edge.is_stated, edge.pose.inverse(),
                      nullptr, nullptr};
    if (edge.noise) {  // the inverse of P exp(xi) is exp(-xi) P^-1 = P^-1 exp(-Ad(P) xi)
        NoiseSum sum;
        sum.add(*edge.noise, [&](const Vector6& xi) { return negative(carry_up(xi, edge.pose)); });
        result.noise = sum.edge();
    }
    if (edge.details && edge.details->stamps) {
        const Ref<StampedPoses> stamps(new StampedPoses(*edge.details->stamps));
        for (StampedPose& entry : stamps->entries) {
            if (entry.covariance) {
                // The error that the edge shares keeps the same bits as that of the edge.
                const bool is_of_edge = result.noise && entry.pose == edge.pose &&
                                        entry.covariance->value == edge.noise->covariance;
                entry.covariance = Ref<const StampCovariance>(
                    new StampCovariance(is_of_edge ? result.noise->covariance
                                                   : entry.covariance->value.carry_up(entry.pose)));
            }
            entry.pose = entry.pose.inverse();
        }
        result.stamps = stamps;
    }
    return result;
}

}  // namespace

void EdgeEdits::make_root(std::string_view name) {
    const Ascent ascent(scene_, record(name));
    std::vector<TurnedEdge> edges;
    // Of the bodies of the path, before and after.
    std::vector<std::pair<FrameId, FrameId>> tops;
    for (std::size_t i = 0; i < ascent.size(); ++i) {
        const FrameRecord& frame = *ascent[i];
        const bool is_first = i == 0 || ascent[i - 1]->body != frame.body;
        if (is_first) tops.push_back({frame.id, frame.id});
        else tops.back().first = frame.id;
        if (frame.parent == no_frame) break;
        if (is_actuated(frame.joint_type))
            throw Error(ErrorKind::scene,
                        "frame '{}' cannot be the root of its tree: joint '{}' is above it", name,
                        frame.joint->name)
                .with({{"frame", name}, {"joint", frame.joint->name}});
        edges.push_back(reverse_edge(frame));
    }
    if (edges.empty()) return;
    all_or_nothing([&] {
        for (const auto& [old_top, new_top] : tops) {
            if (old_top == new_top) continue;
            change_body(record(old_top).body, [from = old_top, to = new_top](BodyRecord& changed) {
                std::replace(changed.tops.begin(), changed.tops.end(), from, to);
            });
        }
        for (const TurnedEdge& edge : edges) store_noise(edge.child, nullptr);
        for (const TurnedEdge& edge : edges) end_stamps(own(edge.child));
        FrameRecord& root = own(edges.front().child);
        root.parent = no_frame;
        root.pose = Pose{};
        root.joint_type = JointType::fixed;
        root.is_stated = true;
        note_change(root.id, false);
        for (const TurnedEdge& edge : edges) {
            FrameRecord& changed = own(edge.parent);
            changed.parent = edge.child;
            changed.pose = edge.pose;
            changed.joint_type = edge.type;
            changed.is_stated = edge.is_stated;
            if (edge.stamps)
                change_details(changed,
                               [&](FrameDetails& details) { details.stamps = edge.stamps; });
            note_change(edge.parent, false);
            store_noise(edge.parent, edge.noise);
        }
    });
}

}  // namespace tmkit
