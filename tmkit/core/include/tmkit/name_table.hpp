// Names in a fixed arena, found by hashing: what maps text to a small number where nothing may be
// allocated.
//
// A NameArena is one cell of equal size for each number. A NameTable adds an open-addressing hash
// table over the cells, at most half full, with linear probing; erasing shifts the run that follows
// back, so that no tombstones gather however long a control loop adds and removes. The hash depends
// on the text only.
//
// One thread writes, and any thread may read at the same time under a sequence lock
// (sequence_lock.hpp): cells and table are words, loaded and stored one by one, and a lookup takes
// at most as many steps as the table has places.
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
    std::string_view view(std::int32_t index) const noexcept;              // the writer only
    std::string text(std::int32_t index) const;                            // any thread
    bool holds(std::int32_t index, std::string_view text) const noexcept;  // any thread

private:
    std::size_t cell(std::int32_t index) const noexcept {
        return static_cast<std::size_t>(index) * words_;
    }

    std::size_t name_bytes_,
        words_;  // words of a cell: the length, then the text, its last word filled with zeros
    std::vector<std::uint64_t> cells_;
};

class NameTable : public NameArena {
public:
    static constexpr std::int32_t none = -1;

    NameTable(std::size_t capacity, std::size_t name_bytes);

    std::int32_t find(
        std::string_view name) const noexcept;  // any thread; none when it is not there
    void insert(std::int32_t index,
                std::string_view name) noexcept;  // a name that fits and is not there yet
    void erase(std::int32_t index) noexcept;      // the name of this number, which must be there

private:
    static std::uint32_t hash(std::string_view name) noexcept;

    std::vector<std::uint64_t>
        places_;  // upper half the hash, lower half the number plus one; 0 is empty
    std::size_t mask_;
};

}  // namespace tmkit
