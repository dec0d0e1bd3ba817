#include <algorithm>

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
        if (parent != no_frame && record(parent).body == id) return id;
        const Ref<BodyRecord> changed(new BodyRecord(body(id)));
        changed->tops.push_back(frame);
        scene_.bodies_.assign(id, Ref<const BodyRecord>(changed));
        return id;
    }
    const auto made = make_ref<BodyRecord>();
    made->name = make_ref<const Name>(name);
    made->tops = {frame};
    const BodyId id = scene_.next_body_++;
    scene_.body_names_.assign(made->name, id);
    scene_.bodies_.assign(id, Ref<const BodyRecord>(made));
    return id;
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
    auto changed = Ref<BodyRecord>(new BodyRecord(old));
    if (at != old.tops.end()) changed->tops.erase(changed->tops.begin() + (at - old.tops.begin()));
    if (carries_inertia) {
        // The inertia stays with the body: say it again in the axes of the frame above, if that is on the same body.
        if (at == old.tops.end()) {
            const FrameRecord& above = record(leaving.parent);
            changed->inertia = *scene_.inertia(above.name->text);
            changed->inertia_frame = above.id;
        } else {
            changed->inertia = Inertia{};  // no pose to the frames in other trees is known, so it cannot be theirs
            changed->inertia_frame = no_frame;
        }
    }
    scene_.bodies_.assign(leaving.body, Ref<const BodyRecord>(changed));
}

// The topmost frame of a body in one tree comes to hang off the same body in another tree: one top less.
void SceneEdit::join_parts(const FrameRecord& moving) {
    auto changed = Ref<BodyRecord>(new BodyRecord(body(moving.body)));
    std::erase(changed->tops, moving.id);
    scene_.bodies_.assign(moving.body, Ref<const BodyRecord>(changed));
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
        if (joint.type != JointType::fixed) set_joint(root, std::move(joint));
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
    put_noise(id, std::move(noise));
}

void SceneEdit::reparent_keeping_pose(std::string_view frame, std::string_view parent, const double* q,
                                      const Ref<const EdgeNoise>& slip) {
    const FrameRecord& moving = record(frame);
    const FrameRecord& target = record(parent);
    const FrameId id = moving.id;
    if (moving.parent == target.id) {
        if (slip) add_noise(frame, *slip);
        return;
    }
    if (scene_.is_ancestor(moving.id, target.id)) return move(moving, target, moving.pose);  // which refuses
    Pose parent_from_frame = scene_.pose(frame, parent, q);
    if (moving.joint)  // the new edge must give this pose at the joint's present value
        parent_from_frame =
            parent_from_frame *
            joint_motion(moving.joint_type, moving.joint->axis, scene_.joint_value(moving, q)).inverse();
    if (!scene_.has_noise() && !slip) return move(moving, target, parent_from_frame);
    NoiseSum error = path_noise(scene_, target, moving, q);
    if (slip) error.add(*slip, [](const Vector6& column) { return column; });
    Ref<const EdgeNoise> noise = error.edge();
    move(moving, target, parent_from_frame);
    put_noise(id, std::move(noise));
}

void SceneEdit::set_pose(std::string_view frame, const Pose& parent_from_frame) {
    const FrameRecord& moving = record(frame);
    if (moving.parent == no_frame) throw refusals::root_without(frame, "pose");
    return move(moving, record(moving.parent), parent_from_frame);
}

}  // namespace tmkit
