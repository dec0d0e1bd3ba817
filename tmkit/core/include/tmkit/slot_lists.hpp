// Lists and sets of slots for arrays.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "tmkit/sequence_lock.hpp"

namespace tmkit {

// A column of the writer only.
template <class Value> struct Own : std::vector<Value> {
    explicit Own(std::size_t size, const Value& value = {}) : std::vector<Value>(size, value) {}
};

// Stack of free slots, which returns 0 first.
struct FreeSlots : std::vector<std::int32_t> {
    explicit FreeSlots(std::size_t count) : std::vector<std::int32_t>(count) {
        std::iota(rbegin(), rend(), 0);
    }
    std::int32_t take() {
        const std::int32_t slot = back();
        pop_back();
        return slot;
    }
};

// A list of slots for each owner, the newest first, that readers may follow; -1 ends it.
class SlotChains {
public:
    SlotChains(std::size_t owners, std::size_t slots)
        : first_(owners, -1), next_(slots, -1), previous_(slots, -1) {}

    std::int32_t first(std::int32_t owner) const { return first_.load(owner); }
    std::int32_t next(std::int32_t slot) const { return next_.load(slot); }
    void link(std::int32_t owner, std::int32_t slot) {
        const std::int32_t next = first(owner);
        next_.store(slot, next);
        previous_[slot] = -1;
        if (next >= 0) previous_[next] = slot;
        first_.store(owner, slot);
    }
    void unlink(std::int32_t owner, std::int32_t slot) {
        const std::int32_t before = previous_[slot], after = next(slot);
        if (before < 0) first_.store(owner, after);
        else next_.store(before, after);
        if (after >= 0) previous_[after] = before;
    }

    void clear(std::int32_t owner) { first_.store(owner, -1); }

private:
    Column<std::int32_t> first_, next_;
    Own<std::int32_t> previous_;
};

// A set of slots that is cleared in O(1): a slot is marked if it has the number of the present
// epoch.
class SlotMarks {
public:
    explicit SlotMarks(std::size_t slots) : marks_(slots, 0) {}

    void forget() {
        if (++epoch_ != 0) return;
        std::fill(marks_.begin(), marks_.end(), 0);
        epoch_ = 1;
    }
    bool has(std::int32_t slot) const { return marks_[slot] == epoch_; }
    // Return whether it was unmarked before.
    bool mark(std::int32_t slot) { return std::exchange(marks_[slot], epoch_) != epoch_; }

private:
    std::vector<std::uint32_t> marks_;
    std::uint32_t epoch_ = 0;
};

// Storage of values in lists with a fixed total capacity. The index of its first entry identifies a
// list (-1: empty).
template <class Value> class SlotLists {
public:
    explicit SlotLists(std::size_t room) : entries_(room), free_(room ? 0 : -1), room_(room) {
        for (std::size_t i = 1; i < room; ++i) entries_[i - 1].next = static_cast<std::int32_t>(i);
    }

    std::size_t room() const { return room_; }  // remaining capacity
    template <class Visit> void for_each(std::int32_t first, Visit&& visit) const {
        for (; first >= 0; first = entries_[first].next) visit(entries_[first].value);
    }
    std::size_t size(std::int32_t first) const {
        std::size_t count = 0;
        for_each(first, [&](const Value&) { ++count; });
        return count;
    }
    void append(std::int32_t& first, const Value& value) {
        std::int32_t* last = &first;
        while (*last >= 0) last = &entries_[*last].next;
        *last = free_;
        free_ = std::exchange(entries_[*last].next, -1);
        entries_[*last].value = value;
        --room_;
    }
    template <class Goes> void drop_if(std::int32_t& first, Goes&& goes) {
        for (std::int32_t* cursor = &first; *cursor >= 0;) {
            const std::int32_t index = *cursor;
            Entry& entry = entries_[index];
            if (!goes(entry.value)) {
                cursor = &entry.next;
                continue;
            }
            *cursor = std::exchange(entry.next, free_);
            entry.value = Value{};
            free_ = index;
            ++room_;
        }
    }
    void clear(std::int32_t& first) {
        drop_if(first, [](const Value&) { return true; });
    }

private:
    struct Entry {
        Value value{};
        std::int32_t next = -1;
    };
    std::vector<Entry> entries_;
    std::int32_t free_;
    std::size_t room_;
};

}  // namespace tmkit
