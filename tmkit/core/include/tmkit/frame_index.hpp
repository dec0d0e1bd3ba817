// An index of the frames of a version by parent and by class, shared by all versions of a lineage.
//
// No edit maintains it, so it adds no cost to an edit. A query first moves the index from the
// version of the previous query to its own, changed frame by changed frame: O(changes log n), since
// the shared part of both versions is skipped (persistent_map.hpp). The first query builds it in
// O(n log n). Queries of one version, of neighbours in a search tree, or of a chain of edits
// therefore cost O(log n) plus the size of their result.
//
// A mutex serialises the queries. The index holds the map of frames of its version.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tmkit/persistent_map.hpp"
#include "tmkit/scene_records.hpp"

namespace tmkit {

using FrameMap = PersistentMap<FrameId, Ref<const FrameRecord>>;

class FrameIndex : public Shared {
public:
    // Ids of the children of a frame, ascending; of no_frame: the roots.
    std::vector<FrameId> children(const FrameMap& frames, FrameId parent);
    // The frame and all its descendants, parents before children, level by level.
    std::vector<FrameId> subtree(const FrameMap& frames, FrameId top);
    // Ids of the frames of a class, ascending.
    std::vector<FrameId> of_class(const FrameMap& frames, std::string_view name);
    // The class most similar to `name` of those that frames have, or an empty string if none
    // differs by at most a quarter of the letters. O(sum of the lengths of the classes).
    std::string class_like(const FrameMap& frames, std::string_view name);

private:
    void stand_for(const FrameMap& frames);
    void update(FrameId id, const FrameRecord* before, const FrameRecord* after);
    void append_children(FrameId parent, std::vector<FrameId>& ids) const;

    std::mutex mutex_;
    FrameMap frames_;                              // of the version of the index
    std::set<std::pair<FrameId, FrameId>> links_;  // (parent, child)
    std::map<std::string, std::set<FrameId>, std::less<>> classes_;
};

}  // namespace tmkit
