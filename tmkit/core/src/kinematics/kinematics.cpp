#include "tmkit/kinematics.hpp"

#include <algorithm>

#include "tmkit/layout.hpp"
#include "tmkit/scene_relations.hpp"

namespace tmkit {

// The layout is built on the caller's version, before the copy, which caches it for the next query.
static const SceneGraph& laid_out(const SceneGraph& scene) {
    scene.layout();
    return scene;
}

Kinematics::Kinematics(const SceneGraph& scene, std::vector<double> q, std::vector<double> qd)
    : scene_(laid_out(scene)), layout_(&scene_.layout()), q_(std::move(q)), qd_(std::move(qd)),
      moving_(layout_->moving.size()) {
    layout_->forward_moving(q_.data(), moving_.data());
}

Pose Kinematics::pose(std::string_view target, std::string_view reference) const {
    // One evaluation order, so the bits are those of the scene.
    return scene_.pose(target, reference, q_.data());
}

std::vector<double> Kinematics::jacobian(std::string_view frame, const Vector3& point,
                                         std::optional<std::string_view> axes) const {
    std::vector<double> rows(6 * layout_->joint_count());
    const std::int32_t index = number(frame);
    layout_->jacobian(index, pose(index).apply(point),
                      [this](std::int32_t ancestor) -> const Pose& { return pose(ancestor); },
                      rows.data());
    if (!axes) return rows;
    const std::int32_t axes_frame = number(*axes);
    // Throws with the reason.
    if (layout_->root[axes_frame] != layout_->root[index]) scene_.pose(frame, *axes, q_.data());
    const Pose axes_from_root = pose(axes_frame).inverse();
    const std::size_t columns = layout_->joint_count();
    for (std::size_t half = 0; half < 6; half += 3)
        for (std::size_t column = 0; column < columns; ++column) {
            double* first = rows.data() + half * columns + column;
            const Vector3 turned_column =
                axes_from_root.rotate({first[0], first[columns], first[2 * columns]});
            for (std::size_t i = 0; i < 3; ++i) first[i * columns] = turned_column[i];
        }
    return rows;
}

Vector6 Kinematics::twist(std::string_view frame, std::string_view reference,
                          std::string_view axes) const {
    const FrameRecord &moving = scene_.record(frame), &still = scene_.record(reference),
                      &axes_frame = scene_.record(axes);
    // Throws.
    for (const FrameRecord* end : {&still, &axes_frame})
        if (scene_.root_of(end->id) != scene_.root_of(moving.id))
            scene_.pose(moving, *end, nullptr);
    // a scene without joints has velocities too: free edges do not move.
    const double none = 0.0;
    const double* qd = qd_.empty() ? &none : qd_.data();
    const auto twist =
        related_twist(scene_, &moving, moving.body, still.body, axes_frame, q_.data(), qd);
    if (twist) return *twist;
    require_stated_motion(scene_, moving, still);
    scene_.require_no_twist_on_path(frame, reference);
    throw Error(ErrorKind::scene, "the motion of frame '{}' relative to '{}' is unknown", frame,
                reference);
}

// --- layouts

std::int32_t Layout::index_of(FrameId id) const {
    // Ids are ascending: without removals, each is at its own index.
    const std::size_t direct = id - ids.front();
    if (direct < ids.size() && ids[direct] == id) return static_cast<std::int32_t>(direct);
    return static_cast<std::int32_t>(std::lower_bound(ids.begin(), ids.end(), id) - ids.begin());
}

void Layout::forward(const double* q, Pose* poses) const {
    std::copy(still.begin(), still.end(), poses);
    // a root is still, so there is a parent.
    for (const std::int32_t frame : moving) poses[frame] = poses[parent[frame]] * edge(frame, q);
}

void Layout::forward_moving(const double* q, Pose* poses) const {
    for (const std::int32_t frame : moving) {
        const std::int32_t above = parent[frame];
        poses[slot[frame]] = (slot[above] < 0 ? still[above] : poses[slot[above]]) * edge(frame, q);
    }
}

LayoutTree::LayoutTree(const std::vector<std::int32_t>& parent) {
    const std::size_t count = parent.size();
    first_child.assign(count + 1, 0);
    for (const std::int32_t above : parent)
        if (above >= 0) ++first_child[above + 1];
    for (std::size_t i = 0; i < count; ++i) first_child[i + 1] += first_child[i];
    child.resize(first_child[count]);
    std::vector<std::int32_t> next(first_child.begin(), first_child.end() - 1);
    for (std::size_t i = 0; i < count; ++i)
        if (parent[i] >= 0) child[next[parent[i]]++] = static_cast<std::int32_t>(i);
    order.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        if (parent[i] >= 0) continue;
        std::size_t next_frame = order.size();
        for (order.push_back(static_cast<std::int32_t>(i)); next_frame < order.size();
             ++next_frame) {
            const std::int32_t frame = order[next_frame];
            order.insert(order.end(), child.begin() + first_child[frame],
                         child.begin() + first_child[frame + 1]);
        }
    }
}

void Layout::settle(std::vector<char> stale_frames) {
    const auto count = static_cast<std::int32_t>(size());
    root.resize(size());
    still.resize(size());
    slot.resize(size());
    moving.resize(size());
    std::int32_t move_count = 0;
    // Settle a frame whose parent is settled, or a root. Local pointers, which the writes cannot
    // change.
    const auto settle_one = [&move_count, above_of = parent.data(), entry = q_index.data(),
                             edge_pose = pose.data(), root_of = root.data(), slot_of = slot.data(),
                             moves_at = moving.data(), still_at = still.data(),
                             stale = stale_frames.data()](std::int32_t frame) {
        const std::int32_t above = above_of[frame];
        if (above < 0) {
            root_of[frame] = frame;
            slot_of[frame] = -1;
            if (stale[frame]) still_at[frame] = edge_pose[frame];
            return;
        }
        const bool moves = slot_of[above] >= 0 || entry[frame] >= 0;
        root_of[frame] = root_of[above];
        slot_of[frame] = moves ? move_count : -1;
        moves_at[move_count] = frame;
        move_count += moves;
        if (!stale[above] && !stale[frame]) return;
        stale[frame] = true;
        still_at[frame] = moves ? Pose{} : still_at[above] * edge_pose[frame];
    };
    bool in_order = true;  // every parent precedes its children, as in most scenes
    for (std::int32_t frame = 0; frame < count; ++frame) in_order &= parent[frame] < frame;
    if (in_order) {
        for (std::int32_t frame = 0; frame < count; ++frame) settle_one(frame);
    } else {
        constexpr std::int32_t unsettled = -2;
        std::fill(slot.begin(), slot.end(), unsettled);
        // a frame, and its ancestors that are later in the order.
        std::vector<std::int32_t> waiting;
        for (std::int32_t frame = 0; frame < count; ++frame) {
            for (std::int32_t ancestor = frame; ancestor >= 0 && slot[ancestor] == unsettled;
                 ancestor = parent[ancestor])
                waiting.push_back(ancestor);
            for (; !waiting.empty(); waiting.pop_back()) settle_one(waiting.back());
        }
    }
    moving.resize(static_cast<std::size_t>(move_count));
}

}  // namespace tmkit
