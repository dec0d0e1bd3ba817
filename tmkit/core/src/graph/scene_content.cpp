// When two versions say the same, and the bytes and the number that stand for what a version says.
//
// Content is: the frames in insertion order with their names, parents, bodies, joints, poses, stamped poses, twists,
// errors of both, classes, attributes and shapes; the inertia of bodies; the pairs that may touch; the groups. Ids are
// no part of it, nor the shape of the trees that hold it. Numbers are compared as numbers, so -0.0 is 0.0; a pose is
// compared by its seven numbers, so q and -q, one rotation, make two poses, and two versions. Noise sources count by
// which edges share them, not by what they are called. Of a mesh counts what it is, not where it was read.
#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>

#include "tmkit/scene_graph.hpp"

namespace tmkit {
namespace {

std::string_view parent_name(const SceneGraph& scene, const FrameRecord& frame) {
    return frame.parent == no_frame ? std::string_view() : std::string_view(scene.record(frame.parent).name->text);
}

// Writes values so that different values give different bytes.
class Writer {
public:
    void number(std::uint64_t word) { bytes_.append(reinterpret_cast<const char*>(&word), sizeof word); }
    void number(double value) { number(std::bit_cast<std::uint64_t>(value + 0.0)); }  // -0.0 becomes 0.0
    void flag(bool value) { bytes_.push_back(value ? 1 : 0); }
    void flags(std::initializer_list<bool> flags) {
        int byte = 0, bit = 1;
        for (const bool flag : flags) {
            if (flag) byte += bit;
            bit *= 2;
        }
        bytes_.push_back(static_cast<char>(byte));
    }
    void text(std::string_view text) {
        number(static_cast<std::uint64_t>(text.size()));
        bytes_.append(text);
    }
    void texts(const std::vector<std::string>& texts) {
        number(static_cast<std::uint64_t>(texts.size()));
        for (const std::string& each : texts) text(each);
    }
    template <std::size_t N> void numbers(const std::array<double, N>& values) {
        for (double value : values) number(value);
    }
    void pose(const Pose& pose) {
        numbers(pose.translation);
        numbers(pose.quat_xyzw);
    }
    std::string take() { return std::move(bytes_); }

private:
    std::string bytes_;
};

void write(Writer& out, const Joint& joint) {
    out.text(joint.name);
    out.numbers(joint.axis);
    for (double value : {joint.lower, joint.upper, joint.velocity, joint.effort, joint.damping, joint.friction})
        out.number(value);
    out.text(joint.mimic);
    out.number(joint.mimic_multiplier);
    out.number(joint.mimic_offset);
}

void write(Writer& out, const AttachedShape& attached) {
    for (std::uint64_t word : attached.shape->digest()) out.number(word);
    out.pose(attached.pose);
    out.numbers(attached.color);
    out.flag(attached.has_color);
    out.flag(attached.visual);
    out.flag(attached.collision);
    out.flag(attached.friction.has_value());
    out.number(attached.friction.value_or(0.0));
    const std::uint64_t level = attached.level ? 1 + static_cast<std::uint64_t>(*attached.level) : 0;
    out.number(level + (attached.stamp ? 256 : 0));
    if (attached.stamp) out.number(*attached.stamp);
}

void write(Writer& out, const Inertia& inertia) {
    out.number(inertia.mass);
    out.numbers(inertia.center);
    out.numbers(inertia.matrix);
}

void write(Writer& out, const StampedPoses& stamps) {
    out.number(static_cast<std::uint64_t>(stamps.capacity));
    out.number(stamps.window);
    out.number(static_cast<std::uint64_t>(stamps.entries.size()));
    for (const StampedPose& entry : stamps.entries) {
        out.number(entry.stamp);
        out.pose(entry.pose);
    }
}

void write(Writer& out, const Attributes& attributes) {
    out.number(static_cast<std::uint64_t>(attributes.size()));
    for (const auto& [key, value] : attributes) {
        out.text(key);
        out.text(value);
    }
}

// Noise sources by the order in which the frames come to them.
class SourceNumbers {
public:
    std::uint64_t operator()(const Ref<const NoiseSource>& source) {
        return numbers_.emplace(source.get(), numbers_.size()).first->second;
    }

private:
    std::unordered_map<const NoiseSource*, std::uint64_t> numbers_;
};

void write(Writer& out, const EdgeNoise& noise, SourceNumbers& number) {
    const Matrix6 covariance = noise.covariance.matrix();
    out.numbers(covariance);
    out.number(static_cast<std::uint64_t>(noise.terms.size()));
    for (const NoiseTerm& term : noise.terms) {
        out.number(number(term.source));
        out.number(static_cast<std::uint64_t>(term.source->dimension));
    }
    for (const Vector6& column : noise.maps) out.numbers(column);
}

void write(Writer& out, const SceneGraph& scene, const FrameRecord& frame, SourceNumbers& number) {
    const BodyRecord& body = scene.body(frame.body);
    out.text(frame.name->text);
    out.flag(frame.parent != no_frame);
    out.text(parent_name(scene, frame));
    out.text(body.name->text);
    out.pose(frame.pose);
    out.number(static_cast<std::uint64_t>(frame.joint_type));
    if (frame.joint) write(out, *frame.joint);
    const FrameDetails none, &details = frame.details ? *frame.details : none;
    out.texts(details.classes);
    write(out, details.attributes);
    out.number(static_cast<std::uint64_t>(details.shapes.size()));
    for (const AttachedShape& attached : details.shapes) write(out, attached);
    const bool carries_inertia = body.inertia_frame == frame.id;
    const EdgeNoise* twist_noise = frame.twist_noise();
    out.flags({carries_inertia, details.twist.has_value(), static_cast<bool>(details.stamps),
               static_cast<bool>(frame.noise), twist_noise != nullptr});
    if (carries_inertia) write(out, body.inertia);
    if (details.twist) {
        out.text(details.twist->reference);
        out.numbers(details.twist->vector);
    }
    if (twist_noise) write(out, *twist_noise, number);
    if (details.stamps) write(out, *details.stamps);
    if (frame.noise) write(out, *frame.noise, number);
}

void write(Writer& out, std::string_view text) { out.text(text); }

void write(Writer& out, const GroupSpecification& group) {
    out.text(group.name);
    out.texts(group.frames);
    out.texts(group.groups);
    if (group.parents.empty() && group.attributes.empty()) return;  // the bytes of scenes without these stay
    out.number(~std::uint64_t{0});                                  // which is no length of a name
    out.texts(group.parents);
    write(out, group.attributes);
}

bool same_joint(const FrameRecord& a, const FrameRecord& b) {
    return a.joint_type == b.joint_type &&
           (a.joint == b.joint || (a.joint && b.joint && a.joint->same_content(*b.joint)));
}

bool same_details(const FrameRecord& a, const FrameRecord& b) {
    return a.details == b.details || (a.details && b.details && a.details->same_but_for_noise(*b.details));
}

template <class SameSource> bool same_noise(const EdgeNoise* a, const EdgeNoise* b, SameSource&& same_source) {
    if (!a || !b) return a == b;
    if (!(a->covariance == b->covariance) || a->terms.size() != b->terms.size() || a->maps != b->maps) return false;
    for (std::size_t i = 0; i < a->terms.size(); ++i)
        if (a->terms[i].column != b->terms[i].column || !same_source(a->terms[i].source, b->terms[i].source))
            return false;
    return true;
}

template <class SameSource> bool same_noises(const FrameRecord& a, const FrameRecord& b, SameSource&& same_source) {
    return same_noise(a.noise.get(), b.noise.get(), same_source) &&
           same_noise(a.twist_noise(), b.twist_noise(), same_source);
}

bool same_frame(const SceneGraph& scene_a, const FrameRecord& a, const SceneGraph& scene_b, const FrameRecord& b) {
    const BodyRecord &body_a = scene_a.body(a.body), &body_b = scene_b.body(b.body);
    const bool carries_a = body_a.inertia_frame == a.id, carries_b = body_b.inertia_frame == b.id;
    return a.name->text == b.name->text && parent_name(scene_a, a) == parent_name(scene_b, b) &&
           body_a.name->text == body_b.name->text && a.pose == b.pose && same_joint(a, b) && same_details(a, b) &&
           carries_a == carries_b && (!carries_a || body_a.inertia == body_b.inertia);
}

}  // namespace

std::string SceneGraph::content_bytes() const {
    Writer out;
    out.number(static_cast<std::uint64_t>(frames_.size()));
    SourceNumbers number;
    frames_.for_each([&](FrameId, const Ref<const FrameRecord>& frame) { write(out, *this, *frame, number); });
    std::map<std::pair<std::string, std::string>, std::string> pairs;  // by name: ids are no content
    for (AllowedPair& pair : allowed_pairs()) {
        if (pair.b < pair.a) std::swap(pair.a, pair.b);
        pairs[{pair.a, pair.b}] = pair.reason;
    }
    out.number(static_cast<std::uint64_t>(pairs.size()));
    for (const auto& [names, reason] : pairs) {
        out.text(names.first);
        out.text(names.second);
        out.text(reason);
    }
    out.number(static_cast<std::uint64_t>(groups_.size()));
    for (const std::string& name : group_names()) write(out, group(name));
    for (const std::string& name : bodies_without_frames()) out.text(name);
    return out.take();
}

namespace {

// Adds the hash of a record to a sum, or takes it away.
void change(ContentSum& sum, char kind, const std::string& bytes, bool comes) {
    ContentHash hash;
    hash.add(&kind, 1);
    hash.add(bytes.data(), bytes.size());
    for (std::size_t lane = 0; lane < sum.size(); ++lane) sum[lane] += comes ? hash.lanes()[lane] : -hash.lanes()[lane];
}

bool is_renamed(const auto* before, const auto* after) {
    return before && after && before->name->text != after->name->text;
}

}  // namespace

// Takes the frames with these ids from the sum as they were and adds them as they are; gives up at one with errors.
bool SceneGraph::add_frames(const SceneGraph& before, const std::vector<FrameId>& ids, ContentSum& sum) const {
    SourceNumbers number;
    for (const FrameId id : ids)
        for (const SceneGraph* scene : {&before, this}) {
            const FrameRecord* frame = scene->find(id);
            if (!frame) continue;
            if (before.size() && (frame->noise || frame->twist_noise())) return false;
            const std::size_t rank = scene->frames_.rank(id);
            Writer out;
            out.text(rank ? scene->frames_.at_rank(rank - 1).value->name->text : std::string());
            write(out, *scene, *frame, number);
            change(sum, 'f', out.take(), scene == this);
        }
    return true;
}

// Frames, and bodies without frames.
bool SceneGraph::add_frame_changes(const SceneGraph& before, ContentSum& sum) const {
    std::vector<FrameId> ids;
    bool is_certain = true;
    const auto add_next = [&ids](const SceneGraph& scene, FrameId id) {
        const std::size_t next = scene.frames_.rank(id) + 1;
        if (next < scene.size()) ids.push_back(scene.frames_.at_rank(next).key);
    };
    for_each_changed_frame(before, *this, [&](FrameId id, const FrameRecord* x, const FrameRecord* y) {
        ids.push_back(id);
        if (is_renamed(x, y)) is_certain = false;
        if (before.size() && !(x && y)) add_next(x ? before : *this, id);
    });
    for_each_changed_body(before, *this, [&](const BodyRecord* x, const BodyRecord* y) {
        if (is_renamed(x, y)) is_certain = false;
        for (const BodyRecord* body : {x, y}) {
            if (body && body->inertia_frame != no_frame) ids.push_back(body->inertia_frame);
            if (body && body->tops.empty()) change(sum, 'b', body->name->text, body == y);
        }
    });
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    return is_certain && add_frames(before, ids, sum);
}

// The sum is over the hashes of records: of each frame with the name of the one before it, which holds their order, of
// each pair, group, and body without frames. They refer to others by name and to sources by number, so this gives up,
// unless `before` is empty, where a name, or a frame with errors changed.
bool SceneGraph::add_changes(const SceneGraph& before, ContentSum& sum) const {
    if (!add_frame_changes(before, sum)) return false;
    const auto add = [&](char kind, const SceneGraph& scene, const auto&... parts) {
        Writer out;
        (write(out, parts), ...);
        change(sum, kind, out.take(), &scene == this);
    };
    const auto add_pair = [&](const SceneGraph& scene, FrameId a, FrameId b, const Name* reason) {
        const std::string_view x = scene.record(a).name->text, y = scene.record(b).name->text;
        add('p', scene, std::min(x, y), std::max(x, y), std::string_view(reason->text));
    };
    for_each_changed_pair(before, *this, [&](FrameId a, FrameId b, const Name* x, const Name* y) {
        if (x) add_pair(before, a, b, x);
        if (y) add_pair(*this, a, b, y);
    });
    for_each_changed_group(before, *this, [&](const std::string& name) {
        if (before.has_group(name)) add('g', before, before.group(name));
        if (has_group(name)) add('g', *this, group(name));
    });
    return true;
}

ContentSum SceneGraph::content_sum() const {
    LastHash alone;
    LastHash& last = last_hash_ ? *last_hash_ : alone;
    const std::lock_guard guard(last.mutex);
    ContentSum sum = last.sum;
    if (!add_changes(last.scene, sum)) add_changes(SceneGraph(), sum = {});
    SceneMaps& maps = last.scene;
    maps = *this;
    maps.last_hash_ = nullptr;  // no circle
    maps.layout_before_ = nullptr;
    maps.index_ = nullptr;
    last.sum = sum;
    return sum;
}

std::uint64_t SceneGraph::content_hash() const {
    if (!hash_.load(std::memory_order_relaxed)) hash_.store(content_sum()[0] | 1, std::memory_order_relaxed);
    return hash_.load(std::memory_order_relaxed);
}

bool SceneGraph::same_version(const SceneGraph& o) const {
    return frames_.shares_root(o.frames_) && names_.shares_root(o.names_) && bodies_.shares_root(o.bodies_) &&
           joints_.shares_root(o.joints_) && allowed_.shares_root(o.allowed_) && groups_.shares_root(o.groups_);
}

bool SceneGraph::same_content(const SceneGraph& other) const {
    if (same_version(other)) return true;
    if (size() != other.size() || pair_count() != other.pair_count() || groups_.size() != other.groups_.size())
        return false;
    const std::uint64_t mine = hash_.load(std::memory_order_relaxed),
                        theirs = other.hash_.load(std::memory_order_relaxed);
    if (mine && theirs && mine != theirs) return false;
    const std::optional<bool> known = same_changes(other);
    return known ? *known : same_all(other);
}

namespace {

// What two versions do not share: the ids of frames that may differ, and the names of bodies without frames.
struct Unshared {
    std::array<std::vector<FrameId>, 2> frames;
    std::array<std::vector<std::string_view>, 2> bodies;
    bool is_certain = true;  // whether the names stand for the same frames and bodies

