#include "tmkit/scene_arrays.hpp"

#include <algorithm>
#include <set>

#include "tmkit/scene_edit.hpp"

namespace tmkit {
namespace {

constexpr std::size_t least_frames = 64, least_name_bytes = 64, pairs_per_frame = 4,
                      least_stamps = 256, more_groups = 16, members_per_frame = 2;
constexpr std::size_t most = 1u << 30;  // slots are 32-bit numbers

void require_room(const std::string& kind, std::size_t capacity, std::size_t needed) {
    if (needed <= capacity && capacity <= most) return;
    const std::string argument = kind == "frames" ? "capacity" : kind;
    const std::string problem = capacity > most ? format_text("at most {} can be kept", most)
                                                : format_text("the scene alone needs {}", needed);
    throw Error(ErrorKind::capacity, "{} is {}, but {}", argument, capacity, problem)
        .with({{"kind", kind}, {"capacity", capacity}});
}

// Required capacities of a scene.
Capacities needed_for(const SceneGraph& scene) {
    Capacities needed{0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    const auto name = [&needed](std::string_view text) {
        needed.name_bytes = std::max(needed.name_bytes, text.size());
    };
    needed.frames = scene.size();
    std::set<BodyId> bodies;
    std::set<const NoiseSource*> sources;
    bool has_covariances = false;  // of stamped poses
    for (const FrameId id : scene.layout().ids) {
        const FrameRecord& frame = scene.record(id);
        if (frame.noise)
            for (const NoiseTerm& term : frame.noise->terms)
                if (sources.insert(term.source.get()).second)
                    needed.noise += term.source->dimension;
        bodies.insert(frame.body);
        name(frame.name->text);
        name(scene.body(frame.body).name->text);
        if (frame.joint) name(frame.joint->name);
        if (!frame.details) continue;
        needed.shapes += frame.details->shapes.size();
        needed.twists += frame.details->twist.has_value();
        if (!frame.details->stamps) continue;
        needed.stamps += frame.details->stamps->entries.size();
        if (frame.details->stamps->has_covariances()) has_covariances = true;
    }
    if (has_covariances) needed.noise = std::max(needed.noise, columns_of_covariance);
    needed.bodies = bodies.size();
    for (const std::string& body : scene.bodies_without_frames()) {
        name(body);
        ++needed.bodies;
    }
    for (const std::string& group : scene.group_names()) {
        const GroupSpecification members = scene.group(group);
        name(group);
        ++needed.groups;
        needed.group_members +=
            members.frames.size() + members.groups.size() + members.parents.size();
    }
    for (const AllowedPair& pair : scene.allowed_pairs()) {
        name(pair.reason);
        ++needed.allowed_pairs;
    }
    return needed;
}

}  // namespace

Capacities Capacities::complete_for(const SceneGraph& scene) const {
    const Capacities needed = needed_for(scene);
    Capacities result = *this;
    const auto suits = [](std::size_t& capacity, std::size_t count) {
        if (capacity == as_suits) capacity = std::min(count, most);
    };
    suits(result.frames, std::max(least_frames, 2 * needed.frames));
    suits(result.bodies, std::max(result.frames, needed.bodies));
    suits(result.shapes, needed.shapes + result.frames);
    suits(result.allowed_pairs, needed.allowed_pairs + pairs_per_frame * result.frames);
    suits(result.name_bytes, std::max(least_name_bytes, needed.name_bytes));
    suits(result.twists, needed.twists + result.frames);
    suits(result.stamps, std::max(least_stamps, 2 * needed.stamps));
    suits(result.groups, needed.groups + more_groups);
    suits(result.group_members, needed.group_members + members_per_frame * result.frames);
    suits(result.noise, needed.noise);
    for (const auto& [name, capacity] : capacity_names)
        require_room(name, result.*capacity, needed.*capacity);
    return result;
}

SceneArrays::SceneArrays(const SceneGraph& scene, const Capacities& requested)
    : SceneArrays(scene, requested.complete_for(scene), nullptr) {}

SceneArrays::SceneArrays(const SceneGraph& scene, const Capacities& c, std::nullptr_t)
    : capacities_(c), next_id_(scene.next_frame_id()), free_stamp_(c.stamps ? 0 : none) {
    for (std::size_t i = 1; i < c.stamps; ++i)
        older_.store(static_cast<Slot>(i - 1), static_cast<Slot>(i));
    for (Ref<EdgeNoise>& noise : noise_) {
        noise = make_ref<EdgeNoise>();
        noise->terms.reserve(c.noise);
        noise->maps.reserve(c.noise);
    }
    noise_sum_.reserve(c.noise + 1, c.noise + 1);
    twist_rules_.reserve(c.twists + 1);
    body_ways_.steps.reserve(c.twists + c.frames);
    body_ways_.reached.reserve(c.bodies);
    body_ways_.edges.reserve(c.frames);
    load(scene);
}

void SceneArrays::load(const SceneGraph& scene) {
    const Layout& layout = scene.layout();
    for (std::size_t i = 0; i < layout.size(); ++i) {
        const auto slot = static_cast<Slot>(i);
        free_frames_.pop_back();
        sequence_.store(slot, slot);
        order_[i] = layout.tree().order[i];
        position_[order_[i]] = slot;
        parent_.store(slot, layout.parent[i]);
        load_frame(scene, scene.record(layout.ids[i]), slot);
    }
    counts_.store(frame_count, static_cast<std::int32_t>(layout.size()));
    for (auto current_slot = layout.size(); current_slot-- > 0;)
        if (const auto slot = static_cast<Slot>(current_slot); parent_[slot] != none)
            children_.link(parent_[slot], slot);
    for (std::size_t i = 0; i < layout.size(); ++i) {
        const auto slot = static_cast<Slot>(i);
        if (is_top(slot)) tops_.link(body_[slot], slot);
        const FrameRecord& record = scene.record(layout.ids[i]);
        if (!record.joint || record.joint->mimic.empty()) continue;
        leader_[i] = joint_names_.find(record.joint->mimic);
        ++followers_;
    }
    for (const AllowedPair& pair : scene.allowed_pairs())
        allow_collision(pair.a, pair.b, pair.reason);
    for (const std::string& body : scene.bodies_without_frames()) add_body(body);
    load_twists(scene);
    for (const GroupSpecification& group : scene.groups_inside_out()) set_group(group);
    renew_entries();
    for (std::size_t i = 0; i < layout.size(); ++i) refresh(order_[i]);
}

void SceneArrays::load_frame(const SceneGraph& scene, const FrameRecord& record, Slot slot) {
    id_.store(slot, record.id);
    frame_names_.insert(slot, record.name->text);
    type_.store(slot, record.joint_type);
    stated_.store(slot, record.is_stated);
    pose_.store(slot, record.pose);
    if (record.noise) {
        require_noise_fits(record.noise->maps.size());
        write_noise(slot, record.noise.get());
    }
    if (record.joint) {
        const Joint& joint = *record.joint;
        axis_.store(slot, joint.axis);
        numbers_[slot] = joint.numbers();
        joint_names_.insert(slot, joint.name);
    }
    const BodyRecord& on = scene.body(record.body);
    Slot body = body_names_.find(on.name->text);
    if (body == none) body = take_body(on.name->text);
    body_.store(slot, body);
    if (on.inertia_frame == record.id) {
        inertia_frame_[body] = slot;
        inertia_[body] = on.inertia;
    }
    if (!record.details) return;
    details_[slot] = record.details;
    for (const AttachedShape& attached : record.details->shapes)
        shapes_.append(first_shape_[slot], attached);
    if (!record.details->stamps) return;
    stamp_count_.store(slot, 0);
    stamp_capacity_.store(slot, record.details->stamps->capacity);
    stamp_window_.store(slot, record.details->stamps->window);
    for (const StampedPose& entry : record.details->stamps->entries) insert_stamp(slot, entry);
}

void SceneArrays::load_twists(const SceneGraph& scene) {
    for (const FrameId id : scene.frames_with_twists()) {
        const FrameRecord& frame = scene.record(id);
        const TwistEdge& edge = *frame.details->twist;
        const Slot slot = frame_names_.find(frame.name->text);
        append_twist(slot, body_names_.find(edge.reference));
        twist_vector_.store(slot, edge.vector);
        twist_noise_[slot] = edge.noise;
    }
}

Joint SceneArrays::joint_of(Slot slot) const {
    Joint joint;
    joint.type = type_[slot];
    joint.is_stated = stated_[slot] != 0;
    if (!is_actuated(joint.type)) return joint;
    joint.numbers() = numbers_[slot];
    joint.name = joint_names_.view(slot);
    joint.axis = axis_[slot];
    if (leader_[slot] != none) joint.mimic = joint_names_.view(leader_[slot]);
    return joint;
}

FrameSpecification SceneArrays::specification(Slot slot) const {
    FrameSpecification result;
    result.name = frame_names_.view(slot);
    if (parent_[slot] != none) result.parent = frame_names_.view(parent_[slot]);
    result.pose = pose_[slot];
    result.joint = joint_of(slot);
    result.body = body_names_.view(body_[slot]);
    if (details_[slot]) {
        result.classes = details_[slot]->classes;
        result.attributes = details_[slot]->attributes;
    }
    if (const Slot reference = twist_reference_[slot]; reference != none)
        result.twist = TwistEdge{std::string(body_names_.view(reference)), twist_vector_[slot],
                                 twist_noise_[slot]};
    if (const EdgeNoise* noise = noise_at(slot))
        result.noise = Ref<const EdgeNoise>(new EdgeNoise(*noise));
    if (stamp_count_[slot] != none)
        result.stamps = Ref<const StampedPoses>(new StampedPoses(*history(slot)));
    shapes_.for_each(first_shape_[slot],
                     [&](const AttachedShape& shape) { result.shapes.push_back(shape); });
    const Slot body = body_[slot];
    if (inertia_frame_[body] == slot) result.inertia = inertia_[body];
    return result;
}

FrameSpecification SceneArrays::specification(std::string_view frame) const {
    const Writer writer(lock_);
    return specification(require_frame(frame));
}

SceneGraph SceneArrays::freeze() const {
    const Writer writer(lock_);
    NumberedFrames frames;
    frames.reserve(size());
    for (std::int32_t i = 0; i < counts_[frame_count]; ++i)
        frames.emplace_back(id_[sequence_[i]], specification(sequence_[i]));
    SceneEdit edit{SceneGraph()};
    for (const std::string& body : bodies_without_frames()) edit.add_body(body);
    edit.add_frames_with_ids(frames);
    edit.skip_ids(next_id_);
    const auto name_of = [&edit](FrameId id) { return edit.scene().record(id).name->text; };
    for (std::int32_t pair = 0; pair < pair_count_; ++pair) {
        const auto& [a, b] = pair_ids_[pair];
        edit.allow_collision(name_of(a), name_of(b), reasons_.view(pair));
    }
    for (std::size_t group = 0; group < is_group_.size();
         ++group)  // all groups first, since they may nest
        if (is_group_[group])
            edit.set_group({std::string(group_names_.view(static_cast<Slot>(group))), {}, {}});
    for (std::size_t group = 0; group < is_group_.size(); ++group)
        if (is_group_[group]) edit.set_group(members_of(static_cast<Slot>(group)));
    return std::move(edit).take();
}

}  // namespace tmkit
