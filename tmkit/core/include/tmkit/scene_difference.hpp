// What differs between two versions of a scene, said by name.
//
// Versions made from one another share nearly all of their inner trees, and what is shared is not
// looked at: comparing two versions of 100,000 frames that differ in three costs microseconds
// (persistent_map.hpp). Frames are matched by their ids, which survive rename and reparenting, so a
// renamed frame is one change and not a removal and an addition. Between versions that were not
// made from one another ids mean nothing; the difference is still right, only not the smallest. It
// is empty where both have the same content, and only there. Applied to another version than the
// first it makes the same changes, or throws Error and changes nothing.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tmkit/scene_graph.hpp"

namespace tmkit {

struct FrameDifference {
    FrameId id;
    std::optional<FrameSpecification> before, after;  // none: the frame is not there
    bool reparented = false;  // hangs under another frame, which may be called like the one before
};

// A pair by the names of its frames in each version; none where one of them is not there.
struct PairDifference {
    using Names = std::optional<std::pair<std::string, std::string>>;
    Names names_before, names_after;
    std::optional<std::string> before, after;  // reasons; none: the pair is checked
};

struct GroupDifference {
    std::optional<GroupSpecification> before, after;
};

struct SceneDifference {
    std::vector<FrameDifference> frames;  // ascending ids: in insertion order
    std::vector<PairDifference> pairs;
    std::vector<GroupDifference> groups;
    std::vector<std::string> bare_bodies_before,
        bare_bodies_after;  // without a frame in the one version only

    bool empty() const { return size() == 0; }
    std::size_t size() const {
        return frames.size() + pairs.size() + groups.size() + bare_bodies_before.size() +
               bare_bodies_after.size();
    }
    SceneDifference reversed() const;
};

// O(changes log n) between versions made from one another, O(n) else.
SceneDifference difference(const SceneGraph& a, const SceneGraph& b);

}  // namespace tmkit
