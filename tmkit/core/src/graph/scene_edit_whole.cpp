// Edits that insert or extract whole scenes.
#include <algorithm>
#include <map>
#include <set>

#include "tmkit/scene_edit.hpp"
#include "tmkit/scene_errors.hpp"

namespace tmkit {
// Every name of a frame's specification with a prefix.
static FrameSpecification add_prefix(FrameSpecification frame, std::string_view prefix) {
    const auto with_prefix = [&](std::string& name) {
        if (!name.empty()) name.insert(0, prefix);
    };
    for (std::string* name :
         {&frame.name, &frame.parent, &frame.body, &frame.joint.name, &frame.joint.mimic})
        with_prefix(*name);
    if (frame.twist) with_prefix(frame.twist->reference);
    return frame;
}

static std::vector<FrameSpecification> specifications(const SceneGraph& scene) {
    std::vector<FrameSpecification> frames;
    frames.reserve(scene.size());
    for (const std::string& name : scene.frame_names()) frames.push_back(scene.specification(name));
    return frames;
}

void SceneEdit::mount(const SceneGraph& other, std::string_view under, std::string_view prefix,
                      const Pose& pose, const Joint& joint) {
    const std::string parent = record(under).name->text;
    std::vector<FrameSpecification> frames;
    frames.reserve(other.size());
    std::size_t roots = 0;
    // Each copy of an object has its own errors.
    std::map<const NoiseSource*, Ref<const NoiseSource>> twins;
    const auto twin = [&](const Ref<const NoiseSource>& source) {
        Ref<const NoiseSource>& copy = twins[source.get()];
        if (!copy)
            copy = Ref<const NoiseSource>(
                new NoiseSource(source->dimension, std::string(prefix) + source->label));
        return copy;
    };
    for (const FrameSpecification& frame : specifications(other)) {
        frames.push_back(add_prefix(frame, prefix));
        if (frame.noise) frames.back().noise = frame.noise->with_sources(twin);
        if (frame.twist && frame.twist->noise)
            frames.back().twist->noise = frame.twist->noise->with_sources(twin);
        if (!frame.parent.empty()) continue;
        frames.back().parent = parent;
        frames.back().pose = pose;
        frames.back().joint = joint;
        // Each root gets its own joint.
        if (++roots > 1 && !joint.name.empty()) frames.back().joint.name.clear();
    }
    all_or_nothing([&] {
        const std::string start(prefix);
        for (const std::string& body : other.bodies_without_frames()) add_body(start + body);
        add_frames(frames, true);
        for (const AllowedPair& pair : other.allowed_pairs())
            allow_collision(start + pair.a, start + pair.b, pair.reason);
        for (GroupSpecification group : other.groups_inside_out()) {
            group.name.insert(0, prefix);
            if (scene_.groups_.find(std::string_view(group.name)))
                throw duplicate("group", group.name);
            for (auto* members : {&group.frames, &group.groups, &group.parents})
                for (std::string& member : *members) member.insert(0, prefix);
            set_group(group);
        }
    });
}

// Return whether a root of a scene to merge agrees with an existing frame; omitted fields may
// differ.
static bool agrees(const FrameSpecification& root, const FrameSpecification& mine) {
    return root.body == mine.body && (root.shapes.empty() || root.shapes == mine.shapes) &&
           (root.classes.empty() || root.classes == mine.classes) &&
           (!root.inertia || root.inertia == mine.inertia) &&
           (root.attributes.empty() || root.attributes == mine.attributes);
}

// Prepend the content of a group of this scene to that of the group of the same name to merge.
static void unite(GroupSpecification& group, const GroupSpecification& mine) {
    for (const auto members :
         {&GroupSpecification::frames, &GroupSpecification::groups, &GroupSpecification::parents})
        (group.*members)
            .insert((group.*members).begin(), (mine.*members).begin(), (mine.*members).end());
    if (!group.attributes.empty() && !mine.attributes.empty() &&
        group.attributes != mine.attributes)
        throw Error(ErrorKind::scene, "group '{}' has other attributes in the scene to merge",
                    group.name);
    if (group.attributes.empty()) group.attributes = mine.attributes;
}

static bool has_members(const GroupSpecification& group) {
    return !group.frames.empty() || !group.groups.empty() || !group.parents.empty();
}

void SceneEdit::merge(const SceneGraph& other) {
    std::vector<FrameSpecification> frames, twist_frames;  // of existing frames: their twists
    for (FrameSpecification& frame : specifications(other)) {
        const FrameRecord* existing = frame.parent.empty() ? scene_.find(frame.name) : nullptr;
        if (!existing) {
            frames.push_back(std::move(frame));
            continue;
        }
        if (frame.twist) twist_frames.push_back(frame);
        if (!agrees(frame, scene_.specification(frame.name)))
            throw Error(ErrorKind::scene,
                        "frame '{}' is a root of the scene to merge and a frame of this one, but "
                        "their content differs; rename one, or mount the scene with a prefix",
                        frame.name);
    }
    all_or_nothing([&] {
        for (const std::string& body : other.bodies_without_frames())
            if (!scene_.has_body(body)) add_body(body);
        add_frames(frames, true);
        for (const FrameSpecification& frame : twist_frames) join_twist(frame.name, *frame.twist);
        for (const AllowedPair& pair : other.allowed_pairs())
            if (!scene_.is_allowed(pair.a, pair.b)) allow_collision(pair.a, pair.b, pair.reason);
        for (GroupSpecification group : other.groups_inside_out()) {
            if (scene_.groups_.find(std::string_view(group.name)))
                unite(group, scene_.group(group.name));
            set_group(group);
        }
    });
}

void SceneEdit::extract(std::string_view frame) {
    const SceneGraph& whole = scene_;
    std::vector<FrameId> inside = whole.subtree(record(frame).id);
    std::sort(inside.begin(), inside.end());  // insertion order
    std::set<std::string_view> bodies;
    for (const FrameId id : inside) bodies.insert(body(record(id).body).name->text);
    std::vector<FrameSpecification> frames;
    SceneEdit part{SceneGraph()};
    const auto stays = [&](FrameId id) {
        return std::binary_search(inside.begin(), inside.end(), id);
    };
    for (const FrameId id : inside) {
        frames.push_back(whole.specification(record(id).name->text));
        FrameSpecification& copy = frames.back();
        if (!copy.joint.mimic.empty() && !stays(whole.joint_frame(copy.joint.mimic)))
            throw Error(ErrorKind::scene,
                        "joint '{}' mimics joint '{}', which is not below frame '{}'",
                        copy.joint.name, copy.joint.mimic, frame);
        // Relative to a removed body.
        if (copy.twist && !bodies.count(copy.twist->reference)) copy.twist.reset();
        if (copy.name != frame) continue;
        copy.parent.clear();
        copy.pose = Pose{};
        copy.joint = Joint{};
        copy.stamps = nullptr;
        copy.noise = nullptr;
    }
    part.add_frames(frames);
    for (const FrameId id : inside)
        whole.allowed_.for_each_from(Pair{id, id},
                                     [&](const Pair& pair, const Ref<const Name>& reason) {
            if (pair.first == id && stays(pair.second))
                part.allow_collision(record(id).name->text, record(pair.second).name->text,
                                     reason->text);
            return pair.first == id;
        });
    // Keep a group if a frame of it, of a group in it or above it remains.
    for (GroupSpecification group : whole.groups_inside_out()) {
        for (auto* frames : {&group.frames, &group.parents})
            std::erase_if(*frames,
                          [&](const std::string& name) { return !stays(record(name).id); });
        std::erase_if(group.groups, [&](const std::string& name) {
            return !part.scene_.groups_.find(std::string_view(name));
        });
        if (has_members(group)) part.set_group(group);
    }
    replace(std::move(part).take());
}

}  // namespace tmkit
