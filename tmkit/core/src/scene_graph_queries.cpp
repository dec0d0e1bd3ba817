#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "tmkit/scene_graph.hpp"

namespace tmkit {
namespace {

template <class Map>
std::vector<std::string> keys_of(const Map& map) {
    std::vector<std::string> names;
    names.reserve(map.size());
    map.for_each([&](const Ref<const Name>& name, auto) { names.push_back(name->text); });
    return names;
}

void mix(std::uint64_t& hash, std::uint64_t word) {
    hash = (hash ^ word) * 0xFF51AFD7ED558CCDull;
    hash ^= hash >> 33;
}

void mix(std::uint64_t& hash, std::string_view text) {
    for (char c : text) mix(hash, static_cast<unsigned char>(c));
    mix(hash, text.size());
}

void mix(std::uint64_t& hash, const Pose& pose) {
    for (double v : pose.translation) mix(hash, std::bit_cast<std::uint64_t>(v + 0.0));  // -0.0 and 0.0 are equal
    for (double v : pose.quat_xyzw) mix(hash, std::bit_cast<std::uint64_t>(v + 0.0));
}

bool same_details(const FrameRecord& a, const FrameRecord& b) {
    if (a.details == b.details) return true;
    return a.details && b.details && a.details->classes == b.details->classes && a.details->shapes == b.details->shapes;
}

bool same_joint(const FrameRecord& a, const FrameRecord& b) {
    return a.joint_type == b.joint_type && (a.joint == b.joint || (a.joint && b.joint && a.joint->same_content(*b.joint)));
}

}  // namespace

SceneGraph::SceneGraph(const SceneGraph& other)
    : frames_(other.frames_), names_(other.names_), joints_(other.joints_), joint_names_(other.joint_names_),
      bodies_(other.bodies_), body_names_(other.body_names_), allowed_(other.allowed_), next_frame_(other.next_frame_),
      next_body_(other.next_body_) {
    const Layout* layout = other.layout_.load(std::memory_order_acquire);
    if (layout) layout->retain();
    layout_.store(layout, std::memory_order_relaxed);
}

SceneGraph::SceneGraph(SceneGraph&& other) noexcept
    : frames_(std::move(other.frames_)), names_(std::move(other.names_)), joints_(std::move(other.joints_)),
      joint_names_(std::move(other.joint_names_)), bodies_(std::move(other.bodies_)),
      body_names_(std::move(other.body_names_)), allowed_(std::move(other.allowed_)), next_frame_(other.next_frame_),
      next_body_(other.next_body_), layout_(other.layout_.exchange(nullptr)) {}

SceneGraph& SceneGraph::operator=(SceneGraph other) noexcept {
    frames_ = std::move(other.frames_);
    names_ = std::move(other.names_);
    joints_ = std::move(other.joints_);
    joint_names_ = std::move(other.joint_names_);
    bodies_ = std::move(other.bodies_);
    body_names_ = std::move(other.body_names_);
    allowed_ = std::move(other.allowed_);
    next_frame_ = other.next_frame_;
    next_body_ = other.next_body_;
    other.layout_.store(layout_.exchange(other.layout_.load()));
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
    }
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
    const Pose change = pose(record(carrier.inertia_frame).name->text, frame, nullptr);
    Inertia result{carrier.inertia.mass, change.apply(carrier.inertia.center), {}};
    const Matrix3 r = change.rotation();
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j)
            for (int k = 0; k < 3; ++k)
                for (int l = 0; l < 3; ++l)
                    result.matrix[3 * i + j] += r[3 * i + k] * carrier.inertia.matrix[3 * k + l] * r[3 * j + l];
    return result;
}

bool SceneGraph::is_allowed(FrameId a, FrameId b) const { return allowed_.find(ordered(a, b)) != nullptr; }

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
    return names;
}

