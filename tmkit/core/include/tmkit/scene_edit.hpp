// Many edits that make one new version of a scene, in place.
//
// A SceneEdit starts from a version, which stays as it was, and changes its own: what it shares
// with others is copied on the first touch, what is its own already is changed where it stands
// (persistent_map.hpp). So a thousand edits cost one version and not a thousand path copies. The
// edits of SceneGraph are SceneEdits of one step.
//
// Each edit holds all rules of the scene graph or throws Error, and then nothing has changed. After
// any edit `scene()` is a version like every other.
#pragma once

#include "tmkit/frame_edits.hpp"

namespace tmkit {

struct FrameDifference;
struct SceneDifference;

class SceneEdit : public FrameEdits {
public:
    using FrameEdits::FrameEdits;

    // Whole scenes. All or nothing; m is the number of frames that come in: O(m log n).
    // Every name of `other` gets the prefix; its roots hang under a frame by `joint`, at `pose`.
    void mount(const SceneGraph& other, std::string_view under, std::string_view prefix,
               const Pose& pose, const Joint& joint);
    // A root of `other` that is named like a frame here is that frame.
    void merge(const SceneGraph& other);
    // Keeps what stands below a frame, which becomes the only root.
    void extract(std::string_view frame);
    // What made b of a, done here. O(changes log n) where the changes are independent of each
    // other, O(n log n) else.
    void apply(const SceneDifference& difference);

private:
    bool add_one(const FrameDifference& frame);
    void change_edge(const std::string& name, const FrameSpecification& before,
                     const FrameSpecification& after);
    void change_contents(const std::string& name, const FrameSpecification& before,
                         const FrameSpecification& after);
    void take_inertia(const std::string& name);
    bool change_one(const FrameSpecification& before, const FrameSpecification& after);
    bool apply_one(const FrameDifference& frame);
    void apply_frames(const SceneDifference& difference);
    void rebuild(const SceneDifference& difference);
};

}  // namespace tmkit
