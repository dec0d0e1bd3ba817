// Difference of two versions of a scene, by name.
//
// Versions of a lineage share nearly all of their inner trees, and shared parts are skipped:
// comparing two versions of 100,000 frames that differ in three costs microseconds
// (persistent_map.hpp). Frames are matched by their ids, which survive rename and reparenting, so a
// renamed frame is one change and not a removal and an addition. Between unrelated versions ids
// have no meaning; the difference is still correct, but not the smallest. It is empty exactly if
// both have the same content. Applied to another version than the first, it makes the same changes,
// or throws Error and changes nothing.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tmkit/scene_graph.hpp"

namespace tmkit {

struct FrameDifference {
    FrameId id;
    std::optional<FrameSpecification> before, after;  // none: the frame is missing
    bool reparented = false;  // has another parent, which may have the same name
};

// A pair by the names of its frames in each version; none if a frame is missing.
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
    // Without a frame in that version only.
    std::vector<std::string> bare_bodies_before, bare_bodies_after;

    bool empty() const { return size() == 0; }
    std::size_t size() const {
        return frames.size() + pairs.size() + groups.size() + bare_bodies_before.size() +
               bare_bodies_after.size();
    }
    SceneDifference reverse() const;
};

// O(changes log n) for versions of a lineage, else O(n).
SceneDifference difference(const SceneGraph& a, const SceneGraph& b);

}  // namespace tmkit
