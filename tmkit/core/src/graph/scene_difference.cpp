#include "tmkit/scene_difference.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include "tmkit/scene_edit.hpp"
#include "tmkit/scene_errors.hpp"

namespace tmkit {
namespace {

std::optional<FrameSpecification> specification_of(const SceneGraph& scene, FrameId id) {
    const FrameRecord* frame = scene.find(id);
    if (!frame) return std::nullopt;
    return scene.specification(frame->name->text);
}

bool same(const std::optional<FrameSpecification>& a, const std::optional<FrameSpecification>& b) {
    return a.has_value() == b.has_value() && (!a || a->same_content(*b));
}

std::optional<std::string> text_of(const Name* name) {
    return name ? std::optional<std::string>(name->text) : std::nullopt;
}

PairDifference::Names names_of(const SceneGraph& scene, FrameId first, FrameId second) {
    const FrameRecord *a = scene.find(first), *b = scene.find(second);
    if (!a || !b) return std::nullopt;
    return std::pair{a->name->text, b->name->text};
}

std::optional<GroupSpecification> group_of(const SceneGraph& scene, std::string_view name) {
    return scene.has_group(name) ? std::optional<GroupSpecification>(scene.group(name))
                                 : std::nullopt;
}

FrameSpecification without_noise(FrameSpecification frame) {
    frame.noise = nullptr;
    if (frame.twist) frame.twist->noise = nullptr;
    return frame;
}

bool same_covariance(const EdgeNoise* a, const EdgeNoise* b) {
    return a && b ? a->covariance == b->covariance : a == b;
}

bool same_but_for_sources(const FrameSpecification& a, const FrameSpecification& b) {
    const auto of_twist = [](const FrameSpecification& frame) {
        return frame.twist ? frame.twist->noise.get() : nullptr;
    };
    return same_covariance(a.noise.get(), b.noise.get()) &&
           same_covariance(of_twist(a), of_twist(b)) &&
           without_noise(a).same_content(without_noise(b));
}

// The bodies without frames in one version only, and the frames whose inertia may differ.
void compare_bodies(const SceneGraph& a, const SceneGraph& b, std::set<FrameId>& ids,
                    SceneDifference& changes) {
    std::set<std::string> bodies_before, bodies_after;
    const auto note = [&ids](const BodyRecord* body, std::set<std::string>& without_frames) {
        if (!body) return;
        if (body->inertia_frame != no_frame) ids.insert(body->inertia_frame);
        if (body->tops.empty()) without_frames.insert(body->name->text);
    };
    SceneGraph::for_each_changed_body(a, b, [&](const BodyRecord* before, const BodyRecord* after) {
        note(before, bodies_before);
        note(after, bodies_after);
    });
    std::ranges::set_difference(bodies_before, bodies_after,
                                std::back_inserter(changes.bare_bodies_before));
    std::ranges::set_difference(bodies_after, bodies_before,
                                std::back_inserter(changes.bare_bodies_after));
}

// Return whether a difference may come from ids and noise sources alone, as in a copy from a file.
// Not if a frame, by name, was added, removed or changed, as by edits; nor if all frames have equal
// ids.
bool may_be_of_ids(const SceneDifference& changes) {
    std::set<std::string_view> before, after;
    for (const FrameDifference& frame : changes.frames) {
        if (frame.before) before.insert(frame.before->name);
        if (frame.after) after.insert(frame.after->name);
        if (frame.before && frame.after && frame.before->name == frame.after->name &&
            !same_but_for_sources(*frame.before, *frame.after))
            return false;
    }
    return !changes.frames.empty() && before == after;
}

}  // namespace

SceneDifference SceneDifference::reverse() const {
    SceneDifference turned = *this;
    for (FrameDifference& frame : turned.frames) std::swap(frame.before, frame.after);
    for (PairDifference& pair : turned.pairs) {
        std::swap(pair.before, pair.after);
        std::swap(pair.names_before, pair.names_after);
    }
    for (GroupDifference& group : turned.groups) std::swap(group.before, group.after);
    std::swap(turned.bare_bodies_before, turned.bare_bodies_after);
    return turned;
}

SceneDifference difference(const SceneGraph& a, const SceneGraph& b) {
    SceneDifference changes;
    std::set<FrameId> ids;
    SceneGraph::for_each_changed_frame(
        a, b, [&](FrameId id, const FrameRecord*, const FrameRecord*) { ids.insert(id); });
    compare_bodies(a, b, ids, changes);
    for (FrameId id : ids) {
        FrameDifference frame{id, specification_of(a, id), specification_of(b, id)};
        const FrameRecord *before = a.find(id), *after = b.find(id);
        frame.reparented = before && after && before->parent != after->parent;
        if (frame.reparented || !same(frame.before, frame.after))
            changes.frames.push_back(std::move(frame));
    }
    SceneGraph::for_each_changed_pair(
        a, b, [&](FrameId first, FrameId second, const Name* before, const Name* after) {
        if (before && after && before->text == after->text) return;
        changes.pairs.push_back({names_of(a, first, second), names_of(b, first, second),
                                 text_of(before), text_of(after)});
    });
    // Compared by ids: the same names may be those of other frames.
    SceneGraph::for_each_changed_group(a, b, [&](const std::string& name) {
        changes.groups.push_back({group_of(a, name), group_of(b, name)});
    });
    if (may_be_of_ids(changes) && a.same_content(b)) return {};
    return changes;
}

static std::string conflict(const std::string& frame, const std::string& what) {
    return "the difference does not fit this scene: frame " + quote(frame) + " " + what;
}

// Return whether a name changes to another frame: successive edits, which use names, could then
// change the wrong one.
static bool reuses_names(const SceneDifference& difference) {
    std::set<std::string_view> freed;
    const auto is_renamed = [](const FrameDifference& f) {
        return f.before && f.after && f.before->name != f.after->name;
    };
    for (const FrameDifference& frame : difference.frames)
        if (!frame.after || is_renamed(frame)) freed.insert(frame.before->name);
    return std::any_of(difference.frames.begin(), difference.frames.end(),
                       [&](const FrameDifference& frame) {
        return (!frame.before || is_renamed(frame)) && freed.count(frame.after->name);
    });
}

// The specification of a frame after the changes of a difference.
static FrameSpecification changed(FrameSpecification frame, const FrameSpecification& before,
                                  const FrameSpecification& after) {
    const auto take = [&](auto FrameSpecification::* field) {
        if (!(before.*field == after.*field)) frame.*field = after.*field;
    };
    for (auto field :
         {&FrameSpecification::name, &FrameSpecification::parent, &FrameSpecification::body})
        take(field);
    take(&FrameSpecification::pose);
    take(&FrameSpecification::classes);
    take(&FrameSpecification::shapes);
    take(&FrameSpecification::inertia);
    take(&FrameSpecification::attributes);
    take(&FrameSpecification::twist);
    if (before.parent != after.parent || !same_stamps(before.stamps, after.stamps))
        frame.stamps = after.stamps;
    if (!same_noise(before.noise, after.noise)) frame.noise = after.noise;
    if (before.joint.type != after.joint.type || before.joint != after.joint)
        frame.joint = after.joint;
    return frame;
}

// Add a frame by single edits; its twist needs its reference body.
bool SceneEdit::add_one(const FrameDifference& frame) {
    const FrameSpecification& after = *frame.after;
    if (after.twist && !scene_.has_body(after.twist->reference)) return false;
    FrameSpecification new_frame = after;
    new_frame.inertia.reset();
    new_frame.twist.reset();
    add(new_frame, scene_.find(frame.id) ? scene_.next_frame_ : frame.id);
    if (after.inertia) set_inertia(new_frame.name, after.inertia);
    if (after.twist) set_twist(new_frame.name, *after.twist);
    return true;
}

// Remove the inertia of the body of a frame, if the frame still carries it.
void SceneEdit::take_inertia(const std::string& name) {
    if (const FrameRecord& frame = record(name); scene_.body(frame.body).inertia_frame == frame.id)
        set_inertia(name, std::nullopt);
}

// Change the content of a frame besides its pose and joint.
void SceneEdit::change_contents(const std::string& name, const FrameSpecification& before,
                                const FrameSpecification& after) {
    if (before.classes != after.classes) set_classes(name, after.classes);
    if (before.attributes != after.attributes) set_attributes(name, after.attributes);
    if (!(before.shapes == after.shapes)) set_shapes(name, after.shapes);
    if (before.inertia && !after.inertia) take_inertia(name);
    else if (!(before.inertia == after.inertia)) set_inertia(name, after.inertia);
    if (before.twist && (!after.twist || after.twist->reference != before.twist->reference))
        remove_twist(name);
    if (after.twist && before.twist != after.twist) set_twist(name, *after.twist);
}

bool SceneEdit::change_one(const FrameSpecification& before, const FrameSpecification& after) {
    const std::string& name = scene_.find(before.name) ? before.name : after.name;
    // No single edit does that.
    if (before.body != after.body || before.parent.empty() != after.parent.empty()) return false;
    const bool moves = before.parent != after.parent;
    change_edge(name, before, after);
    change_contents(name, before, after);
    if (!same_noise(record(name).noise, after.noise) &&
        (moves || !same_noise(before.noise, after.noise)))
        set_noise(name, after.noise);
    if (name != after.name) rename_frame(name, after.name);
    return true;
}

// Change joint, parent, pose and stamped poses of a frame.
void SceneEdit::change_edge(const std::string& name, const FrameSpecification& before,
                            const FrameSpecification& after) {
    const bool moves = before.parent != after.parent;
    if (!after.parent.empty()) record(after.parent);
    if (!after.joint.mimic.empty()) scene_.joint_frame(after.joint.mimic);
    if (before.joint.type != after.joint.type || before.joint != after.joint)
        set_joint(name, after.joint);
    if (moves) {  // removed twists are in the differences of their frames
        const FrameId id = record(name).id;
        move(record(id), record(after.parent), after.pose, true);
        store_noise(id, {});
    }
    if (!moves && before.pose != after.pose) set_pose(name, after.pose);
    if (moves || !same_stamps(before.stamps, after.stamps)) set_stamped_poses(name, after.stamps);
}

// Apply the change of one frame by single edits. False if it has to wait for another: a missing
// parent, a name in use, a child to be removed.
bool SceneEdit::apply_one(const FrameDifference& frame) {
    try {
        if (!frame.before) return add_one(frame);
        if (frame.after) return change_one(*frame.before, *frame.after);
        // Removing the frame would pass the inertia on to its parent. If another frame of the body
        // is to carry it, the difference of that frame has it.
        if (frame.before->inertia) take_inertia(frame.before->name);
        remove_frame(frame.before->name, false);
        return true;
    } catch (const Error&) {
        return false;
    }
}

// Apply all frames one by one while any succeeds; the remaining ones at once.
void SceneEdit::apply_frames(const SceneDifference& difference) {
    const SceneGraph start = scene_;
    std::vector<std::size_t> waiting(difference.frames.size());
    const bool singly = !reuses_names(difference);
    for (std::size_t i = 0; i < waiting.size(); ++i) waiting[i] = i;
    for (std::size_t before = waiting.size() + 1;
         singly && !waiting.empty() && waiting.size() < before;) {
        before = waiting.size();
        std::erase_if(waiting, [&](std::size_t i) { return apply_one(difference.frames[i]); });
    }
    if (waiting.empty()) return;
    replace(start);
    rebuild(difference);
}

namespace {

void require_applicable(const SceneGraph& scene, const SceneDifference& difference) {
    const auto frees = [&](const std::string& name) {
        return std::any_of(difference.frames.begin(), difference.frames.end(),
                           [&](const FrameDifference& entry) {
            return entry.before && entry.before->name == name;
        });
    };
    for (const FrameDifference& frame : difference.frames) {
        if (frame.before && !scene.find(frame.before->name))
            throw Error(ErrorKind::scene, conflict(frame.before->name, "is not there"))
                .with({{"frame", frame.before->name}});
        if (!frame.before && scene.find(frame.after->name) && !frees(frame.after->name))
            throw Error(ErrorKind::scene, conflict(frame.after->name, "is already there"))
                .with({{"frame", frame.after->name}});
    }
}

void add_missing_bodies(SceneEdit& edit, const std::vector<std::string>& bodies) {
    for (const std::string& body : bodies)
        if (!edit.scene().has_body(body)) edit.add_body(body);
}

void apply_pairs(SceneEdit& edit, const std::vector<PairDifference>& pairs) {
    for (const PairDifference& pair : pairs) {
        const auto& names = pair.names_after;
        if (pair.after) edit.allow_collision(names->first, names->second, *pair.after);
        else if (names && edit.scene().find(names->first) && edit.scene().find(names->second))
            edit.forbid_collision(names->first, names->second);
    }
}

void apply_groups(SceneEdit& edit, const std::vector<GroupDifference>& groups) {
    for (const GroupDifference& group : groups)  // leaves first: a group may contain a later one
        if (group.after) edit.set_group({group.after->name, {}, {}});
    for (const GroupDifference& group : groups)
        if (group.after) edit.set_group(*group.after);
        else if (edit.scene().has_group(group.before->name)) edit.remove_group(group.before->name);
}

}  // namespace

void SceneEdit::apply(const SceneDifference& difference) {
    require_applicable(scene_, difference);
    all_or_nothing([&] {
        // First, since twists may refer to them.
        add_missing_bodies(*this, difference.bare_bodies_after);
        apply_frames(difference);
        for (const std::string& body :
             difference.bare_bodies_before)  // last, when no twist refers to them
            if (scene_.has_body(body) && scene_.is_bare(body)) remove_body(body);
        apply_pairs(*this, difference.pairs);
        apply_groups(*this, difference.groups);
        // Again, since one is removed with its last frame.
        add_missing_bodies(*this, difference.bare_bodies_after);
    });
}

namespace {

// The names of a scene before and after a change.
struct Renaming {
    std::vector<std::pair<std::string, std::string>> renamed;
    std::vector<std::string> gone;

