#include "tmkit/frame_index.hpp"

#include <algorithm>

#include "tmkit/error.hpp"

namespace tmkit {

std::vector<FrameId> FrameIndex::children(const FrameMap& frames, FrameId parent) {
    const std::lock_guard guard(mutex_);
    stand_for(frames);
    std::vector<FrameId> ids;
    append_children(parent, ids);
    return ids;
}

std::vector<FrameId> FrameIndex::subtree(const FrameMap& frames, FrameId top) {
    const std::lock_guard guard(mutex_);
    stand_for(frames);
    std::vector<FrameId> ids{top};
    for (std::size_t next = 0; next < ids.size(); ++next) append_children(ids[next], ids);
    return ids;
}

std::vector<FrameId> FrameIndex::of_class(const FrameMap& frames, std::string_view name) {
    const std::lock_guard guard(mutex_);
    stand_for(frames);
    const auto members = classes_.find(name);
    if (members == classes_.end()) return {};
    return {members->second.begin(), members->second.end()};
}

std::string FrameIndex::class_like(const FrameMap& frames, std::string_view name) {
    const std::lock_guard guard(mutex_);
    stand_for(frames);
    std::string nearest;
    std::size_t least = name.size() / 4 + 1;
    for (const auto& [candidate, members] : classes_) {
        const std::size_t longer = std::max(candidate.size(), name.size());
        if (longer - std::min(candidate.size(), name.size()) >= least) continue;
        const std::size_t distance = edit_distance(name, candidate);
        if (distance < least) {
            least = distance;
            nearest = candidate;
        }
    }
    return nearest;
}

void FrameIndex::stand_for(const FrameMap& frames) {
    if (frames_.shares_root(frames)) return;
    try {
        if (links_.empty()) {  // a set of a sorted range is built in O(n)
            std::vector<std::pair<FrameId, FrameId>> links;
            links.reserve(frames.size());
            frames.for_each([&](FrameId id, const Ref<const FrameRecord>& frame) {
                links.emplace_back(frame->parent, id);
            });
            std::sort(links.begin(), links.end());
            links_ = std::set<std::pair<FrameId, FrameId>>(links.begin(), links.end());
        }
        FrameMap::for_each_difference(frames_, frames,
                                      [&](FrameId id, const auto* before, const auto* after) {
            update(id, before ? before->get() : nullptr, after ? after->get() : nullptr);
        });
        frames_ = frames;
    } catch (...) {  // out of memory: the next query starts anew
        links_.clear();
        classes_.clear();
        frames_ = FrameMap();
        throw;
    }
}

void FrameIndex::update(FrameId id, const FrameRecord* before, const FrameRecord* after) {
    if (!before || !after || before->parent != after->parent) {
        if (before) links_.erase({before->parent, id});
        if (after) links_.insert({after->parent, id});
    }
    const FrameDetails* had = before ? before->details.get() : nullptr;
    const FrameDetails* has = after ? after->details.get() : nullptr;
    if (had == has) return;
    if (had)
        for (const std::string& name : had->classes) {
            const auto members = classes_.find(name);
            if (members == classes_.end()) continue;  // the frame lists the class twice
            members->second.erase(id);
            if (members->second.empty()) classes_.erase(members);
        }
    if (has)
        for (const std::string& name : has->classes) classes_[name].insert(id);
}

void FrameIndex::append_children(FrameId parent, std::vector<FrameId>& ids) const {
    for (auto link = links_.lower_bound({parent, 0}); link != links_.end() && link->first == parent;
         ++link)
        ids.push_back(link->second);
}

}  // namespace tmkit
