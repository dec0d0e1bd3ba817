#include "tmkit/name_table.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "tmkit/sequence_lock.hpp"

namespace tmkit {
// Eight bytes of a text from an offset, zeros after its end.
static std::uint64_t word_at(std::string_view text, std::size_t from) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + from, std::min<std::size_t>(8, text.size() - from));
    return word;
}

NameArena::NameArena(std::size_t cells, std::size_t name_bytes)
    : name_bytes_(name_bytes), words_(1 + (name_bytes + 7) / 8), cells_(cells * words_, 0) {}

void NameArena::set(std::int32_t index, std::string_view text) noexcept {
    std::uint64_t* into = cells_.data() + cell(index);
    store_shared(*into, static_cast<std::uint64_t>(text.size()));
    for (std::size_t position = 0; position < text.size(); position += 8)
        store_shared(*++into, word_at(text, position));
}

std::string_view NameArena::view(std::int32_t index) const noexcept {
    const std::uint64_t* from = cells_.data() + cell(index);
    return {reinterpret_cast<const char*>(from + 1), static_cast<std::size_t>(*from)};
}

std::string NameArena::text(std::int32_t index) const {
    const std::uint64_t* from = cells_.data() + cell(index);
    std::string result(std::min<std::size_t>(load_shared(*from), name_bytes_), '\0');
    for (std::size_t position = 0; position < result.size(); position += 8) {
        const std::uint64_t word = load_shared(*++from);
        std::memcpy(result.data() + position, &word,
                    std::min<std::size_t>(8, result.size() - position));
    }
    return result;
}

bool NameArena::holds(std::int32_t index, std::string_view text) const noexcept {
    const std::uint64_t* from = cells_.data() + cell(index);
    if (load_shared(*from) != text.size()) return false;
    for (std::size_t position = 0; position < text.size(); position += 8)
        if (load_shared(*++from) != word_at(text, position)) return false;
    return true;
}

NameTable::NameTable(std::size_t capacity, std::size_t name_bytes)
    : NameArena(capacity, name_bytes), places_(std::bit_ceil(2 * capacity + 1), 0),
      mask_(places_.size() - 1) {}

std::uint32_t NameTable::hash(std::string_view name) noexcept {
    std::uint64_t mixed = name.size() + 0x9E3779B97F4A7C15ull;
    for (std::size_t position = 0; position < name.size(); position += 8) {
        mixed = (mixed ^ word_at(name, position)) * 0xFF51AFD7ED558CCDull;
        mixed ^= mixed >> 32;
    }
    return static_cast<std::uint32_t>(mixed);
}

std::int32_t NameTable::find(std::string_view name) const noexcept {
    if (!fits(name)) return none;
    const std::uint32_t target = hash(name);
    std::size_t position = target & mask_;
    for (std::size_t steps = 0; steps <= mask_; ++steps, position = (position + 1) & mask_) {
        const std::uint64_t place = load_shared(places_[position]);
        if (place == 0) return none;
        const auto index = static_cast<std::int32_t>(place & 0xFFFFFFFFu) - 1;
        if (place >> 32 == target && holds(index, name)) return index;
    }
    return none;
}

void NameTable::insert(std::int32_t index, std::string_view name) noexcept {
    const std::uint32_t key = hash(name);
    set(index, name);
    std::size_t position = key & mask_;
    while (places_[position] != 0) position = (position + 1) & mask_;
    store_shared(places_[position],
                 std::uint64_t{key} << 32 | static_cast<std::uint32_t>(index + 1));
}

void NameTable::erase(std::int32_t index) noexcept {
    std::size_t hole = hash(view(index)) & mask_;
    while ((places_[hole] & 0xFFFFFFFFu) != static_cast<std::uint32_t>(index + 1))
        hole = (hole + 1) & mask_;
    // Move a later entry of the run that may be nearer to its hash position into the gap.
    for (std::size_t position = (hole + 1) & mask_; places_[position] != 0;
         position = (position + 1) & mask_) {
        const std::size_t home = places_[position] >> 32 & mask_;
        if (((position - home) & mask_) >= ((position - hole) & mask_)) {
            store_shared(places_[hole], places_[position]);
            hole = position;
        }
    }
    store_shared(places_[hole], std::uint64_t{0});
}

}  // namespace tmkit