    void add_frames(const SceneGraph& a, const SceneGraph& b) {
        SceneGraph::for_each_changed_frame(a, b, [&](FrameId id, const FrameRecord* x, const FrameRecord* y) {
            if (x) frames[0].push_back(id);
            if (y) frames[1].push_back(id);
            if (is_renamed(x, y)) is_certain = false;  // children do not say that it was renamed
        });
    }
    void add_bodies(const SceneGraph& a, const SceneGraph& b) {
        SceneGraph::for_each_changed_body(a, b, [&](const BodyRecord* x, const BodyRecord* y) {
            if (is_renamed(x, y)) is_certain = false;
            for (const auto& [body, side] : {std::pair(x, 0), std::pair(y, 1)}) {
                if (body && body->inertia_frame != no_frame) frames[side].push_back(body->inertia_frame);
                if (body && body->tops.empty()) bodies[side].push_back(body->name->text);
            }
        });
        for (auto& names : bodies) std::sort(names.begin(), names.end());
    }
};

}  // namespace

// Compares what two versions do not share; what they share is equal, as long as the names stand for the same frames and
// the sources of errors are the same. None where that is not so or most differs: then all has to be compared.
std::optional<bool> SceneGraph::same_changes(const SceneGraph& other) const {
    Unshared found;
    found.add_frames(*this, other);
    if (found.frames[0].size() > 8 + size() / 8) return std::nullopt;
    found.add_bodies(*this, other);
    if (found.bodies[0] != found.bodies[1]) return false;
    std::vector<std::size_t> places;  // equal scenes have equal frames at equal places, whatever their ids
    for (const FrameId id : found.frames[0]) places.push_back(frames_.rank(id));
    for (const FrameId id : found.frames[1]) places.push_back(other.frames_.rank(id));
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    const auto same_source = [&](const Ref<const NoiseSource>& x, const Ref<const NoiseSource>& y) {
        if (!(x == y)) found.is_certain = false;  // two sources may stand for one another, if they do so everywhere
        return true;
    };
    for (const std::size_t place : places) {
        const FrameRecord &a = *frames_.at_rank(place).value, &b = *other.frames_.at_rank(place).value;
        if (!same_frame(*this, a, other, b) || !same_noises(a, b, same_source)) return false;
    }
    if (!found.is_certain) return std::nullopt;
    bool same = true;
    for_each_changed_pair(*this, other, [&](FrameId first, FrameId second, const Name* reason, const Name*) {
        if (reason) same = same && other.has_pair(record(first).name->text, record(second).name->text, reason->text);
    });
    for_each_changed_group(*this, other, [&](const std::string& name) {
        same = same && has_group(name) && other.has_group(name) && group(name) == other.group(name);
    });
    return same;
}

bool SceneGraph::same_all(const SceneGraph& other) const {
    std::vector<const FrameRecord*> others;
    others.reserve(other.size());
    other.for_each_frame([&](const FrameRecord& frame) { others.push_back(&frame); });
    bool same = true;
    std::size_t index = 0;
    SourceNumbers mine, theirs;
    const auto same_source = [&](const Ref<const NoiseSource>& a, const Ref<const NoiseSource>& b) {
        return mine(a) == theirs(b);
    };
    for_each_frame([&](const FrameRecord& frame) {
        const FrameRecord* twin = same ? others[index++] : nullptr;
        if (same) same = same_frame(*this, frame, other, *twin) && same_noises(frame, *twin, same_source);
    });
    if (!same) return false;
    for (const AllowedPair& pair : allowed_pairs())
        if (!other.has_pair(pair.a, pair.b, pair.reason)) return false;
    for (const std::string& name : group_names())
        if (!other.groups_.find(std::string_view(name)) || group(name) != other.group(name)) return false;
    return bodies_without_frames() == other.bodies_without_frames();
}

bool SceneGraph::has_pair(std::string_view a, std::string_view b, std::string_view reason) const {
    const Ref<const Name>* found = allowed_.find(Pair{record(a).id, record(b).id});
    return found && (*found)->text == reason;
}

}  // namespace tmkit
