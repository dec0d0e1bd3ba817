#include "tmkit/layout.hpp"

#include <algorithm>

namespace tmkit {

std::int32_t Layout::index_of(FrameId id) const {
    // Ids are given in order: without removals, each stands at its own place.
    const std::size_t direct = id - ids.front();
    if (direct < ids.size() && ids[direct] == id) return static_cast<std::int32_t>(direct);
    return static_cast<std::int32_t>(std::lower_bound(ids.begin(), ids.end(), id) - ids.begin());
}

void Layout::forward(const double* q, Pose* poses) const {
    std::copy(still.begin(), still.end(), poses);
    for (const std::int32_t frame : moving)
        poses[frame] = poses[parent[frame]] * edge(frame, q);  // a root is still, so there is a parent
}

void Layout::forward_moving(const double* q, Pose* poses) const {
    for (const std::int32_t frame : moving) {
        const std::int32_t above = parent[frame];
        poses[slot[frame]] = (slot[above] < 0 ? still[above] : poses[slot[above]]) * edge(frame, q);
    }
}

std::vector<std::int32_t> Layout::subtree(std::int32_t frame) const {
    std::vector<std::int32_t> found{frame};
    for (std::size_t next = 0; next < found.size(); ++next)
        found.insert(found.end(), child.begin() + first_child[found[next]], child.begin() + first_child[found[next] + 1]);
    return found;
}

void Layout::link_children() {
    const std::size_t count = size();
    first_child.assign(count + 1, 0);
    for (std::int32_t above : parent)
        if (above >= 0) ++first_child[above + 1];
    for (std::size_t i = 0; i < count; ++i) first_child[i + 1] += first_child[i];
    child.resize(first_child[count]);
    std::vector<std::int32_t> next(first_child.begin(), first_child.end() - 1);
    for (std::size_t i = 0; i < count; ++i)
        if (parent[i] >= 0) child[next[parent[i]]++] = static_cast<std::int32_t>(i);
}

void Layout::sort_topologically() {
    root.resize(size());
    order.clear();
    order.reserve(size());
    for (std::size_t i = 0; i < size(); ++i) {
        if (parent[i] >= 0) continue;
        std::size_t next = order.size();
        for (order.push_back(static_cast<std::int32_t>(i)); next < order.size(); ++next) {
            const std::int32_t frame = order[next];
            root[frame] = static_cast<std::int32_t>(i);
            order.insert(order.end(), child.begin() + first_child[frame], child.begin() + first_child[frame + 1]);
        }
    }
}

// Whether a frame is still, and where, when its parent has been asked already. A slot of 0 stands for moving until
// list_moving numbers them.
void Layout::fold(std::int32_t frame) {
    const std::int32_t above = parent[frame];
    slot[frame] = above < 0 || (slot[above] < 0 && q_index[frame] < 0) ? -1 : 0;
    still[frame] = slot[frame] >= 0 ? Pose{} : above < 0 ? pose[frame] : still[above] * pose[frame];
}

void Layout::list_moving() {
    moving.clear();
    for (const std::int32_t frame : order) {
        if (slot[frame] < 0) continue;
        slot[frame] = static_cast<std::int32_t>(moving.size());
        moving.push_back(frame);
    }
}

void Layout::complete() {
    link_children();
    sort_topologically();
    slot.assign(size(), -1);
    still.assign(size(), Pose{});
    for (const std::int32_t frame : order) fold(frame);
    list_moving();
}

void Layout::complete(std::span<const std::int32_t> changed, bool relinked) {
    if (relinked) {
        link_children();
        sort_topologically();
    }
    if (changed.size() == 1)
        for (const std::int32_t frame : subtree(changed.front())) fold(frame);
    else  // one may hang below another, so in order
        for (const std::int32_t frame : order) fold(frame);
    list_moving();
}

bool Layout::same_content(const Layout& o) const {
    return ids == o.ids && body == o.body && type == o.type && axis == o.axis && q_index == o.q_index &&
           multiplier == o.multiplier && offset == o.offset && joint_frame == o.joint_frame && parent == o.parent &&
           pose == o.pose && root == o.root && order == o.order && first_child == o.first_child && child == o.child &&
           moving == o.moving && slot == o.slot && still == o.still;
}

}  // namespace tmkit
