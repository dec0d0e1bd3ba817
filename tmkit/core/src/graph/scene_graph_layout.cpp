// Layout of a version: computed anew, or from that of a version a few changed frames away
// (layout.hpp).
#include <algorithm>
#include <span>

#include "tmkit/scene_graph.hpp"

namespace tmkit {
namespace {

// A frame that may differ from the previous layout.
struct Change {
    FrameId id;
    std::int32_t before;     // its number there, -1 if it was missing
    const FrameRecord* now;  // null if it was removed
};

Vector3 axis_of(const FrameRecord& frame) {
    return frame.joint ? frame.joint->axis : Vector3{0.0, 0.0, 1.0};
}

// A joint leads if it has its own entry of the configuration.
bool leads(const FrameRecord& frame) { return frame.joint && frame.joint->mimic.empty(); }

bool leads(const LayoutFrames& frames, std::int32_t number) {
    const std::int32_t entry = frames.q_index[number];
    return entry >= 0 && frames.joint_frame[entry] == number;
}

std::int32_t number_of(const std::vector<FrameId>& ids, FrameId id) {
    return static_cast<std::int32_t>(std::lower_bound(ids.begin(), ids.end(), id) - ids.begin());
}

template <class Value>
std::vector<Value> with_room(const std::vector<Value>& column, std::size_t more) {
    std::vector<Value> copy;
    copy.reserve(column.size() + more);
    copy.insert(copy.end(), column.begin(), column.end());
    return copy;
}

// Updates the columns of frames and joints of a layout frame by frame: first the removed ones, then
// the changed, then the added.
class FramesUpdater {
public:
    FramesUpdater(const LayoutFrames& before, std::size_t more)
        : before_(before), frames_(make_ref<LayoutFrames>()) {
        frames_->columns() = std::apply([more](const auto&... column) {
            return std::tuple(with_room(column, more)...);
        }, before.columns());
        frames_->joint_frame = with_room(before.joint_frame, more);
    }

    // Call for the last frame first, which keeps the numbers of the others valid.
    void remove(std::int32_t number) {
        if (leads(before_, number)) drop_entry(number);
        std::apply([number](auto&... column) { (column.erase(column.begin() + number), ...); },
                   frames_->columns());
        for (std::int32_t& frame : frames_->joint_frame) frame -= frame > number;
    }

    // Change a frame by its number, after all removals. Its joint has never mimicked another.
    void change(std::int32_t number, const FrameRecord& now) {
        if (leads(*frames_, number) && !leads(now)) drop_entry(number);
        else if (!leads(*frames_, number) && leads(now)) insert_entry(number);
        frames_->body[number] = now.body;
        frames_->type[number] = now.joint_type;
        frames_->axis[number] = axis_of(now);
    }

    // Append a frame younger than all others, with the rule of its joint.
    void append(const FrameRecord& now, const JointRule& rule) {
        frames_->ids.push_back(now.id);
        frames_->body.push_back(now.body);
        frames_->type.push_back(now.joint_type);
        frames_->axis.push_back(axis_of(now));
        frames_->q_index.push_back(now.joint ? static_cast<std::int32_t>(rule.entry) : -1);
        frames_->multiplier.push_back(rule.multiplier);
        frames_->offset.push_back(rule.offset);
        if (leads(now)) insert_entry(static_cast<std::int32_t>(frames_->ids.size()) - 1);
    }

    const LayoutFrames& frames() const { return *frames_; }
    Ref<const LayoutFrames> take() && { return frames_; }

private:
    void drop_entry(std::int32_t number) {
        const std::int32_t entry = std::exchange(frames_->q_index[number], -1);
        frames_->joint_frame.erase(frames_->joint_frame.begin() + entry);
        for (std::int32_t& value : frames_->q_index) value -= value > entry;
    }

    // Entries of the configuration are in the order of frames.
    void insert_entry(std::int32_t number) {
        std::vector<std::int32_t>& leading = frames_->joint_frame;
        const auto position =
            leading.insert(std::lower_bound(leading.begin(), leading.end(), number), number);
        const auto entry = static_cast<std::int32_t>(position - leading.begin());
        frames_->q_index[number] = -1;
        for (std::int32_t& value : frames_->q_index) value += value >= entry;
        frames_->q_index[number] = entry;
    }

    const LayoutFrames& before_;
    Ref<LayoutFrames> frames_;
};

// All changes between a layout and a version.
struct Changes {
    std::array<Change, SceneGraph::most_changes> room;
    std::size_t count = 0, added = 0;
    bool same_set = true;     // of frames
    bool same_frames = true;  // nothing but parents and poses changed

    std::span<const Change> all() const { return {room.data(), count}; }

    // False for a changed joint that is or was a mimic joint, since others may follow it.
    bool take_joint(const LayoutFrames& before, const Change& change) {
        const std::int32_t number = change.before;
        const FrameRecord& now = *change.now;
        const bool led = leads(before, number);
        if ((before.q_index[number] >= 0 && !led) || (now.joint && !leads(now))) return false;
        same_frames = same_frames && before.body[number] == now.body &&
                      before.type[number] == now.joint_type &&
                      before.axis[number] == axis_of(now) && led == leads(now);
        return true;
    }