std::vector<AllowedPair> SceneGraph::allowed_pairs() const {
    std::vector<AllowedPair> pairs;
    pairs.reserve(allowed_.size());
    allowed_.for_each([&](const Pair& pair, const Ref<const Name>& reason) {
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
        throw Error(ErrorKind::configuration,
                    "joint '" + frame.joint->name + "' is on the path, so a configuration q is needed",
                    {{"joint", frame.joint->name}});
    return joint_rule(frame).value(q);
}

Pose SceneGraph::pose_from(FrameId ancestor, FrameId frame, const double* q) const {
    std::vector<const FrameRecord*> path;
    for (FrameId at = frame; at != ancestor;) {
        const FrameRecord& step = record(at);
        if (step.parent == no_frame) break;
        path.push_back(&step);
        at = step.parent;
    }
    Pose result;
    for (auto step = path.rbegin(); step != path.rend(); ++step) {
        const FrameRecord& edge = **step;
        result = result * (edge.joint ? moved(edge.pose, edge.joint_type, edge.joint->axis, joint_value(edge, q))
                                      : edge.pose);
    }
    return result;
}

Pose SceneGraph::pose(std::string_view target, std::string_view reference, const double* q) const {
    const FrameRecord& to = record(target);
    const FrameRecord& from = record(reference);
    std::vector<FrameId> above;  // the reference and its ancestors
    for (FrameId at = from.id; at != no_frame; at = record(at).parent) above.push_back(at);
    FrameId common = to.id;
    while (common != no_frame && std::find(above.begin(), above.end(), common) == above.end())
        common = record(common).parent;
    if (common == no_frame)
        throw Error(ErrorKind::disconnected,
                    "frames '" + std::string(target) + "' and '" + std::string(reference) + "' stand in different trees ('" +
                        record(root_of(to.id)).name->text + "' and '" + record(root_of(from.id)).name->text +
                        "'), so no pose between them is known",
                    {{"target", std::string(target)}, {"reference", std::string(reference)}});
    const Pose down = pose_from(common, to.id, q);
    return common == from.id ? down : pose_from(common, from.id, q).inverse() * down;
}

namespace {

void link_children(Layout& flat) {
    const std::size_t count = flat.size();
    flat.first_child.assign(count + 1, 0);
    for (std::int32_t parent : flat.parent)
        if (parent >= 0) ++flat.first_child[parent + 1];
    for (std::size_t i = 0; i < count; ++i) flat.first_child[i + 1] += flat.first_child[i];
    flat.child.resize(flat.first_child[count]);
    std::vector<std::int32_t> next(flat.first_child.begin(), flat.first_child.end() - 1);
    for (std::size_t i = 0; i < count; ++i)
        if (flat.parent[i] >= 0) flat.child[next[flat.parent[i]]++] = static_cast<std::int32_t>(i);
}

void sort_topologically(Layout& flat) {
    flat.root.resize(flat.size());
    for (std::size_t i = 0; i < flat.size(); ++i)
        if (flat.parent[i] < 0) {
            for (std::int32_t frame : flat.subtree(static_cast<std::int32_t>(i))) {
                flat.root[frame] = static_cast<std::int32_t>(i);
                flat.order.push_back(frame);
            }
        }
}

}  // namespace

const Layout& SceneGraph::layout() const {
    if (const Layout* built = layout_.load(std::memory_order_acquire)) return *built;
    auto flat = std::make_unique<Layout>();
    frames_.for_each([&](FrameId id, const Ref<const FrameRecord>&) { flat->ids.push_back(id); });
    frames_.for_each([&](FrameId, const Ref<const FrameRecord>& frame) {
        flat->parent.push_back(frame->parent == no_frame ? -1 : flat->index_of(frame->parent));
        flat->body.push_back(frame->body);
        flat->type.push_back(frame->joint_type);
        flat->axis.push_back(frame->joint ? frame->joint->axis : Vector3{0.0, 0.0, 1.0});
        flat->pose.push_back(frame->pose);
        const JointRule rule = frame->joint ? joint_rule(*frame) : JointRule{};
        flat->q_index.push_back(frame->joint ? static_cast<std::int32_t>(rule.entry) : -1);
        flat->multiplier.push_back(rule.multiplier);
        flat->offset.push_back(rule.offset);
    });
    joints_.for_each([&](FrameId id, const Ref<const Joint>&) { flat->joint_frame.push_back(flat->index_of(id)); });
    link_children(*flat);
    sort_topologically(*flat);
    flat->retain();
    const Layout* expected = nullptr;
    if (layout_.compare_exchange_strong(expected, flat.get(), std::memory_order_acq_rel)) return *flat.release();
    return *expected;  // another thread was first
}

bool SceneGraph::same_version(const SceneGraph& o) const {
    return frames_.shares_root(o.frames_) && names_.shares_root(o.names_) && bodies_.shares_root(o.bodies_) &&
           joints_.shares_root(o.joints_) && allowed_.shares_root(o.allowed_);
}

bool SceneGraph::same_content(const SceneGraph& other) const {
    if (same_version(other)) return true;
    if (size() != other.size() || allowed_.size() != other.allowed_.size()) return false;
    std::vector<const FrameRecord*> others;
    other.frames_.for_each([&](FrameId, const Ref<const FrameRecord>& frame) { others.push_back(frame.get()); });
    const auto parent_name = [](const SceneGraph& scene, const FrameRecord& frame) {
        return frame.parent == no_frame ? std::string_view() : std::string_view(scene.record(frame.parent).name->text);
    };
    bool same = true;
    std::size_t index = 0;
    frames_.for_each([&](FrameId, const Ref<const FrameRecord>& a) {
        const FrameRecord& b = *others[index++];
        if (!same) return;
        const BodyRecord &on_a = body(a->body), &on_b = other.body(b.body);
        const auto inertia_name = [](const SceneGraph& scene, const BodyRecord& on) {
            return on.inertia_frame == no_frame ? std::string_view()
                                                : std::string_view(scene.record(on.inertia_frame).name->text);
        };
        same = a->name->text == b.name->text && parent_name(*this, *a) == parent_name(other, b) &&
               on_a.name->text == on_b.name->text && a->pose == b.pose && same_joint(*a, b) && same_details(*a, b) &&
               inertia_name(*this, on_a) == inertia_name(other, on_b) && on_a.inertia == on_b.inertia;
    });
    if (!same) return false;
    for (const AllowedPair& pair : allowed_pairs()) {
        const Ref<const Name>* reason = other.allowed_.find(ordered(other.record(pair.a).id, other.record(pair.b).id));
        if (!reason || (*reason)->text != pair.reason) return false;
    }
    return true;
}

std::uint64_t SceneGraph::content_hash() const {
    std::uint64_t hash = 0x2545F4914F6CDD1Dull;
    frames_.for_each([&](FrameId, const Ref<const FrameRecord>& frame) {
        mix(hash, frame->name->text);
        mix(hash, frame->parent == no_frame ? std::string_view() : std::string_view(record(frame->parent).name->text));
        mix(hash, static_cast<std::uint64_t>(frame->joint_type));
        mix(hash, frame->pose);
        if (frame->details)
            for (const AttachedShape& attached : frame->details->shapes) mix(hash, attached.shape->digest()[0]);
    });
    mix(hash, allowed_.size());
    return hash;
}

std::string SceneGraph::defects() const {
    if (!frames_.is_valid() || !names_.is_valid() || !joints_.is_valid() || !joint_names_.is_valid() ||
        !bodies_.is_valid() || !body_names_.is_valid() || !allowed_.is_valid())
        return "a map is out of order or balance";
    if (frames_.size() != names_.size() || bodies_.size() != body_names_.size()) return "names and records differ in number";
    std::string defect;
    std::unordered_map<BodyId, std::vector<FrameId>> tops;
    std::size_t entries = 0;
    frames_.for_each([&](FrameId id, const Ref<const FrameRecord>& frame) {
        const std::string& name = frame->name->text;
        const FrameId* named = names_.find(std::string_view(name));
        if (frame->id != id || id >= next_frame_) defect = "id of " + name + " is wrong";
        if (!named || *named != id) defect = "name index misses " + name;
        if (frame->parent != no_frame && !frames_.find(frame->parent)) defect = "parent of " + name + " is gone";
        if (!bodies_.find(frame->body)) defect = "body of " + name + " is gone";
        if (frame->parent == no_frame || record(frame->parent).body != frame->body) tops[frame->body].push_back(id);
        if (is_actuated(frame->joint_type) != static_cast<bool>(frame->joint)) defect = "joint of " + name + " is wrong";
        if (!frame->joint) return;
        if (!joint_names_.find(std::string_view(frame->joint->name))) defect = "joint index misses that of " + name;
        const Ref<const Joint>* entry = joints_.find(id);
        if (frame->joint->mimic.empty() ? !entry || *entry != frame->joint : entry != nullptr)
            defect = "entry of joint " + frame->joint->name + " is wrong";
        if (!frame->joint->mimic.empty() && !joint_names_.find(std::string_view(frame->joint->mimic)))
            defect = "leader of joint " + frame->joint->name + " is gone";
        entries += frame->joint->mimic.empty();
    });
    if (!defect.empty()) return defect;
    if (entries != joints_.size()) return "entries and joints differ in number";
    bodies_.for_each([&](BodyId id, const Ref<const BodyRecord>& body) {
        std::vector<FrameId> remembered = body->tops;
        std::sort(remembered.begin(), remembered.end());
        if (remembered.empty() || remembered != tops[id]) defect = "body " + body->name->text + " misses a topmost frame";
        if (body->inertia_frame != no_frame && (!frames_.find(body->inertia_frame) || record(body->inertia_frame).body != id))
            defect = "inertia of body " + body->name->text + " is on a frame of another";
        const BodyId* named = body_names_.find(std::string_view(body->name->text));
        if (!named || *named != id) defect = "name index misses body " + body->name->text;
    });
    joint_names_.for_each([&](const Ref<const Name>& name, FrameId id) {
        const Ref<const FrameRecord>* frame = frames_.find(id);
        if (!frame || !(*frame)->joint || (*frame)->joint->name != name->text) defect = "joint index misses " + name->text;
    });
    allowed_.for_each([&](const Pair& pair, const Ref<const Name>&) {
        if (pair.first >= pair.second || !frames_.find(pair.first) || !frames_.find(pair.second))
            defect = "an allowed pair names a frame that is gone";
    });
    return defect;
}

}  // namespace tmkit
