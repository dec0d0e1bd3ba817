#include "tmkit/frame_edits.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "graph/scene_rules.hpp"

namespace tmkit {

void FrameEdits::require_new_frame_name(std::string_view name) const {
    if (name.empty()) throw errors::empty_frame_name();
    if (scene_.names_.find(name)) throw duplicate("frame", name);
}

void FrameEdits::add_root(std::string_view name, std::string_view body) {
    FrameSpecification specification;
    specification.name = name;
    specification.body = body;
    add(specification, scene_.next_frame_);
}

void FrameEdits::add_frame(const FrameSpecification& specification) {
    if (specification.parent.empty()) throw errors::without_parent(specification.name);
    // add_frames checks the rules of bodies.
    if (specification.inertia || specification.twist) add_frames({specification});
    else add(specification, scene_.next_frame_);
}

void FrameEdits::add(const FrameSpecification& specification, FrameId id) {
    const FrameRecord* parent =
        specification.parent.empty() ? nullptr : &record(specification.parent);
    const FrameId parent_id = parent ? parent->id : no_frame;
    require_new_frame_name(specification.name);
    if (!parent && (specification.joint.type != JointType::fixed || specification.pose != Pose{}))
        throw errors::root_with_edge(specification.name);
    if (!parent && specification.noise)
        throw errors::root_without(specification.name, "covariance");
    check_entry(specification, parent);
    if (specification.stamps) check_new_stamps(specification, parent);
    const Ref<const Joint> joint = checked_joint(specification.joint, id, specification.name);
    // All rules are checked; only memory allocation may throw below.
    if (scene_.frames_.empty()) {
        scene_.index_ = make_ref<FrameIndex>();
        scene_.last_hash_ = make_ref<LastHash>();
    }
    auto record = make_ref<FrameRecord>();
    record->id = id;
    record->name = make_ref<const Name>(specification.name);
    record->details = details_or_null({{},
                                       specification.shapes,
                                       specification.classes,
                                       specification.attributes,
                                       {},
                                       specification.stamps});
    record->parent = parent_id;
    record->pose = specification.pose;
    record->joint_type = specification.joint.type;
    record->joint = joint;
    record->body = enter_body(specification, id, parent_id);
    record->is_stated =
        specification.joint.is_stated || !parent || this->record(parent_id).body == record->body;
    if (joint) store_joint(id, joint);
    record->noise = specification.noise;
    if (record->noise) scene_.noises_.assign(id, record->noise);
    scene_.names_.assign(record->name, id);
    scene_.frames_.assign(id, Ref<const FrameRecord>(record));
    scene_.next_frame_ = std::max(scene_.next_frame_, id + 1);
    note_change(id, static_cast<bool>(joint));
}

void FrameEdits::add_frames(const std::vector<FrameSpecification>& frames, bool joins) {
    NumberedFrames numbered;
    numbered.reserve(frames.size());
    for (const FrameSpecification& frame : frames)
        numbered.emplace_back(scene_.next_frame_ + static_cast<FrameId>(numbered.size()), frame);
    add_frames_with_ids(numbered, joins);
}

// Add each frame after its parent, if that is among them. Mimic joints get their rule later, since
// leaders may be later.
void FrameEdits::add_parents_first(const NumberedFrames& frames) {
    std::unordered_map<std::string_view, std::size_t> position;
    for (std::size_t i = 0; i < frames.size(); ++i)
        if (!position.emplace(frames[i].second.name, i).second)
            throw duplicate("frame", frames[i].second.name);
    std::vector<char> done(frames.size(), 0);
    std::vector<std::size_t> path;  // a frame and its ancestors that precede it
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

void FrameEdits::give_inertia(const FrameSpecification& frame) {
    const BodyRecord& on = body(record(frame.name).body);
    if (on.inertia_frame != no_frame)
        throw Error(ErrorKind::scene,
                    "body '{}' has its inertia given twice, on frames '{}' and '{}'", on.name->text,
                    record(on.inertia_frame).name->text, frame.name);
    set_inertia(frame.name, frame.inertia);
}

void FrameEdits::add_frames_with_ids(const NumberedFrames& frames, bool joins) {
    all_or_nothing([&] {
        add_parents_first(frames);
        for (const auto& [id, frame] : frames)
            if (!frame.joint.mimic.empty()) set_joint(frame.name, frame.joint);
        for (const auto& [id, frame] : frames)
            if (frame.inertia) give_inertia(frame);
        for (const auto& [id, frame] : frames)  // after the bodies to which they refer
            if (frame.twist)
                joins ? join_twist(frame.name, *frame.twist) : set_twist(frame.name, *frame.twist);
    });
}

void FrameEdits::remove_frame(std::string_view name, bool with_subtree) {
    const std::vector<FrameId> leaving = scene_.subtree(record(name).id);
    if (!with_subtree && leaving.size() > 1)
        throw errors::has_children(name, record(leaving[1]).name->text);
    std::vector<FrameId> gone = leaving;
    std::sort(gone.begin(), gone.end());
    require_no_followers(gone);
    const auto goes = [&](auto id) { return std::binary_search(gone.begin(), gone.end(), id); };
    rules::check_twists_stay(GraphView(scene_), [&](auto leaver) { return goes(leaver->id); });
    leave_groups(gone);
    for (auto leaf = leaving.rbegin(); leaf != leaving.rend(); ++leaf) {  // children before parents
        const FrameRecord& frame = record(*leaf);
        note_change(frame.id, static_cast<bool>(frame.joint));
        drop_joint(frame);
        leave_body(frame);
        scene_.names_.remove(std::string_view(frame.name->text));
        if (frame.noise) scene_.noises_.remove(*leaf);
        scene_.frames_.remove(*leaf);
        scene_.twists_.remove(*leaf);
        forbid_collisions(*leaf);
    }
}

void FrameEdits::rename_frame(std::string_view name, std::string_view new_name) {
    const FrameId id = record(name).id;
    if (name == new_name) return;
    require_new_frame_name(new_name);
    const auto changed = make_ref<const Name>(new_name);
    scene_.names_.remove(std::string_view(name));
    scene_.names_.assign(changed, id);
    own(id).name = changed;
}

void FrameEdits::join_twist(std::string_view frame, const TwistEdge& edge) {
    if (const std::optional<TwistEdge> known = scene_.twist(frame);
        known && known->reference == edge.reference) {
        if (rules::is_same(known->vector, edge.vector)) return;
        throw errors::twists_contradict(frame, edge.reference, edge.vector, quote(frame),
                                        known->vector);
    }
    try {
        set_twist(frame, edge);
    } catch (const Error& refusal) {
        BodyPaths<const FrameRecord*, BodyId> paths;
        const auto none_goes = [](auto) { return false; };
        const FrameRecord& on = record(frame);
        const BodyId reference = scene_.body_id(edge.reference);
        if (rules::is_said_too(GraphView(scene_), paths, &on, reference, edge.vector, none_goes))
            return;
        if (!rules::may_wait(refusal)) throw;
        FrameSpecification waiting{std::string(frame) + " relative to " + edge.reference,
                                   std::string(frame)};
        const std::string original_name = waiting.name;
        for (int n = 2; scene_.find(waiting.name) || scene_.has_group(waiting.name); ++n)
            waiting.name = format_text("{} ({})", original_name, n);
        waiting.body = body(on.body).name->text;
        waiting.classes = {"observation"};
        waiting.attributes = {{"observation", R"({"kind": "twist", "stamp": null, "tags": []})"}};
        add(waiting, scene_.next_frame_);
        set_group({waiting.name, {std::string(frame), waiting.name}});
        set_twist(waiting.name, edge);
    }
}

}  // namespace tmkit
