#include <algorithm>
#include <iterator>
#include <set>
#include <unordered_set>

#include "graph/ascent.hpp"
#include "tmkit/scene_errors.hpp"
#include "tmkit/scene_graph.hpp"

namespace tmkit {
namespace {

template <class Map>
std::vector<std::string> keys_of(const Map& map) {
    std::vector<std::string> names;
    names.reserve(map.size());
    map.for_each([&](const Ref<const Name>& name, const auto&) { names.push_back(name->text); });
    return names;
}

}  // namespace

SceneGraph::SceneGraph(const SceneGraph& other) : SceneMaps(other) {
    const Layout* layout = other.layout_.load(std::memory_order_acquire);
    if (layout) layout->retain();
    layout_.store(layout, std::memory_order_relaxed);
}

SceneGraph::SceneGraph(SceneGraph&& other) noexcept
    : SceneMaps(static_cast<SceneMaps&&>(other)), layout_(other.layout_.exchange(nullptr)) {}

SceneGraph& SceneGraph::operator=(SceneGraph other) noexcept {
    SceneMaps::operator=(static_cast<SceneMaps&&>(other));
    other.layout_.store(layout_.exchange(other.layout_.load()));
    hash_.store(0, std::memory_order_relaxed);
    return *this;
}

SceneGraph::~SceneGraph() {
    const Layout* layout = layout_.load(std::memory_order_acquire);
    if (layout && layout->release()) delete layout;
}

const FrameRecord* SceneGraph::find(std::string_view name) const {
    const FrameId* id = names_.find(name);
    return id ? frames_.find(*id)->get() : nullptr;
}

const FrameRecord& SceneGraph::record(std::string_view name) const {
    const FrameRecord* found = find(name);
    if (!found) throw unknown_name("frame", name, keys_of(names_));
    return *found;
}

FrameSpecification SceneGraph::specification(std::string_view name) const {
    const FrameRecord& frame = record(name);
    FrameSpecification made;
    made.name = frame.name->text;
    if (frame.parent != no_frame) made.parent = record(frame.parent).name->text;
    made.pose = frame.pose;
    if (frame.joint) made.joint = *frame.joint;
    made.joint.type = frame.joint_type;
    made.body = body(frame.body).name->text;
    if (frame.details) {
        made.classes = frame.details->classes;
        made.shapes = frame.details->shapes;
        made.attributes = frame.details->attributes;
        made.twist = frame.details->twist;
        made.stamps = frame.details->stamps;
    }
    made.noise = frame.noise;
    if (body(frame.body).inertia_frame == frame.id) made.inertia = body(frame.body).inertia;
    return made;
}

FrameId SceneGraph::joint_frame(std::string_view joint_name) const {
    const FrameId* found = joint_names_.find(joint_name);
    if (!found) throw unknown_name("joint", joint_name, keys_of(joint_names_));
    return *found;
}

FrameId SceneGraph::root_of(FrameId id) const {
    for (;;) {
        const FrameId parent = record(id).parent;
        if (parent == no_frame) return id;
        id = parent;
    }
}

bool SceneGraph::is_ancestor(FrameId ancestor, FrameId frame) const {
    for (; frame != no_frame; frame = record(frame).parent)
        if (frame == ancestor) return true;
    return false;
}

std::optional<Inertia> SceneGraph::inertia(std::string_view frame) const {
    const FrameRecord& on = record(frame);
    const BodyRecord& carrier = body(on.body);
    if (carrier.inertia_frame == no_frame) return std::nullopt;
    if (carrier.inertia_frame == on.id) return carrier.inertia;
    return carrier.inertia.in_axes_of(pose(record(carrier.inertia_frame).name->text, frame, nullptr));
}

bool SceneGraph::is_allowed(FrameId a, FrameId b) const { return allowed_.find(Pair{a, b}) != nullptr; }

bool SceneGraph::is_allowed(std::string_view a, std::string_view b) const {
    return is_allowed(record(a).id, record(b).id);
}

std::vector<std::string> SceneGraph::frame_names() const {
    std::vector<std::string> names;
    names.reserve(frames_.size());
    frames_.for_each([&](FrameId, const Ref<const FrameRecord>& frame) { names.push_back(frame->name->text); });
    return names;
}

std::vector<std::string> SceneGraph::joint_names() const {
    std::vector<std::string> names;
    names.reserve(joints_.size());
    joints_.for_each([&](FrameId, const Ref<const Joint>& joint) { names.push_back(joint->name); });
    return names;
}

std::vector<std::string> SceneGraph::body_names() const {
    std::vector<std::string> names;
    names.reserve(bodies_.size());
    std::unordered_set<BodyId> seen;
    frames_.for_each([&](FrameId, const Ref<const FrameRecord>& frame) {
        if (seen.insert(frame->body).second) names.push_back(body(frame->body).name->text);
    });
    if (names.size() < bodies_.size())
        for (std::string& name : bodies_without_frames()) names.push_back(std::move(name));
    return names;
}

std::vector<AllowedPair> SceneGraph::allowed_pairs() const {
    std::vector<AllowedPair> pairs;
    pairs.reserve(pair_count());
    allowed_.for_each([&](const Pair& pair, const Ref<const Name>& reason) {
        if (pair.first < pair.second)
            pairs.push_back({record(pair.first).name->text, record(pair.second).name->text, reason->text});
    });
    return pairs;
}

JointRule SceneGraph::joint_rule(const FrameRecord& frame) const {
    JointRule rule;
    const FrameRecord* leader = &frame;
    for (; !leader->joint->mimic.empty(); leader = &record(joint_frame(leader->joint->mimic))) {
        rule.offset += rule.multiplier * leader->joint->mimic_offset;
        rule.multiplier *= leader->joint->mimic_multiplier;
    }
    rule.entry = joints_.rank(leader->id);
    return rule;
}

double SceneGraph::joint_value(const FrameRecord& frame, const double* q) const {
    if (!q)
        throw Error(ErrorKind::configuration, "joint '{}' is on the path, so a configuration q is needed",
                    frame.joint->name)
            .with({{"joint", frame.joint->name}});
    return joint_rule(frame).value(q);
}

FrameId SceneGraph::common_ancestor(FrameId a, FrameId b) const {
    const Ascent up(*this, record(a)), other(*this, record(b));
    return up[below_common(up, other).first]->id;
}

std::vector<FrameId> SceneGraph::path(FrameId from, FrameId to, std::size_t* top) const {
    const Ascent up(*this, record(from)), down(*this, record(to));
    const auto [steps_up, steps_down] = below_common(up, down);
    std::vector<FrameId> frames;
    for (std::size_t i = 0; i <= steps_up; ++i) frames.push_back(up[i]->id);
    for (std::size_t i = steps_down; i > 0; --i) frames.push_back(down[i - 1]->id);
    if (top) *top = steps_up;
    return frames;
}

namespace {

// edge_of: parent_from_frame of a record, its joint's motion included.
template <class EdgeOf>
Pose along(const Ascent& to, const Ascent& from, EdgeOf&& edge_of) {
    const auto [to_steps, from_steps] = below_common(to, from);
    const auto descend = [&](const Ascent& way, std::size_t steps) {
        Pose result;
        for (std::size_t i = steps; i > 0; --i) result = composed(result, edge_of(*way[i - 1]));
        return result;
    };
    const Pose down = descend(to, to_steps);
    return from_steps == 0 ? down : descend(from, from_steps).inverse() * down;
}

}  // namespace

Pose SceneGraph::pose(std::string_view target, std::string_view reference, const double* q) const {
    const Ascent to(*this, record(target)), from(*this, record(reference));
    return along(to, from, [&](const FrameRecord& edge) { return edge_pose(*this, edge, q); });
}

Pose SceneGraph::pose(std::string_view target, std::string_view reference, const double* q,
                      const Moment& moment) const {
    const Ascent to(*this, record(target)), from(*this, record(reference));
    return along(to, from, [&](const FrameRecord& edge) {
        const Pose pose =
            edge.details && edge.details->stamps ? edge.details->stamps->at(moment, edge.name->text) : edge.pose;
        return edge.joint ? moved(pose, edge.joint_type, edge.joint->axis, joint_value(edge, q)) : pose;
    });
}

// --- groups ----------------------------------------------------------------------------------------------------------

std::vector<std::string> SceneGraph::group_names() const { return keys_of(groups_); }

GroupSpecification SceneGraph::group(std::string_view name) const {
    const Ref<const GroupRecord>* found = groups_.find(name);
    if (!found) throw unknown_name("group", name, group_names());
    GroupSpecification group{std::string(name), {}, {}};
    for (FrameId id : (*found)->frames) group.frames.push_back(record(id).name->text);
    for (const Ref<const Name>& nested : (*found)->groups) group.groups.push_back(nested->text);
    return group;
}

std::vector<GroupSpecification> SceneGraph::groups_inside_out() const {
    std::vector<GroupSpecification> waiting, ordered;
    for (const std::string& name : group_names()) waiting.push_back(group(name));
    const auto is_there = [&](const std::string& name) {
        return std::any_of(ordered.begin(), ordered.end(), [&](const GroupSpecification& g) { return g.name == name; });
    };
    while (!waiting.empty())  // no group holds itself, so each round finds one
        std::erase_if(waiting, [&](const GroupSpecification& group) {
            if (!std::all_of(group.groups.begin(), group.groups.end(), is_there)) return false;
            ordered.push_back(group);
            return true;
        });
    return ordered;
}

std::vector<FrameId> SceneGraph::frames_of_group(std::string_view name) const {
    if (!groups_.find(name)) throw unknown_name("group", name, group_names());
    std::vector<std::string_view> reached{name};
    std::vector<FrameId> frames;
    for (std::size_t next = 0; next < reached.size(); ++next) {
        const GroupRecord& group = **groups_.find(reached[next]);
        frames.insert(frames.end(), group.frames.begin(), group.frames.end());
        for (const Ref<const Name>& nested : group.groups)
            if (std::find(reached.begin(), reached.end(), nested->text) == reached.end())
                reached.push_back(nested->text);
    }
    std::sort(frames.begin(), frames.end());
    frames.erase(std::unique(frames.begin(), frames.end()), frames.end());
    return frames;
}

std::vector<std::string> SceneGraph::groups_of(std::string_view frame) const {
    const FrameId id = record(frame).id;
    std::vector<std::string> names;
    groups_.for_each([&](const Ref<const Name>& name, const Ref<const GroupRecord>& group) {
        if (std::find(group->frames.begin(), group->frames.end(), id) != group->frames.end())
            names.push_back(name->text);
    });
    return names;
}

// --- for tests -------------------------------------------------------------------------------------------------------

// What frames and bodies say of themselves is compared with what the maps beside them have; returned is the first entry
// that only one side has.
std::string SceneGraph::defects_of_maps() const {
    std::set<std::string> said, mapped;
    const auto note = [](std::set<std::string>& side, const char* pattern, const auto&... parts) {
        side.insert(formatted(pattern, parts...));
    };
    const auto address = [](const auto& ref) { return reinterpret_cast<std::uintptr_t>(ref.get()); };
    frames_.for_each([&](FrameId id, const Ref<const FrameRecord>& frame) {
        const bool is_root = frame->parent == no_frame;
        const FrameRecord* parent = is_root ? nullptr : find(frame->parent);
        if (frame->id != id || id >= next_frame_ || (!is_root && !parent)) note(said, "frame {} is wrong", id);
        if (frame->parent == no_frame && frame->noise) note(said, "root {} has noise", id);
        note(said, "frame {} {}", frame->name->text, id);
        if (!parent || parent->body != frame->body) note(said, "top {} {}", frame->body, id);
        if (frame->noise) note(said, "noise {} {}", id, address(frame->noise));
        if (frame->details && frame->details->twist) note(said, "twist {} {}", id, frame->details->twist->reference);
        const Ref<const Joint>& joint = frame->joint;
        if (is_actuated(frame->joint_type) != static_cast<bool>(joint)) note(said, "joint of {} is wrong", id);
        if (!joint) return;
        note(said, "joint {} {}", joint->name, id);
        if (joint->mimic.empty()) note(said, "entry {} {}", id, address(joint));
        else if (!joint_names_.find(std::string_view(joint->mimic))) note(said, "leader of {} is gone", joint->name);
    });
    names_.for_each([&](const Ref<const Name>& name, FrameId id) { note(mapped, "frame {} {}", name->text, id); });
    noises_.for_each([&](FrameId id, const Ref<const EdgeNoise>& n) { note(mapped, "noise {} {}", id, address(n)); });
    twists_.for_each([&](FrameId id, BodyId other) { note(mapped, "twist {} {}", id, body(other).name->text); });
    joint_names_.for_each(
        [&](const Ref<const Name>& name, FrameId id) { note(mapped, "joint {} {}", name->text, id); });
    joints_.for_each([&](FrameId id, const Ref<const Joint>& j) { note(mapped, "entry {} {}", id, address(j)); });
    body_names_.for_each([&](const Ref<const Name>& name, BodyId id) { note(mapped, "body {} {}", name->text, id); });
    bodies_.for_each([&](BodyId id, const Ref<const BodyRecord>& body) {
        note(said, "body {} {}", body->name->text, id);
        for (const FrameId top : body->tops) note(mapped, "top {} {}", id, top);
        const FrameRecord* carrier = body->inertia_frame == no_frame ? nullptr : find(body->inertia_frame);
        if (body->inertia_frame != no_frame && (!carrier || carrier->body != id)) note(said, "inertia of {}", id);
    });
    allowed_.for_each([&](const Pair& pair, const Ref<const Name>&) {
        note(mapped, "pair {} {}", pair.first, pair.second);
        if (pair.first != pair.second && find(pair.first)) note(said, "pair {} {}", pair.second, pair.first);
    });
    groups_.for_each([&](const Ref<const Name>& name, const Ref<const GroupRecord>& group) {
        const auto has_group = [this](const Ref<const Name>& nested) { return groups_.find(nested) != nullptr; };
        const auto has_frame = [this](FrameId id) { return find(id) != nullptr; };
        if (!std::ranges::all_of(group->frames, has_frame) || !std::ranges::all_of(group->groups, has_group))
            note(said, "a member of group {} is gone", name->text);
    });
    std::vector<std::string> wrong;
    std::ranges::set_symmetric_difference(said, mapped, std::back_inserter(wrong));
    return wrong.empty() ? "" : "out of step: " + wrong.front();
}

std::string SceneGraph::defects() const {
    const auto valid = [](const auto&... maps) { return (maps.is_valid() && ...); };
    if (!valid(frames_, names_, joints_, joint_names_, bodies_, body_names_, allowed_, groups_, twists_, noises_))
        return "a map is out of order or balance";
    if (frames_.size() != names_.size() || bodies_.size() != body_names_.size())
        return "names and records differ in number";
    if (const std::string defect = defects_of_maps(); !defect.empty()) return defect;
    const bool has_layout = layout_before_ || layout_.load();
    return has_layout && !fresh_layout()->same_content(layout()) ? "the layout differs from one made afresh" : "";
}

}  // namespace tmkit
