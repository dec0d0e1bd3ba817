// Edits of bodies, joints and edges of poses, and of the root of a tree.
#include <algorithm>

#include "ascent.hpp"
#include "scene_rules.hpp"
#include "tmkit/scene_edit.hpp"
#include "tmkit/scene_gaussian.hpp"

namespace tmkit {

// --- bodies ----------------------------------------------------------------------------------------------------------

// Throws when a new frame may not sit on the body it asks for.
void SceneEdit::check_entry(const FrameSpecification& specification, const FrameRecord* parent) const {
    const bool asked = !specification.body.empty();
    if (const BodyId* body = scene_.find_body(asked ? specification.body : specification.name))
        rules::check_entry(GraphView(scene_), specification.name, *body, asked, parent, specification.joint.type);
}

BodyId SceneEdit::enter_body(const FrameSpecification& specification, FrameId frame, FrameId parent) {
    const std::string& name = specification.body.empty() ? specification.name : specification.body;
    if (const BodyId* existing = scene_.body_names_.find(std::string_view(name))) {
        const BodyId id = *existing;
        if (parent == no_frame || record(parent).body != id)
            change_body(id, [&](BodyRecord& changed) { changed.tops.push_back(frame); });
        return id;
    }
    return make_body(name, {frame});
}

void SceneEdit::leave_body(const FrameRecord& leaving) {
    const BodyRecord& old = body(leaving.body);
    const auto at = std::find(old.tops.begin(), old.tops.end(), leaving.id);
    const bool carries_inertia = old.inertia_frame == leaving.id;
    if (at == old.tops.end() && !carries_inertia) return;
    if (at != old.tops.end() && old.tops.size() == 1) {
        const Ref<const Name> name = old.name;  // outlives the record
        scene_.body_names_.remove(std::string_view(name->text));
        scene_.bodies_.remove(leaving.body);
        return;
    }
    change_body(leaving.body, [&, is_top = at != old.tops.end()](BodyRecord& changed) {
        std::erase(changed.tops, leaving.id);
        if (!carries_inertia) return;
        // The inertia stays with the body: say it again in the axes of the frame above, if that is on the same body.
        // No pose to the frames in other trees is known, so it cannot be theirs.
        changed.inertia = is_top ? Inertia{} : *scene_.inertia(record(leaving.parent).name->text);
        changed.inertia_frame = is_top ? no_frame : leaving.parent;
    });
}

// --- moves -----------------------------------------------------------------------------------------------------------

// Adds the twist edges that others say as well, when a frame hangs under another, to those that end; `keep`: there may
// be none.
std::vector<FrameId> SceneEdit::joined_twists(const FrameRecord& moving, const FrameRecord& parent, const Pose& pose,
                                              JointType type, std::vector<FrameId> ending, bool keep) const {
    TwistRules set;
    BodyWays<const FrameRecord*, BodyId> ways;
    const auto goes = [&](auto frame) { return std::find(ending.begin(), ending.end(), frame->id) != ending.end(); };
    rules::join_twists(GraphView(scene_), set, ways, &moving, &parent, pose, type, goes, [&](auto frame) {
        if (keep) throw refusals::joined_twice(frame->name->text, {}, {});  // the difference removes it in its turn
        ending.push_back(frame->id);
    });
    return ending;
}

void SceneEdit::attach(std::string_view root, std::string_view parent, const Pose& pose, Joint joint) {
    const FrameRecord& moving = record(root);
    const FrameRecord& target = record(parent);
    const bool joins = rules::check_attachment(GraphView(scene_), &moving, &target, joint.type);
    const FrameId id = moving.id, new_parent = target.id;
    const std::vector<FrameId> said = joined_twists(moving, target, pose, joint.type, {}, false);
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

void SceneEdit::move(const FrameRecord& moving, const FrameRecord& parent, const Pose& pose, bool keep_twists) {
    const GraphView view(scene_);
    const rules::Move plan = rules::checked_move(view, &moving, &parent, pose);
    if (plan.nothing) return;
    const FrameId id = moving.id, new_parent = parent.id;
    std::vector<FrameId> cut;  // twist edges that end
    if (plan.cuts && scene_.twist_count() > 0) {
        if (!keep_twists)
            rules::each_twist_across(view, &moving, [&](auto frame, BodyId) { cut.push_back(frame->id); });
        cut = joined_twists(moving, parent, pose, moving.joint_type, std::move(cut), keep_twists);
    }
    const auto done = [&] {
        if (plan.joins) join_parts(moving);
        for (const FrameId frame : cut) drop_twist(frame);
        FrameRecord& changed = own(id);
        if (changed.parent != new_parent) end_stamps(changed);
        changed.parent = new_parent;
        changed.pose = pose;
        note_change(id, false);
    };
    if (cut.empty()) return done();
    all_or_nothing(done);
}

void SceneEdit::reparent(std::string_view frame, std::string_view parent, const Pose& pose,
                         Ref<const EdgeNoise> noise) {
    const FrameRecord& moving = record(frame);  // of two that are not there, the first is named
    const FrameId id = moving.id;
    move(moving, record(parent), pose);
    state_motion(id);
    put_noise(id, std::move(noise));
}

// An edge with a joint, or one that a grasp makes, has a motion.
void SceneEdit::state_motion(FrameId frame) {
    if (!record(frame).is_stated) own(frame).is_stated = true;
}

void SceneEdit::reparent_keeping_pose(std::string_view frame, std::string_view parent, const double* q,
                                      const Ref<const EdgeNoise>& slip) {
    const FrameRecord& moving = record(frame);
    const FrameRecord& target = record(parent);
    const FrameId id = moving.id;
    if (moving.parent == target.id) {
        if (slip) add_noise(frame, *slip);
        return state_motion(id);
    }
    if (scene_.is_ancestor(moving.id, target.id)) return move(moving, target, moving.pose);  // which refuses
    Pose parent_from_frame = scene_.pose(frame, parent, q);
    if (moving.joint)  // the new edge must give this pose at the joint's present value
        parent_from_frame =
            parent_from_frame *
            joint_motion(moving.joint_type, moving.joint->axis, scene_.joint_value(moving, q)).inverse();
    if (!scene_.has_noise() && !slip) {
        move(moving, target, parent_from_frame);
        return state_motion(id);
    }
    NoiseSum error = path_noise(scene_, target, moving, q);
    if (slip) error.add(*slip, [](const Vector6& column) { return column; });
    Ref<const EdgeNoise> noise = error.edge();
    move(moving, target, parent_from_frame);
    state_motion(id);
    put_noise(id, std::move(noise));
}

void SceneEdit::set_pose(std::string_view frame, const Pose& parent_from_frame) {
    const FrameRecord& moving = record(frame);
    if (moving.parent == no_frame) throw refusals::root_without(frame, "pose");
    return move(moving, record(moving.parent), parent_from_frame);
}

static bool has_joint(const FrameRecord& frame, const Joint& joint) {
    return joint.type == frame.joint_type && joint.is_stated == frame.is_stated &&
           (!frame.joint || *frame.joint == joint);
}

static bool moves_as(const FrameRecord& frame, JointType type, const Joint* joint) {
    return type == frame.joint_type && (!joint || joint->moves_like(*frame.joint));
}

// --- joints ----------------------------------------------------------------------------------------------------------

SceneEdit::LeaderRanges SceneEdit::leader_ranges() const {
    LeaderRanges ranges;
    const GraphView view(scene_);
    view.each_joint([&](const FrameRecord* frame) {
        const auto [rule, leader] = rules::followed(view, frame);
        if (leader == frame) return;
        const auto at = ranges.try_emplace(leader->id, rules::own_range(view, leader)).first;
        at->second.narrow(rules::own_range(view, frame), rule.multiplier, rule.offset,
                          rules::mimics_above(view, frame));
    });
    return ranges;
}

// A joint that comes to follow another only narrows the range of that, so that many of them take no time; after any
// other change all ranges are computed anew.
void SceneEdit::check_limits(const Joint& joint, FrameId id, const FrameRecord* leader) {
    if (!leader && !scene_.has_followers()) return;
    const FrameRecord* frame = scene_.find(id);
    const rules::RejointedView view(GraphView(scene_), frame, id, leader, joint, joint.name);
    if (!ranges_) ranges_ = leader_ranges();
    const auto followed = ranges_->find(id);
    const bool leads = followed != ranges_->end();
    const bool follows = frame && frame->joint && !frame->joint->mimic.empty();
    if (!leader && !follows && !leads) return;
    const LeaderRange alone = rules::own_range(view, frame);
    const bool same_limits = frame && frame->joint && rules::own_range(GraphView(scene_), frame) == alone;
    if (!leader || follows || (leads && !same_limits)) {
        rules::check_leader_range(view);
        ranges_.reset();
        return;
    }
    const LeaderRange own = leads ? followed->second : alone;
    const auto [rule, end] = rules::followed(view, frame);
    const auto at = ranges_->find(end->id);
    LeaderRange range = at != ranges_->end() ? at->second : rules::own_range(view, end);
    range.narrow(own, rule.multiplier, rule.offset, rules::mimics_above(view, frame));
    rules::require_values(view, end, range);
    ranges_->erase(id);
    (*ranges_)[end->id] = range;
}

// The joint as it will be in the scene; null for a type without a value. Throws when it may not be there.
Ref<const Joint> SceneEdit::checked_joint(Joint joint, FrameId frame, std::string_view frame_name) {
    if (!is_actuated(joint.type)) return nullptr;
    if (joint.name.empty()) joint.name = frame_name;
    joint.check();
    if (const FrameId* holder = scene_.joint_names_.find(std::string_view(joint.name)); holder && *holder != frame)
        throw duplicate("joint", joint.name);
    if (!joint.mimic.empty()) {
        const FrameId* leader = scene_.joint_names_.find(std::string_view(joint.mimic));
        rules::check_leader(GraphView(scene_), joint.name, joint.mimic, scene_.find(frame),
                            leader ? &record(*leader) : nullptr);
        check_limits(joint, frame, &record(*leader));
    } else {
        check_limits(joint, frame, nullptr);
    }
    return Ref<const Joint>(new Joint(std::move(joint)));
}

void SceneEdit::put_joint(FrameId frame, const Ref<const Joint>& joint) {
    scene_.joint_names_.assign(make_ref<const Name>(joint->name), frame);
    if (joint->mimic.empty()) scene_.joints_.assign(frame, joint);
    else scene_.joints_.remove(frame);
}

void SceneEdit::require_no_followers(const std::vector<FrameId>& leaving) const {
    const auto has_joint = [&](FrameId id) { return static_cast<bool>(record(id).joint); };
    if (!scene_.has_followers() || std::none_of(leaving.begin(), leaving.end(), has_joint)) return;
    scene_.joint_names_.for_each([&](const Ref<const Name>& follower, FrameId id) {
        const std::string& leader = record(id).joint->mimic;
        if (leader.empty() || std::binary_search(leaving.begin(), leaving.end(), id)) return;
        if (std::binary_search(leaving.begin(), leaving.end(), scene_.joint_frame(leader)))
            throw refusals::is_followed(leader, follower->text);
    });
}

void SceneEdit::drop_joint(const FrameRecord& leaving) {
    if (!leaving.joint) return;
    ranges_.reset();
    scene_.joint_names_.remove(std::string_view(leaving.joint->name));
    scene_.joints_.remove(leaving.id);
}

void SceneEdit::set_joint(std::string_view frame, Joint joint) {
    const FrameRecord& old = record(frame);
    if (old.parent == no_frame) throw refusals::root_without(frame, "joint");
    if (joint.type != JointType::fixed && record(old.parent).body == old.body) throw refusals::joint_inside_body(frame);
    if (joint.name.empty()) joint.name = old.joint ? old.joint->name : old.name->text;
    joint.check();
    if (record(old.parent).body == old.body) joint.is_stated = true;  // frames of one body do not move
    if (has_joint(old, joint)) return;
    const bool leaves = old.joint && (!is_actuated(joint.type) || joint.name != old.joint->name);
    if (leaves) require_no_followers({old.id});
    const FrameId id = old.id;
    const JointType type = joint.type;
    const bool is_stated = joint.is_stated;
    const Ref<const Joint> checked = checked_joint(std::move(joint), id, old.name->text);
    const bool same_motion = moves_as(old, type, checked.get());
    if (leaves) drop_joint(old);
    FrameRecord& changed = own(id);
    changed.joint_type = type;
    changed.is_stated = is_stated;
    changed.joint = checked;
    if (checked) put_joint(id, checked);
    if (!same_motion) note_change(id, true);
}

void SceneEdit::set_inertia(std::string_view frame, const std::optional<Inertia>& inertia) {
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

// --- another root for a tree: the edges on the way up from a frame are turned round, and nothing moves ---------------

namespace {

// The edge above a frame, as it is kept below that frame once it is turned round.
struct TurnedEdge {
    FrameId child, parent;
    JointType type;
    bool is_stated;
    Pose pose;  // of the old parent relative to the old child
    Ref<const EdgeNoise> noise;
    Ref<const StampedPoses> stamps;
};

TurnedEdge turned(const FrameRecord& edge) {
    TurnedEdge made{edge.id, edge.parent, edge.joint_type, edge.is_stated, edge.pose.inverse(), nullptr, nullptr};
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
            change_body(record(old_top).body, [from = old_top, to = new_top](BodyRecord& changed) {
                std::replace(changed.tops.begin(), changed.tops.end(), from, to);
            });
        }
        for (const TurnedEdge& edge : edges) put_noise(edge.child, nullptr);
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
            if (edge.stamps) change_details(changed, [&](FrameDetails& details) { details.stamps = edge.stamps; });
            note_change(edge.parent, false);
            put_noise(edge.parent, edge.noise);
        }
    });
}

}  // namespace tmkit