    // False for changes that cannot be applied: a frame added between others, and some joints.
    bool take(const LayoutFrames& before, FrameId id, const FrameRecord* now, bool same_joints) {
        const auto place = static_cast<std::size_t>(number_of(before.ids, id));
        const bool was_there = place < before.ids.size() && before.ids[place] == id;
        if (!was_there && !now) return true;  // added and removed again
        if (!was_there && place < before.ids.size()) return false;
        const Change change{id, was_there ? static_cast<std::int32_t>(place) : -1, now};
        if (was_there && now && !same_joints && !take_joint(before, change)) return false;
        added += !was_there;
        same_set = same_set && was_there && now;
        const auto begin = room.begin(), end = begin + count++;
        const auto position =
            std::find_if(begin, end, [id](const Change& value) { return value.id > id; });
        std::move_backward(position, end, end + 1);
        *position = change;
        return true;
    }
};

// The columns of a layout that moves change, by frame.
struct Columns {
    std::vector<std::int32_t> parents;
    std::vector<Pose> poses, still;

    Columns(const Layout& before, std::size_t more)
        : parents(with_room(before.parent, more)), poses(with_room(before.pose, more)),
          still(with_room(before.still, more)) {}
    void erase(std::int32_t number) {
        parents.erase(parents.begin() + number);
        poses.erase(poses.begin() + number);
        still.erase(still.begin() + number);
        for (std::int32_t& parent : parents) parent -= parent > number;
    }
};

// Data that moves do not change, updated; the columns, without the removed frames.
Ref<const LayoutFrames> update_frames(const SceneGraph& scene, const Changes& changes,
                                      const Layout& before, Columns& columns) {
    FramesUpdater mender(*before.frames, changes.added);
    for (std::size_t i = changes.count; i-- > 0;) {
        if (changes.room[i].now) continue;
        mender.remove(changes.room[i].before);
        columns.erase(changes.room[i].before);
    }
    for (const Change& change : changes.all())
        if (change.now && change.before >= 0)
            mender.change(number_of(mender.frames().ids, change.id), *change.now);
        else if (change.now)
            mender.append(*change.now,
                          change.now->joint ? scene.joint_rule(*change.now) : JointRule{});
    return std::move(mender).take();
}

}  // namespace

Ref<Layout> SceneGraph::fresh_layout() const {
    const std::size_t count = size();
    const auto flat = make_ref<LayoutFrames>();
    std::apply([count](auto&... column) { (column.resize(count), ...); }, flat->columns());
    flat->joint_frame.reserve(joints_.size());
    std::vector<FrameId> parents(count);
    std::vector<Pose> poses(count);
    std::int32_t number = 0;
    frames_.for_each([&](FrameId id, const Ref<const FrameRecord>& frame) {
        JointRule rule;
        if (leads(*frame)) {  // entries of the configuration are in the order of frames
            rule.entry = flat->joint_frame.size();
            flat->joint_frame.push_back(number);
        } else if (frame->joint) {
            rule = joint_rule(*frame);
        }
        flat->ids[number] = id;
        flat->body[number] = frame->body;
        flat->type[number] = frame->joint_type;
        flat->axis[number] = axis_of(*frame);
        flat->q_index[number] = frame->joint ? static_cast<std::int32_t>(rule.entry) : -1;
        flat->multiplier[number] = rule.multiplier;
        flat->offset[number] = rule.offset;
        parents[number] = frame->parent;
        poses[number++] = frame->pose;
    });
    const auto new_layout = make_ref<Layout>(Ref<const LayoutFrames>(flat));
    new_layout->parent.reserve(count);
    for (FrameId parent : parents)
        new_layout->parent.push_back(parent == no_frame ? -1 : new_layout->index_of(parent));
    new_layout->pose = std::move(poses);
    new_layout->settle(std::vector<char>(count, true));
    return new_layout;
}

Ref<Layout> SceneGraph::update_layout() const {
    const Layout& before = *layout_before_;
    Changes changes;
    for (std::uint32_t i = 0; i < change_count_; ++i)
        if (!changes.take(*before.frames, changed_[i], find(changed_[i]), joints_as_before_))
            return nullptr;

    Columns columns(before, changes.added);
    const bool same_frames = changes.same_set && changes.same_frames;
    const auto new_layout = make_ref<Layout>(
        same_frames ? before.frames : update_frames(*this, changes, before, columns));
    const std::size_t count = new_layout->ids.size();
    auto& [parents, poses, still] = columns;
    parents.resize(count, -1);
    poses.resize(count);
    still.resize(count);

    std::vector<char> stale(count, false);
    bool relinked = !changes.same_set;
    for (const Change& change : changes.all()) {
        if (!change.now) continue;
        const std::int32_t number = new_layout->index_of(change.id);
        const std::int32_t parent =
            change.now->parent == no_frame ? -1 : new_layout->index_of(change.now->parent);
        relinked = relinked || parents[number] != parent;
        parents[number] = parent;
        poses[number] = change.now->pose;
        stale[number] = true;
    }
    new_layout->parent = std::move(parents);
    new_layout->pose = std::move(poses);
    new_layout->still = std::move(still);
    new_layout->settle(std::move(stale));
    if (!relinked) new_layout->share_tree(before);
    return new_layout;
}

const Layout& SceneGraph::layout() const {
    return layout_.get([this] {
        const Ref<Layout> mended = layout_before_ ? update_layout() : nullptr;
        return mended ? mended : fresh_layout();
    });
}

}  // namespace tmkit
