#include <algorithm>
#include <unordered_map>
#include <utility>

#include "scene_rules.hpp"
#include "tmkit/scene_edit.hpp"

namespace tmkit {

static Ref<const FrameDetails> details_or_null(FrameDetails details) {
    if (details.empty()) return nullptr;
    return Ref<const FrameDetails>(new FrameDetails(std::move(details)));
}

FrameRecord& SceneEdit::own(FrameId id) {
    if (Ref<const FrameRecord>* mine = scene_.frames_.find_unshared(id)) {
        if (!(*mine)->has_one_owner()) *mine = Ref<const FrameRecord>(new FrameRecord(**mine));
        return const_cast<FrameRecord&>(**mine);
    }
    const Ref<FrameRecord> copy(new FrameRecord(record(id)));
    scene_.frames_.assign(id, Ref<const FrameRecord>(copy));
    return *copy;
}

void SceneEdit::all_or_nothing(const std::function<void()>& edits) {
    const SceneGraph before = scene_;
    try {
        edits();
    } catch (...) {
        replace(before);
        throw;
    }
}

void SceneEdit::note_change(FrameId id, bool of_joint) {
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

// --- frames ----------------------------------------------------------------------------------------------------------

void SceneEdit::require_new_frame_name(std::string_view name) const {
    if (name.empty()) throw refusals::empty_frame_name();
    if (scene_.names_.find(name)) throw duplicate("frame", name);
}

void SceneEdit::add_root(std::string_view name, std::string_view body) {
    FrameSpecification specification;
    specification.name = name;
    specification.body = body;
    add(specification, scene_.next_frame_);
}

void SceneEdit::add_frame(const FrameSpecification& specification) {
    if (specification.parent.empty()) throw refusals::without_parent(specification.name);
    if (specification.inertia || specification.twist) add_frames({specification});  // which holds the rules of bodies
    else add(specification, scene_.next_frame_);
}

void SceneEdit::add(const FrameSpecification& specification, FrameId id) {
    const FrameRecord* parent = specification.parent.empty() ? nullptr : &record(specification.parent);
    const FrameId parent_id = parent ? parent->id : no_frame;
    require_new_frame_name(specification.name);
    if (!parent && (specification.joint.type != JointType::fixed || specification.pose != Pose{}))
        throw refusals::root_with_edge(specification.name);
    if (!parent && specification.noise) throw refusals::root_without(specification.name, "covariance");
    check_entry(specification, parent);
    if (specification.stamps) check_new_stamps(specification, parent);
    const Ref<const Joint> joint = checked_joint(specification.joint, id, specification.name);
    // All is well; nothing from here on throws, but for want of memory.
    if (scene_.frames_.empty()) {
        scene_.index_ = make_ref<FrameIndex>();
        scene_.last_hash_ = make_ref<LastHash>();
    }
    auto record = make_ref<FrameRecord>();
    record->id = id;
    record->name = make_ref<const Name>(specification.name);
    record->details = details_or_null(
        {{}, specification.shapes, specification.classes, specification.attributes, {}, specification.stamps});
    record->parent = parent_id;
    record->pose = specification.pose;
    record->joint_type = specification.joint.type;
    record->joint = joint;
    record->body = enter_body(specification, id, parent_id);
    record->is_stated = specification.joint.is_stated || !parent || this->record(parent_id).body == record->body;
    if (joint) put_joint(id, joint);
    record->noise = specification.noise;
    if (record->noise) scene_.noises_.assign(id, record->noise);
    scene_.names_.assign(record->name, id);
    scene_.frames_.assign(id, Ref<const FrameRecord>(record));
    scene_.next_frame_ = std::max(scene_.next_frame_, id + 1);
    note_change(id, static_cast<bool>(joint));
}

void SceneEdit::add_frames(const std::vector<FrameSpecification>& frames, bool joins) {
    NumberedFrames numbered;
    numbered.reserve(frames.size());
    for (const FrameSpecification& frame : frames)
        numbered.emplace_back(scene_.next_frame_ + static_cast<FrameId>(numbered.size()), frame);
    add_frames_with_ids(numbered, joins);
}

// Each frame after its parent, where that is among them; joints that mimic without their rule, as leaders may come
// later.
void SceneEdit::add_parents_first(const NumberedFrames& frames) {
    std::unordered_map<std::string_view, std::size_t> position;
    for (std::size_t i = 0; i < frames.size(); ++i)
        if (!position.emplace(frames[i].second.name, i).second) throw duplicate("frame", frames[i].second.name);
    std::vector<char> done(frames.size(), 0);
    std::vector<std::size_t> path;  // a frame and the ancestors that wait to go in before it
    for (std::size_t first = 0; first < frames.size(); ++first) {
        for (path.assign(1, first); !path.empty(); path.pop_back()) {
            while (true) {
                const FrameSpecification& frame = frames[path.back()].second;
                const auto parent = position.find(frame.parent);
                if (done[path.back()] || parent == position.end() || done[parent->second]) break;
                if (path.size() > frames.size())
                    throw Error(ErrorKind::cycle, "frame '{}' is its own ancestor", frame.name)
                        .with({{"frame", frame.name}, {"parent", frame.parent}});
                path.push_back(parent->second);
            }
            const auto& [id, frame] = frames[path.back()];
            if (std::exchange(done[path.back()], 1)) continue;
            FrameSpecification alone = frame;
            alone.joint.mimic.clear();
            add(alone, id);
        }
    }
}

void SceneEdit::give_inertia(const FrameSpecification& frame) {
    const BodyRecord& on = body(record(frame.name).body);
    if (on.inertia_frame != no_frame)
        throw Error(ErrorKind::scene, "body '{}' has its inertia given twice, on frames '{}' and '{}'", on.name->text,
                    record(on.inertia_frame).name->text, frame.name);
    set_inertia(frame.name, frame.inertia);
}

void SceneEdit::add_frames_with_ids(const NumberedFrames& frames, bool joins) {
    all_or_nothing([&] {
        add_parents_first(frames);
        for (const auto& [id, frame] : frames)
            if (!frame.joint.mimic.empty()) set_joint(frame.name, frame.joint);
        for (const auto& [id, frame] : frames)
            if (frame.inertia) give_inertia(frame);
        for (const auto& [id, frame] : frames)  // when the bodies are there that they refer to
            if (frame.twist) joins ? join_twist(frame.name, *frame.twist) : set_twist(frame.name, *frame.twist);
    });
}

void SceneEdit::remove_frame(std::string_view name, bool with_subtree) {
    const std::vector<FrameId> leaving = scene_.subtree(record(name).id);
    if (!with_subtree && leaving.size() > 1) throw refusals::has_children(name, record(leaving[1]).name->text);
    std::vector<FrameId> gone = leaving;
    std::sort(gone.begin(), gone.end());
    require_no_followers(gone);
    const auto goes = [&](auto id) { return std::binary_search(gone.begin(), gone.end(), id); };
    rules::check_twists_stay(GraphView(scene_), [&](auto leaver) { return goes(leaver->id); });
    leave_groups(gone);
    for (auto at = leaving.rbegin(); at != leaving.rend(); ++at) {  // children before parents
        const FrameRecord& frame = record(*at);
        note_change(frame.id, static_cast<bool>(frame.joint));
        drop_joint(frame);
        leave_body(frame);
        scene_.names_.remove(std::string_view(frame.name->text));
        if (frame.noise) scene_.noises_.remove(*at);
        scene_.frames_.remove(*at);
        scene_.twists_.remove(*at);
        forbid_collisions(*at);
    }
}

void SceneEdit::rename_frame(std::string_view name, std::string_view new_name) {
    const FrameId id = record(name).id;
    if (name == new_name) return;
    require_new_frame_name(new_name);
    const auto changed = make_ref<const Name>(new_name);
    scene_.names_.remove(std::string_view(name));
    scene_.names_.assign(changed, id);
    own(id).name = changed;
}

// --- what frames carry -----------------------------------------------------------------------------------------------

void SceneEdit::set_details(const FrameRecord& frame, FrameDetails details) {
    if (frame.details ? frame.details->same_content(details) : details.empty()) return;
    own(frame.id).details = details_or_null(std::move(details));
}

void SceneEdit::set_classes(std::string_view frame, std::vector<std::string> classes) {
    rules::check_classes(GraphView(scene_), &record(frame), classes);
    change_details(record(frame), [&](FrameDetails& details) { details.classes = std::move(classes); });
}

void SceneEdit::set_shapes(std::string_view frame, std::vector<AttachedShape> shapes) {
    change_details(record(frame), [&](FrameDetails& details) { details.shapes = std::move(shapes); });
}

void SceneEdit::add_shape(std::string_view frame, const AttachedShape& shape) {
    change_details(record(frame), [&](FrameDetails& details) { details.shapes.push_back(shape); });
}

void SceneEdit::set_attributes(std::string_view frame, Attributes attributes) {
    std::sort(attributes.begin(), attributes.end());
    change_details(record(frame), [&](FrameDetails& details) { details.attributes = std::move(attributes); });
}

void SceneEdit::allow_collision(std::string_view a, std::string_view b, std::string_view reason) {
    const FrameId first = record(a).id, second = record(b).id;
    if (first == second) throw refusals::collides_with_itself(a);
    const Ref<const Name>* old = scene_.allowed_.find(Pair{first, second});
    if (old && (*old)->text == reason) return;
    const auto said = make_ref<const Name>(reason);
    scene_.allowed_.assign({first, second}, said);
    scene_.allowed_.assign({second, first}, said);
}

void SceneEdit::forbid_collision(std::string_view a, std::string_view b) {
    const FrameId first = record(a).id, second = record(b).id;
    scene_.allowed_.remove(Pair{first, second});
    scene_.allowed_.remove(Pair{second, first});
}

void SceneEdit::forbid_collisions(FrameId frame) {
    std::vector<FrameId> partners;
    scene_.allowed_.for_each_from(Pair{frame, no_frame}, [&](const Pair& pair, const Ref<const Name>&) {
        if (pair.first != frame) return false;
        partners.push_back(pair.second);
        return true;
    });
    for (const FrameId partner : partners) {
        scene_.allowed_.remove(Pair{frame, partner});
        scene_.allowed_.remove(Pair{partner, frame});
    }
}

// --- groups ----------------------------------------------------------------------------------------------------------

void SceneEdit::set_group(const GroupSpecification& group) {
    if (group.name.empty()) throw refusals::empty_group_name();
    auto made = make_ref<GroupRecord>();
    const auto enter = [&](const std::vector<std::string>& names, std::vector<FrameId>& ids) {
        for (const std::string& frame : names)
            if (const FrameId id = record(frame).id; std::find(ids.begin(), ids.end(), id) == ids.end())
                ids.push_back(id);
    };
    enter(group.frames, made->frames);
    enter(group.parents, made->parents);
    made->attributes = group.attributes;
    std::sort(made->attributes.begin(), made->attributes.end());
    std::vector<std::string_view> below;  // groups reached from here
    for (const std::string& member : group.groups) {
        if (member == group.name) throw refusals::group_holds_itself(member);
        if (!scene_.groups_.find(std::string_view(member))) throw unknown_name("group", member, scene_.group_names());
        if (std::find(below.begin(), below.end(), member) != below.end()) continue;
        made->groups.push_back(make_ref<const Name>(member));
        below.push_back(member);
    }
    for (std::size_t next = 0; next < below.size(); ++next)
        for (const Ref<const Name>& nested : (*scene_.groups_.find(below[next]))->groups) {
            if (nested->text == group.name) throw refusals::group_holds_in_turn(below[next], group.name);
            if (std::find(below.begin(), below.end(), nested->text) == below.end()) below.push_back(nested->text);
        }
    const Ref<const GroupRecord>* old = scene_.groups_.find(std::string_view(group.name));
    if (old && (*old)->same_content(*made)) return;
    scene_.groups_.assign(make_ref<const Name>(group.name), Ref<const GroupRecord>(made));
}

// Takes members out of all groups: `goes` says which of `members`.
template <class Members, class Goes> void SceneEdit::drop_members(Members GroupRecord::* members, Goes&& goes) {
    std::vector<std::pair<Ref<const Name>, Ref<GroupRecord>>> holders;
    scene_.groups_.for_each([&](const Ref<const Name>& holder, const Ref<const GroupRecord>& group) {
        const Members& there = (*group).*members;
        if (std::none_of(there.begin(), there.end(), goes)) return;
        const Ref<GroupRecord> changed(new GroupRecord(*group));
        std::erase_if((*changed).*members, goes);
        holders.emplace_back(holder, changed);
    });
    for (const auto& [holder, group] : holders) scene_.groups_.assign(holder, Ref<const GroupRecord>(group));
}

void SceneEdit::remove_group(std::string_view name) {
    if (!scene_.groups_.find(name)) throw unknown_name("group", name, scene_.group_names());
    drop_members(&GroupRecord::groups, [&](const Ref<const Name>& member) { return member->text == name; });
    scene_.groups_.remove(name);
}

void SceneEdit::leave_groups(const std::vector<FrameId>& leaving) {
    const auto goes = [&](FrameId id) { return std::binary_search(leaving.begin(), leaving.end(), id); };
    drop_members(&GroupRecord::frames, goes);
    drop_members(&GroupRecord::parents, goes);
}

}  // namespace tmkit
