// Path from a frame up to its root, the first step of every query between two frames.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "tmkit/scene_errors.hpp"
#include "tmkit/scene_graph.hpp"

namespace tmkit {

// The frames from one up to its root, without a heap allocation unless the tree is very deep.
class Ascent {
public:
    Ascent(const SceneGraph& scene, const FrameRecord& frame) {
        push(&frame);
        for (FrameId ancestor = frame.parent; ancestor != no_frame; ancestor = back()->parent)
            push(&scene.record(ancestor));
    }
    std::size_t size() const { return size_; }
    const FrameRecord* operator[](std::size_t i) const {
        return i < near_.size() ? near_[i] : far_[i - near_.size()];
    }
    const FrameRecord* back() const { return (*this)[size_ - 1]; }

private:
    void push(const FrameRecord* frame) {
        if (size_ < near_.size()) near_[size_] = frame;
        else far_.push_back(frame);
        ++size_;
    }
    std::array<const FrameRecord*, 32> near_;
    std::vector<const FrameRecord*> far_;
    std::size_t size_ = 0;
};

// The number of frames of each ascent below the nearest common ancestor. Throws Error(disconnected)
// if there is none.
inline std::pair<std::size_t, std::size_t> below_common(const Ascent& a, const Ascent& b) {
    if (a.back() != b.back())
        throw errors::disconnected(a[0]->name->text, b[0]->name->text, a.back()->name->text,
                                   b.back()->name->text);
    std::size_t i = a.size(), j = b.size();
    while (i > 0 && j > 0 && a[i - 1] == b[j - 1]) --i, --j;
    return {i, j};
}

// parent_from_frame at configuration q.
inline Pose edge_pose(const SceneGraph& scene, const FrameRecord& edge, const double* q) {
    return edge.joint ? apply_joint(edge.pose, edge.joint_type, edge.joint->axis,
                                    scene.joint_value(edge, q))
                      : edge.pose;
}

}  // namespace tmkit
