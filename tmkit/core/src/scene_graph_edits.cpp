#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "tmkit/scene_graph.hpp"

namespace tmkit {
namespace {

std::string quoted(std::string_view name) { return "'" + std::string(name) + "'"; }

Error duplicate(const std::string& kind, std::string_view name) {
    return Error(ErrorKind::duplicate_name, "a " + kind + " named " + quoted(name) + " is already in the scene",
                 {{"kind", kind}, {"name", std::string(name)}});
}

Ref<FrameRecord> copy_of(const FrameRecord& record) { return Ref<FrameRecord>(new FrameRecord(record)); }

Ref<const FrameDetails> details_or_null(FrameDetails details) {
    if (details.shapes.empty() && details.classes.empty()) return nullptr;
    return Ref<const FrameDetails>(new FrameDetails(std::move(details)));
}

// Poses this near are one pose said twice: rounding of a product, not a move.
constexpr double same_pose_tolerance = 1e-9;

}  // namespace

void Inertia::check() const {
    if (!(mass > 0.0) || !std::isfinite(mass))
        throw Error(ErrorKind::scene, "mass must be positive and finite, not " + std::to_string(mass) +
                                          "; leave the inertia out for a body without mass");
    for (double value : center)
        if (!std::isfinite(value)) throw Error(ErrorKind::scene, "centre of mass must be finite");
    const auto& m = matrix;
    const double trace = m[0] + m[4] + m[8], slack = 1e-9 * std::abs(trace);
    for (double value : m)
        if (!std::isfinite(value)) throw Error(ErrorKind::scene, "inertia matrix must be finite");
    if (std::abs(m[1] - m[3]) > slack || std::abs(m[2] - m[6]) > slack || std::abs(m[5] - m[7]) > slack)
        throw Error(ErrorKind::scene, "inertia matrix must be symmetric");
    // Sylvester's criterion with slack: all principal minors, since semi-definite is enough.
    const double xy = m[0] * m[4] - m[1] * m[1], xz = m[0] * m[8] - m[2] * m[2], yz = m[4] * m[8] - m[5] * m[5];
    const double determinant = m[0] * yz - m[1] * (m[1] * m[8] - m[5] * m[2]) + m[2] * (m[1] * m[5] - m[4] * m[2]);
    const double slack2 = slack * std::abs(trace), slack3 = slack2 * std::abs(trace);
    if (m[0] < -slack || m[4] < -slack || m[8] < -slack || xy < -slack2 || xz < -slack2 || yz < -slack2 ||
        determinant < -slack3)
        throw Error(ErrorKind::scene, "inertia matrix must be positive semi-definite");
}

SceneGraph SceneGraph::edited() const {
    SceneGraph next(*this);
    if (const Layout* layout = next.layout_.exchange(nullptr); layout && layout->release()) delete layout;
    return next;
}

void SceneGraph::put(Ref<FrameRecord> record) {
    const FrameId id = record->id;
    frames_ = frames_.insert(id, Ref<const FrameRecord>(record));
}

void SceneGraph::require_new_frame_name(std::string_view name) const {
    if (name.empty()) throw Error(ErrorKind::scene, "a frame needs a name that is not empty");
    if (names_.find(name)) throw duplicate("frame", name);
}

SceneGraph SceneGraph::add_root(std::string_view name) const {
    FrameSpecification specification;
    specification.name = name;
    return add(specification, nullptr);
}

SceneGraph SceneGraph::add_frame(const FrameSpecification& specification) const {
    return add(specification, &record(specification.parent));
}

SceneGraph SceneGraph::add(const FrameSpecification& specification, const FrameRecord* parent) const {
    require_new_frame_name(specification.name);
    if (!parent && (specification.joint.type != JointType::fixed || specification.pose != Pose{}))
        throw Error(ErrorKind::scene, "frame " + quoted(specification.name) + " is a root, which has no joint and no pose");
    SceneGraph next = edited();
    auto record = make_ref<FrameRecord>();
    record->id = next.next_frame_++;
    record->name = make_ref<const Name>(specification.name);
    record->body = next.join_body(specification, record->id, parent);
    record->details = details_or_null({{}, specification.shapes, specification.classes});
    if (parent) {
        record->parent = parent->id;
        record->pose = specification.pose;
        next.add_joint(*record, specification.joint);
    }
    next.names_ = next.names_.insert(record->name, record->id);
    next.put(record);
    return next;
}

BodyId SceneGraph::join_body(const FrameSpecification& specification, FrameId frame, const FrameRecord* parent) {
    const std::string& name = specification.body.empty() ? specification.name : specification.body;
    const BodyId* existing = body_names_.find(name);
    if (!existing) {
        auto body = make_ref<BodyRecord>();
        body->name = make_ref<const Name>(name);
        body->tops = {frame};
        const BodyId id = next_body_++;
        body_names_ = body_names_.insert(body->name, id);
        bodies_ = bodies_.insert(id, Ref<const BodyRecord>(body));
        return id;
    }
    if (specification.body.empty()) throw duplicate("body", name);
    if (parent && *existing == parent->body) {
        if (specification.joint.type != JointType::fixed)
            throw Error(ErrorKind::scene, "frame " + quoted(specification.name) + " and its parent " +
                                              quoted(parent->name->text) + " are on one body " + quoted(name) +
                                              ", so the edge between them must be fixed");
        return *existing;
    }
    for (FrameId top : body(*existing).tops)
        if (parent && root_of(top) == root_of(parent->id))
            throw Error(ErrorKind::scene, "body " + quoted(name) + " is already in this tree, with frame " +
                                              quoted(record(top).name->text) + "; put frame " +
                                              quoted(specification.name) +
                                              " under a frame of that body, or on another body");
    auto changed = Ref<BodyRecord>(new BodyRecord(body(*existing)));
    changed->tops.push_back(frame);
    bodies_ = bodies_.insert(*existing, Ref<const BodyRecord>(changed));
    return *existing;
}

void SceneGraph::leave_body(const FrameRecord& leaving) {
    const BodyRecord& old = body(leaving.body);
    const auto at = std::find(old.tops.begin(), old.tops.end(), leaving.id);
    const bool carries_inertia = old.inertia_frame == leaving.id;
    if (at == old.tops.end() && !carries_inertia) return;
    if (at != old.tops.end() && old.tops.size() == 1) {
        body_names_ = body_names_.erase(std::string_view(old.name->text));
        bodies_ = bodies_.erase(leaving.body);
        return;
    }
    auto changed = Ref<BodyRecord>(new BodyRecord(old));
    if (at != old.tops.end()) changed->tops.erase(changed->tops.begin() + (at - old.tops.begin()));
    if (carries_inertia) {
        // The inertia stays with the body: say it again in the axes of the frame above, if that is on the same body.
        if (at == old.tops.end()) {
            const FrameRecord& above = record(leaving.parent);
            changed->inertia = *inertia(above.name->text);
            changed->inertia_frame = above.id;
        } else {
            changed->inertia = Inertia{};  // no pose to the frames in other trees is known, so it cannot be theirs
            changed->inertia_frame = no_frame;
        }
    }
    bodies_ = bodies_.insert(leaving.body, Ref<const BodyRecord>(changed));
}

void SceneGraph::check_leader(const Joint& joint) const {
    if (joint.mimic.empty()) return;
    const FrameId* leader = joint_names_.find(joint.mimic);
    if (joint.mimic == joint.name)
        throw Error(ErrorKind::cycle, "joint " + quoted(joint.name) + " cannot mimic itself");
    if (!leader) throw unknown_name("joint", joint.mimic, joint_names());
    for (const Joint* at = record(*leader).joint.get(); at && !at->mimic.empty();) {
        if (at->mimic == joint.name)
            throw Error(ErrorKind::cycle, "joint " + quoted(joint.name) + " mimics " + quoted(joint.mimic) +
                                              ", which mimics it in turn");
        const FrameId* next = joint_names_.find(at->mimic);
        at = next ? record(*next).joint.get() : nullptr;
    }
}

void SceneGraph::add_joint(FrameRecord& record, Joint joint) {
    record.joint_type = joint.type;
    if (!is_actuated(joint.type)) {
        record.joint = nullptr;
        return;
    }
    if (joint.name.empty()) joint.name = record.name->text;
    joint.check();
    if (const FrameId* holder = joint_names_.find(joint.name); holder && *holder != record.id)
        throw duplicate("joint", joint.name);
    check_leader(joint);
    const bool follows = !joint.mimic.empty();
    const auto name = make_ref<const Name>(joint.name);
    record.joint = Ref<const Joint>(new Joint(std::move(joint)));
    joint_names_ = joint_names_.insert(name, record.id);
    joints_ = follows ? joints_.erase(record.id) : joints_.insert(record.id, record.joint);
}

void SceneGraph::require_no_followers(const std::vector<FrameId>& leaving) const {
    joint_names_.for_each([&](const Ref<const Name>& follower, FrameId id) {
        const std::string& leader = record(id).joint->mimic;
        if (leader.empty() || std::binary_search(leaving.begin(), leaving.end(), id)) return;
        if (std::binary_search(leaving.begin(), leaving.end(), joint_frame(leader)))
            throw Error(ErrorKind::scene, "joint " + quoted(leader) + " cannot go while joint " + quoted(follower->text) +
                                              " mimics it");
    });
}

void SceneGraph::drop_joint(const FrameRecord& leaving) {
    if (!leaving.joint) return;
    joint_names_ = joint_names_.erase(std::string_view(leaving.joint->name));
    joints_ = joints_.erase(leaving.id);
}

SceneGraph SceneGraph::with_id(const FrameSpecification& specification, FrameId id) const {
    SceneGraph start = edited();
    start.next_frame_ = id;
    return specification.parent.empty() ? start.add(specification, nullptr) : start.add_frame(specification);
}

SceneGraph SceneGraph::from_frames(const std::vector<FrameSpecification>& frames) {
    std::unordered_map<std::string_view, std::size_t> position;
    for (std::size_t i = 0; i < frames.size(); ++i)
        if (!position.emplace(frames[i].name, i).second) throw duplicate("frame", frames[i].name);
    SceneGraph scene;
    std::vector<char> done(frames.size(), 0);
    std::vector<std::size_t> path;  // a frame and the ancestors that wait to go in before it
    for (std::size_t first = 0; first < frames.size(); ++first) {
        for (path.assign(1, first); !path.empty();) {
            const std::size_t at = path.back();
            const auto parent = position.find(frames[at].parent);
            if (!done[at] && parent != position.end() && !done[parent->second]) {
                if (path.size() > frames.size())
                    throw Error(ErrorKind::cycle, "frame " + quoted(frames[at].name) + " is its own ancestor",
                                {{"frame", frames[at].name}, {"parent", frames[at].parent}});
                path.push_back(parent->second);
                continue;
            }
            if (!done[at]) {
                FrameSpecification specification = frames[at];
                specification.joint.mimic.clear();  // leaders may come later: followed up below
                scene = scene.with_id(specification, static_cast<FrameId>(at + 1));
                done[at] = 1;
            }
            path.pop_back();
        }
    }
    scene.next_frame_ = static_cast<FrameId>(frames.size() + 1);
    for (const FrameSpecification& frame : frames)
        if (!frame.joint.mimic.empty()) scene = scene.set_joint(frame.name, frame.joint);
    for (const FrameSpecification& frame : frames)
        if (frame.inertia) {
            const BodyRecord& body = scene.body(scene.record(frame.name).body);
            if (body.inertia_frame != no_frame)
                throw Error(ErrorKind::scene, "body " + quoted(body.name->text) + " has its inertia given twice, on frames " +
                                                  quoted(scene.record(body.inertia_frame).name->text) + " and " +
                                                  quoted(frame.name));
            scene = scene.set_inertia(frame.name, frame.inertia);
        }
    return scene;
}

SceneGraph SceneGraph::remove_frame(std::string_view name, bool with_subtree) const {
    const FrameRecord& top = record(name);
    const Layout& flat = layout();
    std::vector<FrameId> leaving;
    for (std::int32_t index : flat.subtree(flat.index_of(top.id))) leaving.push_back(flat.ids[index]);
    if (!with_subtree && leaving.size() > 1)
        throw Error(ErrorKind::scene, "frame " + quoted(name) + " has children, the first is " +
                                          quoted(record(leaving[1]).name->text) +
                                          "; remove them first or ask for the subtree");
    std::vector<FrameId> gone = leaving;
    std::sort(gone.begin(), gone.end());
    require_no_followers(gone);
    SceneGraph next = edited();
    for (auto at = leaving.rbegin(); at != leaving.rend(); ++at) {  // children before parents
        const FrameRecord& frame = record(*at);
        next.drop_joint(frame);
        next.leave_body(frame);
        next.names_ = next.names_.erase(std::string_view(frame.name->text));
        next.frames_ = next.frames_.erase(*at);
    }
    const auto goes = [&gone](FrameId id) { return std::binary_search(gone.begin(), gone.end(), id); };
    allowed_.for_each([&](const Pair& pair, const Ref<const Name>&) {
        if (goes(pair.first) || goes(pair.second)) next.allowed_ = next.allowed_.erase(pair);
    });
    return next;
}

SceneGraph SceneGraph::rename_frame(std::string_view name, std::string_view new_name) const {
    const FrameRecord& old = record(name);
    if (name == new_name) return *this;
    require_new_frame_name(new_name);
    SceneGraph next = edited();
    auto changed = copy_of(old);
    changed->name = make_ref<const Name>(new_name);
    next.names_ = next.names_.erase(name).insert(changed->name, old.id);
    next.put(changed);
    return next;
}

void SceneGraph::check_bodies_on_move(const FrameRecord& moving, const FrameRecord& parent) const {
    const FrameId to = root_of(parent.id);
    if (root_of(moving.id) == to) return;  // the bodies of one tree stay joined as they were
    const Layout& flat = layout();
    for (std::int32_t index : flat.subtree(flat.index_of(moving.id))) {
        if (flat.body[index] == moving.body && parent.body == moving.body) continue;  // joined by the new edge itself
        const BodyRecord& carried = body(flat.body[index]);
        for (FrameId top : carried.tops)
            if (root_of(top) == to)
                throw Error(ErrorKind::scene, "moving frame " + quoted(moving.name->text) + " under " +
                                                  quoted(parent.name->text) + " would give body " +
                                                  quoted(carried.name->text) +
                                                  " two paths: that tree already has its frame " +
                                                  quoted(record(top).name->text));
    }
}

// The topmost frame of a body in one tree comes to hang off the same body in another tree: one top less.
void SceneGraph::join_parts(const FrameRecord& moving) {
    if (moving.joint_type != JointType::fixed)
        throw Error(ErrorKind::scene, "frame " + quoted(moving.name->text) + " and its new parent are on one body, so the "
                                                                             "edge between them must be fixed");
    auto changed = Ref<BodyRecord>(new BodyRecord(body(moving.body)));
    std::erase(changed->tops, moving.id);
    bodies_ = bodies_.insert(moving.body, Ref<const BodyRecord>(changed));
}

// Whether the moving frame hangs off its own body; then it must go on to do so, where it is.
bool SceneGraph::stays_on_body(const FrameRecord& moving, const FrameRecord& parent, const Pose& pose) const {
    if (record(moving.parent).body != moving.body) return false;
    if (parent.body != moving.body)
        throw Error(ErrorKind::scene, "frame " + quoted(moving.name->text) + " is fixed on body " +
                                          quoted(body(moving.body).name->text) +
                                          " and cannot leave it; reparent the topmost frame of the body");
    const Pose before = this->pose(moving.name->text, parent.name->text, nullptr);  // along fixed edges of the body only
    const auto [metres, radians] = before.distance(pose);
    if (metres > same_pose_tolerance || radians > same_pose_tolerance)
        throw Error(ErrorKind::scene, "frame " + quoted(moving.name->text) + " and " + quoted(parent.name->text) +
                                          " are on one body, so the pose between them cannot change");
    return true;
}

SceneGraph SceneGraph::moved_to(const FrameRecord& moving, const FrameRecord& parent, const Pose& pose) const {
    if (moving.parent == no_frame)
        throw Error(ErrorKind::scene, "frame " + quoted(moving.name->text) + " is a root, which has no parent to change");
    if (moving.parent == parent.id && moving.pose == pose) return *this;
    if (is_ancestor(moving.id, parent.id))
        throw Error(ErrorKind::cycle, "frame " + quoted(moving.name->text) + " cannot hang off " +
                                          quoted(parent.name->text) + ", which is itself or its descendant",
                    {{"frame", moving.name->text}, {"parent", parent.name->text}});
    check_bodies_on_move(moving, parent);
    if (stays_on_body(moving, parent, pose) && moving.parent == parent.id) return *this;
    SceneGraph next = edited();
    if (parent.body == moving.body && record(moving.parent).body != moving.body) next.join_parts(moving);
    auto changed = copy_of(moving);
    changed->parent = parent.id;
    changed->pose = pose;
    next.put(changed);
    return next;
}

SceneGraph SceneGraph::reparent(std::string_view frame, std::string_view parent, const Pose& pose) const {
    return moved_to(record(frame), record(parent), pose);
}

SceneGraph SceneGraph::reparent_keeping_pose(std::string_view frame, std::string_view parent, const double* q) const {
    const FrameRecord& moving = record(frame);
    const FrameRecord& target = record(parent);
    if (moving.parent == target.id) return *this;
    if (is_ancestor(moving.id, target.id)) return moved_to(moving, target, moving.pose);  // which refuses
    Pose parent_from_frame = this->pose(frame, parent, q);
    if (moving.joint)  // the new edge must give this pose at the joint's present value
        parent_from_frame =
            parent_from_frame *
            joint_motion(moving.joint_type, moving.joint->axis, joint_value(moving, q)).inverse();
    return moved_to(moving, target, parent_from_frame);
}

SceneGraph SceneGraph::set_pose(std::string_view frame, const Pose& parent_from_frame) const {
    const FrameRecord& moving = record(frame);
    if (moving.parent == no_frame)
        throw Error(ErrorKind::scene, "frame " + quoted(frame) + " is a root, which has no pose");
    return moved_to(moving, record(moving.parent), parent_from_frame);
}

SceneGraph SceneGraph::set_joint(std::string_view frame, Joint joint) const {
    const FrameRecord& old = record(frame);
    if (old.parent == no_frame) throw Error(ErrorKind::scene, "frame " + quoted(frame) + " is a root, which has no joint");
    if (joint.type != JointType::fixed && record(old.parent).body == old.body)
        throw Error(ErrorKind::scene, "frame " + quoted(frame) + " and its parent are on one body, so the edge between "
                                      "them must be fixed");
    if (joint.name.empty()) joint.name = old.joint ? old.joint->name : old.name->text;
    joint.check();
    if (joint.type == old.joint_type && (!old.joint || old.joint->same_content(joint))) return *this;
    SceneGraph next = edited();
    auto changed = copy_of(old);
    if (old.joint && (!is_actuated(joint.type) || joint.name != old.joint->name)) {
        require_no_followers({old.id});
        next.drop_joint(old);
    }
    next.add_joint(*changed, std::move(joint));
    next.put(changed);
    return next;
}

SceneGraph SceneGraph::set_classes(std::string_view frame, std::vector<std::string> classes) const {
    const FrameRecord& old = record(frame);
    FrameDetails details = old.details ? *old.details : FrameDetails{};
    if (details.classes == classes) return *this;
    details.classes = std::move(classes);
    SceneGraph next = edited();
    auto changed = copy_of(old);
    changed->details = details_or_null(std::move(details));
    next.put(changed);
    return next;
}

SceneGraph SceneGraph::set_shapes(std::string_view frame, std::vector<AttachedShape> shapes) const {
    const FrameRecord& old = record(frame);
    FrameDetails details = old.details ? *old.details : FrameDetails{};
    if (details.shapes == shapes) return *this;
    details.shapes = std::move(shapes);
    SceneGraph next = edited();
    auto changed = copy_of(old);
    changed->details = details_or_null(std::move(details));
    next.put(changed);
    return next;
}

SceneGraph SceneGraph::set_inertia(std::string_view frame, const std::optional<Inertia>& inertia) const {
    const FrameRecord& on = record(frame);
    if (inertia) inertia->check();
    const BodyRecord& old = body(on.body);
    const FrameId inertia_frame = inertia ? on.id : no_frame;
    const Inertia value = inertia.value_or(Inertia{});
    if (old.inertia_frame == inertia_frame && old.inertia == value) return *this;
    SceneGraph next = edited();
    auto changed = Ref<BodyRecord>(new BodyRecord(old));
    changed->inertia_frame = inertia_frame;
    changed->inertia = value;
    next.bodies_ = next.bodies_.insert(on.body, Ref<const BodyRecord>(changed));
    return next;
}

SceneGraph SceneGraph::allow_collision(std::string_view a, std::string_view b, std::string_view reason) const {
    const Pair pair = ordered(record(a).id, record(b).id);
    if (pair.first == pair.second)
        throw Error(ErrorKind::scene, "frame " + quoted(a) + " cannot collide with itself; name two frames");
    const Ref<const Name>* old = allowed_.find(pair);
    if (old && (*old)->text == reason) return *this;
    SceneGraph next = edited();
    next.allowed_ = next.allowed_.insert(pair, make_ref<const Name>(reason));
    return next;
}

SceneGraph SceneGraph::forbid_collision(std::string_view a, std::string_view b) const {
    const Pair pair = ordered(record(a).id, record(b).id);
    if (!allowed_.find(pair)) return *this;
    SceneGraph next = edited();
    next.allowed_ = next.allowed_.erase(pair);
    return next;
}

}  // namespace tmkit
