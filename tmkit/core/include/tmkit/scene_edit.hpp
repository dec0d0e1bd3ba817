// Several edits that make one new version of a scene, in place.
//
// A SceneEdit starts from a version, which does not change, and edits its own copy. Shared nodes
// are copied on the first write; nodes of this version alone are changed in place
// (persistent_map.hpp). A thousand edits then cost one version and not a thousand path copies. The
// edits of SceneGraph are SceneEdits of one step.
//
// Each edit keeps all rules of the scene graph, or throws Error and changes nothing. After any edit
// `scene()` is a valid version.
#pragma once

#include "tmkit/frame_edits.hpp"

namespace tmkit {

struct FrameDifference;
struct SceneDifference;

class SceneEdit : public FrameEdits {
public:
    using FrameEdits::FrameEdits;

    // Whole scenes. All or nothing; O(m log n) for m inserted frames. Every name of `other` gets
    // the prefix; its roots are attached to a frame by `joint`, at `pose`.
    void mount(const SceneGraph& other, std::string_view under, std::string_view prefix,
               const Pose& pose, const Joint& joint);
    // A root of `other` with the name of a frame here is identified with that frame.
    void merge(const SceneGraph& other);
    // Keep only a frame, which becomes the only root, and its descendants.
    void extract(std::string_view frame);
    // Apply the difference from a to b here. O(changes log n) for independent changes, else O(n log
    // n).
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
