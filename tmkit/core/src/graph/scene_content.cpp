// Equality of the content of two versions, and its bytes and sums.
//
// Content is: the frames in insertion order with their names, parents, bodies, joints, poses,
// stamped poses, twists, errors of both, classes, attributes and shapes; the inertia of bodies; the
// pairs that may touch; the groups. Ids are excluded, as is the form of the search trees. Numbers
// are compared as numbers, so -0.0 is 0.0. A pose is compared by its seven numbers, so q and -q,
// one rotation, make two poses, and two versions. Noise sources are compared by the edges that
// share them, not by their labels. A mesh is compared by its content, not by its file.
#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>

#include "tmkit/scene_graph.hpp"

namespace tmkit {
namespace {

std::string_view parent_name(const SceneGraph& scene, const FrameRecord& frame) {
    return frame.parent == no_frame ? std::string_view()
                                    : std::string_view(scene.record(frame.parent).name->text);
}

// Writer of values: different values give different bytes; lists follow their length.
struct Writer {
    std::string bytes;

    void append(std::uint64_t word) {
        bytes.append(reinterpret_cast<const char*>(&word), sizeof word);
    }
    // + 0.0 maps -0.0 to 0.0
    void append(double value) { append(std::bit_cast<std::uint64_t>(value + 0.0)); }
    void append(bool flag) { bytes.push_back(flag ? 1 : 0); }
    void append(std::string_view text) {
        append(static_cast<std::uint64_t>(text.size()));
        bytes.append(text);
    }
    template <class Value, std::size_t N> void append(const std::array<Value, N>& values) {
        for (const Value& value : values) append(value);
    }
    template <class Value> void append(const std::vector<Value>& values) {
        append(static_cast<std::uint64_t>(values.size()));
        for (const Value& value : values) append(value);
    }
    template <class... Parts>
        requires(sizeof...(Parts) > 1)
    void append(const Parts&... parts) {
        (append(parts), ...);
    }
    void append(const std::pair<std::string, std::string>& attribute) {
        append(attribute.first, attribute.second);
    }
    void append(const Pose& pose) { append(pose.translation, pose.quat_xyzw); }
    void append(const StampedPose& entry) { append(entry.stamp, entry.pose); }
    void append(const StampedPoses& s) {
        append(static_cast<std::uint64_t>(s.capacity), s.window, s.entries);
        if (!s.has_covariances()) return;  // the bytes of scenes without these do not change
        append(~std::uint64_t{0});         // the first byte is of no finite number
        for (const StampedPose& entry : s.entries) {
            append(static_cast<bool>(entry.covariance));
            if (entry.covariance) append(entry.covariance->value.matrix());
        }
    }
    void append(const Inertia& inertia) { append(inertia.mass, inertia.center, inertia.matrix); }
    void append(const Joint& j) {
        append(j.name, j.axis, j.lower, j.upper, j.velocity, j.effort, j.damping, j.friction,
               j.mimic, j.mimic_multiplier, j.mimic_offset);
    }
    void append(const AttachedShape& a) {
        const std::uint64_t level = a.level ? 1 + static_cast<std::uint64_t>(*a.level) : 0;
        append(a.shape->digest(), a.pose, a.color, a.has_color, a.visual, a.collision,
               a.friction.has_value(), a.friction.value_or(0.0), level + (a.stamp ? 256 : 0));
        if (a.stamp) append(*a.stamp);
    }
    void append(const GroupSpecification& group) {
        append(group.name, group.frames, group.groups);
        // The bytes of scenes without these do not change.
        if (group.parents.empty() && group.attributes.empty()) return;
        // The first byte is no length of a name.
        append(~std::uint64_t{0}, group.parents, group.attributes);
    }
};

// Noise sources by the order of their first frames.
class SourceNumbers {
public:
    std::uint64_t operator()(const Ref<const NoiseSource>& source) {
        return numbers_.emplace(source.get(), numbers_.size()).first->second;
    }

private:
    std::unordered_map<const NoiseSource*, std::uint64_t> numbers_;
};

void write(Writer& writer, const EdgeNoise& noise, SourceNumbers& number) {
    writer.append(noise.covariance.matrix(), static_cast<std::uint64_t>(noise.terms.size()));
    for (const NoiseTerm& term : noise.terms)
        writer.append(number(term.source), static_cast<std::uint64_t>(term.source->dimension));
    for (const Vector6& column : noise.maps) writer.append(column);
}

void write(Writer& writer, const SceneGraph& scene, const FrameRecord& frame,
           SourceNumbers& number) {
    const BodyRecord& body = scene.body(frame.body);
    writer.append(frame.name->text, frame.parent != no_frame, parent_name(scene, frame),
                  body.name->text, frame.pose,
                  static_cast<std::uint64_t>(joint_code(frame.joint_type, frame.is_stated)));
    if (frame.joint) writer.append(*frame.joint);
    const FrameDetails none, &details = frame.details ? *frame.details : none;
    writer.append(details.classes, details.attributes, details.shapes);
    const bool carries_inertia = body.inertia_frame == frame.id;
    const EdgeNoise* twist_noise = frame.twist_noise();
    char flags = 0, bit = 1;
    for (const bool is_there :
         {carries_inertia, details.twist.has_value(), static_cast<bool>(details.stamps),
          static_cast<bool>(frame.noise), twist_noise != nullptr}) {
        if (is_there) flags = static_cast<char>(flags + bit);
        bit = static_cast<char>(2 * bit);
    }
    writer.bytes.push_back(flags);
    if (carries_inertia) writer.append(body.inertia);
    if (details.twist) writer.append(details.twist->reference, details.twist->vector);
    if (twist_noise) write(writer, *twist_noise, number);
    if (details.stamps) writer.append(*details.stamps);
    if (frame.noise) write(writer, *frame.noise, number);
}

bool same_joint(const FrameRecord& a, const FrameRecord& b) {
    return a.joint_type == b.joint_type && a.is_stated == b.is_stated &&
           (a.joint == b.joint || (a.joint && b.joint && *a.joint == *b.joint));
}

bool same_details(const FrameRecord& a, const FrameRecord& b) {
    return a.details == b.details ||
           (a.details && b.details && a.details->same_but_for_noise(*b.details));
}

template <class SameSource>
bool same_noise(const EdgeNoise* a, const EdgeNoise* b, SameSource&& same_source) {
    if (!a || !b) return a == b;
    if (!(a->covariance == b->covariance) || a->terms.size() != b->terms.size() ||
        a->maps != b->maps)
        return false;
    for (std::size_t i = 0; i < a->terms.size(); ++i)
        if (a->terms[i].column != b->terms[i].column ||
            !same_source(a->terms[i].source, b->terms[i].source))
            return false;
    return true;
}

template <class SameSource>
bool same_noises(const FrameRecord& a, const FrameRecord& b, SameSource&& same_source) {
    return same_noise(a.noise.get(), b.noise.get(), same_source) &&
           same_noise(a.twist_noise(), b.twist_noise(), same_source);
}

bool same_frame(const SceneGraph& scene_a, const FrameRecord& a, const SceneGraph& scene_b,
                const FrameRecord& b) {
    const BodyRecord &body_a = scene_a.body(a.body), &body_b = scene_b.body(b.body);
    const bool carries_a = body_a.inertia_frame == a.id, carries_b = body_b.inertia_frame == b.id;
    return a.name->text == b.name->text && parent_name(scene_a, a) == parent_name(scene_b, b) &&
           body_a.name->text == body_b.name->text && a.pose == b.pose && same_joint(a, b) &&
           same_details(a, b) && carries_a == carries_b &&
           (!carries_a || body_a.inertia == body_b.inertia);
}

}  // namespace

std::string SceneGraph::content_bytes() const {
    Writer writer;
    writer.append(static_cast<std::uint64_t>(frames_.size()));
    SourceNumbers number;
    frames_.for_each([&](FrameId, const Ref<const FrameRecord>& frame) {
        write(writer, *this, *frame, number);
    });
    // By name: ids are no content.
    std::map<std::pair<std::string, std::string>, std::string> pairs;
    for (AllowedPair& pair : allowed_pairs()) {
        if (pair.b < pair.a) std::swap(pair.a, pair.b);
        pairs[{pair.a, pair.b}] = pair.reason;
    }
    writer.append(static_cast<std::uint64_t>(pairs.size()));
    for (const auto& [names, reason] : pairs) writer.append(names, reason);
    writer.append(static_cast<std::uint64_t>(groups_.size()));
    for (const std::string& name : group_names()) writer.append(group(name));
    for (const std::string& name : bodies_without_frames()) writer.append(name);
    return std::move(writer.bytes);
}

// Add the hash of a record to a sum, or subtract it.
static void change(ContentSum& sum, char kind, const std::string& bytes, bool comes) {
    ContentHash hash;
    hash.add(&kind, 1);
    hash.add(bytes.data(), bytes.size());
    for (std::size_t lane = 0; lane < sum.size(); ++lane)
        sum[lane] += comes ? hash.lanes()[lane] : -hash.lanes()[lane];
}

static bool is_renamed(const auto* before, const auto* after) {
    return before && after && before->name->text != after->name->text;
}

// Subtract the old records of frames with these ids from the sum and add the new ones; fails for
// frames with errors.
bool SceneGraph::add_frames(const SceneGraph& before, const std::vector<FrameId>& ids,
                            ContentSum& sum) const {
    SourceNumbers number;
    for (const FrameId id : ids)
        for (const SceneGraph* scene : {&before, this}) {
            const FrameRecord* frame = scene->find(id);
            if (!frame) continue;
            if (before.size() && (frame->noise || frame->twist_noise())) return false;
            const std::size_t rank = scene->frames_.rank(id);
            Writer writer;
            writer.append(rank ? scene->frames_.at_rank(rank - 1).value->name->text
                               : std::string());
            write(writer, *scene, *frame, number);
            change(sum, 'f', writer.bytes, scene == this);
        }
    return true;
}

// Changes of frames, and of bodies without frames.
bool SceneGraph::add_frame_changes(const SceneGraph& before, ContentSum& sum) const {
    std::vector<FrameId> ids;
    bool is_certain = true;
    const auto add_next = [&ids](const SceneGraph& scene, FrameId id) {
        const std::size_t next = scene.frames_.rank(id) + 1;
        if (next < scene.size()) ids.push_back(scene.frames_.at_rank(next).key);
    };
    for_each_changed_frame(before, *this,
                           [&](FrameId id, const FrameRecord* x, const FrameRecord* y) {
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

// The sum is over the hashes of records: of each frame with the name of the one before it, which
// gives their order, of each pair, group, and body without frames. Records refer to others by name
// and to sources by number. Unless `before` is empty, this therefore fails if a name, or a frame
// with errors, changed.
bool SceneGraph::add_changes(const SceneGraph& before, ContentSum& sum) const {
    if (!add_frame_changes(before, sum)) return false;
    const auto add = [&](char kind, const SceneGraph& scene, const auto&... parts) {
        Writer writer;
        (writer.append(parts), ...);
        change(sum, kind, writer.bytes, &scene == this);
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
    maps.last_hash_ = nullptr;  // no cycle
    maps.layout_before_ = nullptr;
    maps.index_ = nullptr;
    last.sum = sum;
    return sum;
}

std::uint64_t SceneGraph::content_hash() const {
    if (!hash_.load(std::memory_order_relaxed))
        hash_.store(content_sum()[0] | 1, std::memory_order_relaxed);
    return hash_.load(std::memory_order_relaxed);
}

bool SceneGraph::same_version(const SceneGraph& o) const {
    return frames_.shares_root(o.frames_) && names_.shares_root(o.names_) &&
           bodies_.shares_root(o.bodies_) && joints_.shares_root(o.joints_) &&
           allowed_.shares_root(o.allowed_) && groups_.shares_root(o.groups_);
}

bool SceneGraph::same_content(const SceneGraph& other) const {
    if (same_version(other)) return true;
    if (size() != other.size() || pair_count() != other.pair_count() ||
        groups_.size() != other.groups_.size())
        return false;
    const std::uint64_t mine = hash_.load(std::memory_order_relaxed),
                        theirs = other.hash_.load(std::memory_order_relaxed);
    if (mine && theirs && mine != theirs) return false;
    const std::optional<bool> result = same_changes(other);
    return result ? *result : same_all(other);
}

namespace {

// Unshared parts of two versions: the ids of frames that may differ, and the names of bodies
// without frames.
struct Unshared {
    std::array<std::vector<FrameId>, 2> frames;
    std::array<std::vector<std::string_view>, 2> bodies;
    bool is_certain = true;  // whether each name has the same frame or body in both

    void add_frames(const SceneGraph& a, const SceneGraph& b) {
        SceneGraph::for_each_changed_frame(
            a, b, [&](FrameId id, const FrameRecord* x, const FrameRecord* y) {
            if (x) frames[0].push_back(id);
            if (y) frames[1].push_back(id);
            if (is_renamed(x, y)) is_certain = false;  // records of children do not show a rename
        });
    }
    void add_bodies(const SceneGraph& a, const SceneGraph& b) {
        SceneGraph::for_each_changed_body(a, b, [&](const BodyRecord* x, const BodyRecord* y) {
            if (is_renamed(x, y)) is_certain = false;
            for (const auto& [body, side] : {std::pair(x, 0), std::pair(y, 1)}) {
                if (body && body->inertia_frame != no_frame)
                    frames[side].push_back(body->inertia_frame);
                if (body && body->tops.empty()) bodies[side].push_back(body->name->text);
            }
        });
        for (auto& names : bodies) std::sort(names.begin(), names.end());
    }
};

}  // namespace

// Compare the unshared parts of two versions. The shared ones are equal if names have the same
// frames and the sources of errors are the same. None if that is not so or most differs: then
// compare all.
std::optional<bool> SceneGraph::same_changes(const SceneGraph& other) const {
    Unshared unshared;
    unshared.add_frames(*this, other);
    if (unshared.frames[0].size() > 8 + size() / 8) return std::nullopt;
    unshared.add_bodies(*this, other);
    if (unshared.bodies[0] != unshared.bodies[1]) return false;
    // Equal scenes have equal frames at equal ranks, with any ids.
    std::vector<std::size_t> places;
    for (const FrameId id : unshared.frames[0]) places.push_back(frames_.rank(id));
    for (const FrameId id : unshared.frames[1]) places.push_back(other.frames_.rank(id));
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    const auto same_source = [&](const Ref<const NoiseSource>& x, const Ref<const NoiseSource>& y) {
        // Two sources may correspond, if they do everywhere.
        if (!(x == y)) unshared.is_certain = false;
        return true;
    };
    for (const std::size_t place : places) {
        const FrameRecord &a = *frames_.at_rank(place).value,
                          &b = *other.frames_.at_rank(place).value;
        if (!same_frame(*this, a, other, b) || !same_noises(a, b, same_source)) return false;
    }
    if (!unshared.is_certain) return std::nullopt;
    bool same = true;
    for_each_changed_pair(*this, other,
                          [&](FrameId first, FrameId second, const Name* reason, const Name*) {
        if (reason)
            same = same && other.has_pair(record(first).name->text, record(second).name->text,
                                          reason->text);
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
        if (same)
            same = same_frame(*this, frame, other, *twin) && same_noises(frame, *twin, same_source);
    });
    if (!same) return false;
    for (const AllowedPair& pair : allowed_pairs())
        if (!other.has_pair(pair.a, pair.b, pair.reason)) return false;
    for (const std::string& name : group_names())
        if (!other.groups_.find(std::string_view(name)) || group(name) != other.group(name))
            return false;
    return bodies_without_frames() == other.bodies_without_frames();
}

bool SceneGraph::has_pair(std::string_view a, std::string_view b, std::string_view reason) const {
    const Ref<const Name>* match = allowed_.find(Pair{record(a).id, record(b).id});
    return match && (*match)->text == reason;
}

}  // namespace tmkit
