// Names in a fixed arena with a hash table: maps text to small numbers without allocation.
//
// A NameArena is one cell of equal size for each number. A NameTable adds an open-addressing hash
// table over the cells, at most half full, with linear probing. Erasing shifts the following run
// back, so no tombstones accumulate over a long control loop. The hash depends on the text only.
//
// One thread writes, and any thread may read at the same time under a sequence lock
// (sequence_lock.hpp). Cells and table are words, loaded and stored one by one, and a lookup takes
// at most as many steps as the table has entries.
//
// Costs: find, insert and erase O(length of the name), on average.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tmkit {

class NameArena {
public:
    NameArena(std::size_t cells, std::size_t name_bytes);

    bool fits(std::string_view text) const noexcept { return text.size() <= name_bytes_; }
    void set(std::int32_t index, std::string_view text) noexcept;          // text must fit
    std::string_view view(std::int32_t index) const noexcept;              // writer only
    std::string text(std::int32_t index) const;                            // any thread
    bool holds(std::int32_t index, std::string_view text) const noexcept;  // any thread

private:
    std::size_t cell(std::int32_t index) const noexcept {
        return static_cast<std::size_t>(index) * words_;
    }

    // Words of a cell: the length, then the text, its last word filled with zeros.
    std::size_t name_bytes_, words_;
    std::vector<std::uint64_t> cells_;
};

class NameTable : public NameArena {
public:
    static constexpr std::int32_t none = -1;

    NameTable(std::size_t capacity, std::size_t name_bytes);

    // Any thread; none if absent.
    std::int32_t find(std::string_view name) const noexcept;
    // a new name that fits.
    void insert(std::int32_t index, std::string_view name) noexcept;
    void erase(std::int32_t index) noexcept;  // the number must have a name

private:
    static std::uint32_t hash(std::string_view name) noexcept;

    // Upper half the hash, lower half the number plus one; 0 is empty.
    std::vector<std::uint64_t> places_;
    std::size_t mask_;
};

}  // namespace tmkit