    explicit Renaming(const SceneDifference& difference) {
        for (const FrameDifference& frame : difference.frames) {
            if (!frame.before) continue;
            if (!frame.after) gone.push_back(frame.before->name);
            else if (frame.before->name != frame.after->name)
                renamed.emplace_back(frame.before->name, frame.after->name);
        }
    }
    std::string now(const std::string& name) const {
        for (const auto& [from, to] : renamed)
            if (from == name) return to;
        return name;
    }
    bool is_gone(const std::string& name) const {
        return std::find(gone.begin(), gone.end(), name) != gone.end();
    }
};

// The frames after the change except new ones, in no order.
NumberedFrames changed_frames(NumberedFrames frames, const SceneDifference& difference,
                              const Renaming& names) {
    NumberedFrames result;
    for (const FrameDifference& frame : difference.frames) {
        if (!frame.before) continue;
        const auto match = std::find_if(frames.begin(), frames.end(), [&](const auto& entry) {
            return entry.second.name == frame.before->name;
        });
        if (frame.after) {
            const bool elsewhere = match->second.parent != frame.before->parent &&
                                   frame.before->parent == frame.after->parent;
            result.emplace_back(match->first, changed(match->second, *frame.before, *frame.after));
            if (elsewhere) result.back().second.parent = names.now(match->second.parent);
        }
        frames.erase(match);
    }
    for (auto& [id, frame] : frames) {
        frame.parent = names.now(frame.parent);
        result.emplace_back(id, std::move(frame));
    }
    return result;
}

}  // namespace

// Rebuild all frames at once from their specifications after the change; their rules are checked as
// for any scene. O(n log n).
void SceneEdit::rebuild(const SceneDifference& difference) {
    const Renaming names(difference);
    NumberedFrames frames;
    scene_.for_each_frame([&](const FrameRecord& frame) {
        frames.emplace_back(frame.id, scene_.specification(frame.name->text));
    });
    NumberedFrames result = changed_frames(std::move(frames), difference, names);
    for (const FrameDifference& frame : difference.frames) {
        if (frame.before) continue;
        const bool is_used = std::any_of(result.begin(), result.end(), [&](const auto& entry) {
            return entry.first == frame.id;
        });
        result.emplace_back(is_used ? scene_.next_frame_++ : frame.id, *frame.after);
    }
    std::sort(result.begin(), result.end(),
              [](const auto& x, const auto& y) { return x.first < y.first; });
    SceneEdit fresh{SceneGraph()};
    for (const std::string& body : scene_.bodies_without_frames()) fresh.add_body(body);
    add_missing_bodies(fresh, difference.bare_bodies_after);
    fresh.add_frames_with_ids(result);
    fresh.scene_.next_frame_ = std::max(fresh.scene_.next_frame_, scene_.next_frame_);
    for (const AllowedPair& pair : scene_.allowed_pairs())
        if (!names.is_gone(pair.a) && !names.is_gone(pair.b))
            fresh.allow_collision(names.now(pair.a), names.now(pair.b), pair.reason);
    for (GroupSpecification group : scene_.groups_inside_out()) {
        for (auto* frames : {&group.frames, &group.parents}) {
            std::erase_if(*frames, [&](const std::string& frame) { return names.is_gone(frame); });
            for (std::string& frame : *frames) frame = names.now(frame);
        }
        fresh.set_group(group);
    }
    replace(std::move(fresh).take());
}

}  // namespace tmkit
