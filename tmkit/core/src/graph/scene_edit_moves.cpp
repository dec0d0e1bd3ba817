#include <algorithm>

#include "tmkit/scene_edit.hpp"
#include "tmkit/scene_errors.hpp"
#include "tmkit/scene_gaussian.hpp"

namespace tmkit {

// --- bodies ----------------------------------------------------------------------------------------------------------

// Throws when a new frame may not sit on the body it asks for.
void SceneEdit::check_entry(const FrameSpecification& specification, const FrameRecord* parent) const {
    const std::string& name = specification.body.empty() ? specification.name : specification.body;
    const BodyId* existing = scene_.body_names_.find(std::string_view(name));
    if (!existing) return;
    if (specification.body.empty()) throw duplicate("body", name);
    if (parent && *existing == parent->body) {
        if (specification.joint.type != JointType::fixed)
            throw refusals::new_edge_inside_body(specification.name, parent->name->text, name);
        return;
    }
    for (FrameId top : body(*existing).tops)
        if (parent && scene_.root_of(top) == scene_.root_of(parent->id))
            throw refusals::body_in_this_tree(specification.name, name, record(top).name->text);
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

void SceneEdit::check_bodies_on_move(const FrameRecord& moving, const FrameRecord& parent) const {
    const FrameId to = scene_.root_of(parent.id);
    if (scene_.root_of(moving.id) == to) return;  // the bodies of one tree stay joined as they were
    for (const FrameId id : scene_.subtree(moving.id)) {
        const BodyId on = record(id).body;
        if (on == moving.body && parent.body == moving.body) continue;  // joined by the new edge itself
        const BodyRecord& carried = body(on);
        for (FrameId top : carried.tops)
            if (scene_.root_of(top) == to)
                throw refusals::two_paths(moving.name->text, parent.name->text, carried.name->text,
                                          record(top).name->text);
    }
}

// Whether the topmost frame of a body in its tree comes to hang off that body in another tree, which a fixed edge may
// do.
bool SceneEdit::joins_parts(const FrameRecord& moving, const FrameRecord& parent) const {
    if (parent.body != moving.body || record(moving.parent).body == moving.body) return false;
    if (moving.joint_type != JointType::fixed) throw refusals::joins_parts_by_joint(moving.name->text);
    return true;
}

// The topmost frame of a body in one tree comes to hang off the same body in another tree: one top less.
void SceneEdit::join_parts(const FrameRecord& moving) {
    auto changed = Ref<BodyRecord>(new BodyRecord(body(moving.body)));
    std::erase(changed->tops, moving.id);
    scene_.bodies_.assign(moving.body, Ref<const BodyRecord>(changed));
}

// Whether the moving frame hangs off its own body; then it must go on to do so, where it is.
bool SceneEdit::stays_on_body(const FrameRecord& moving, const FrameRecord& parent, const Pose& pose) const {
    if (record(moving.parent).body != moving.body) return false;
    if (parent.body != moving.body) throw refusals::leaves_body(moving.name->text, body(moving.body).name->text);
    const Pose before =
        scene_.pose(moving.name->text, parent.name->text, nullptr);  // along fixed edges of the body only
    const auto [metres, radians] = before.distance(pose);
    if (metres > refusals::same_pose_tolerance || radians > refusals::same_pose_tolerance)
        throw refusals::moves_on_body(moving.name->text, parent.name->text);
    return true;
}

// --- moves -----------------------------------------------------------------------------------------------------------

void SceneEdit::attach(std::string_view root, std::string_view parent, const Pose& pose, Joint joint) {
    const FrameRecord& moving = record(root);
    const FrameRecord& target = record(parent);
    if (moving.parent != no_frame) throw refusals::has_parent(root, record(moving.parent).name->text);
    if (scene_.is_ancestor(moving.id, target.id)) throw refusals::cycle(root, parent);
    check_bodies_on_move(moving, target);
    const bool joins = target.body == moving.body;
    if (joins && joint.type != JointType::fixed) throw refusals::joins_parts_by_joint(root);
    const FrameId id = moving.id, new_parent = target.id;
    check_twists_joined(id, new_parent, {});
    all_or_nothing([&] {
        if (joins) join_parts(moving);
        FrameRecord& changed = own(id);
        changed.parent = new_parent;
        changed.pose = pose;
        note_change(id, false);
        if (joint.type != JointType::fixed) set_joint(root, std::move(joint));
    });
}

// The twist edges that end with a move; throws where those that stay would break their rules.
std::vector<FrameId> SceneEdit::twists_cut(FrameId moving, FrameId parent, bool keep_twists) const {
    std::vector<FrameId> cut;
    if (scene_.twists_.empty()) return cut;
    if (!keep_twists) cut = scene_.twists_across(moving);
    check_twists_joined(moving, parent, cut);
    return cut;
}

void SceneEdit::move(const FrameRecord& moving, const FrameRecord& parent, const Pose& pose, bool keep_twists) {
    if (moving.parent == no_frame) throw refusals::root_without(moving.name->text, "parent to change");
    if (moving.parent == parent.id && moving.pose == pose) return;
    if (scene_.is_ancestor(moving.id, parent.id)) throw refusals::cycle(moving.name->text, parent.name->text);
    require_in_range(pose, "the pose of a frame");
    check_bodies_on_move(moving, parent);
    const bool stays = stays_on_body(moving, parent, pose);
    if (stays && moving.parent == parent.id) return;
    const FrameId id = moving.id, new_parent = parent.id;
    const bool joins = joins_parts(moving, parent);
    std::vector<FrameId> cut;
    if (moving.parent != new_parent && !stays) cut = twists_cut(id, new_parent, keep_twists);
    const auto done = [&] {
        if (joins) join_parts(moving);
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
