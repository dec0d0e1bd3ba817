#include "tmkit/name_table.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "tmkit/sequence_lock.hpp"

namespace tmkit {
// Eight bytes of a text from a place on, zeros after its end.
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
    for (std::size_t at = 0; at < text.size(); at += 8) store_shared(*++into, word_at(text, at));
}

std::string_view NameArena::view(std::int32_t index) const noexcept {
    const std::uint64_t* from = cells_.data() + cell(index);
    return {reinterpret_cast<const char*>(from + 1), static_cast<std::size_t>(*from)};
}

std::string NameArena::text(std::int32_t index) const {
    const std::uint64_t* from = cells_.data() + cell(index);
    std::string made(std::min<std::size_t>(load_shared(*from), name_bytes_), '\0');
    for (std::size_t at = 0; at < made.size(); at += 8) {
        const std::uint64_t word = load_shared(*++from);
        std::memcpy(made.data() + at, &word, std::min<std::size_t>(8, made.size() - at));
    }
    return made;
}

bool NameArena::holds(std::int32_t index, std::string_view text) const noexcept {
    const std::uint64_t* from = cells_.data() + cell(index);
    if (load_shared(*from) != text.size()) return false;
    for (std::size_t at = 0; at < text.size(); at += 8)
        if (load_shared(*++from) != word_at(text, at)) return false;
    return true;
}

NameTable::NameTable(std::size_t capacity, std::size_t name_bytes)
    : NameArena(capacity, name_bytes), places_(std::bit_ceil(2 * capacity + 1), 0),
      mask_(places_.size() - 1) {}

std::uint32_t NameTable::hash(std::string_view name) noexcept {
    std::uint64_t mixed = name.size() + 0x9E3779B97F4A7C15ull;
    for (std::size_t at = 0; at < name.size(); at += 8) {
        mixed = (mixed ^ word_at(name, at)) * 0xFF51AFD7ED558CCDull;
        mixed ^= mixed >> 32;
    }
    return static_cast<std::uint32_t>(mixed);
}

std::int32_t NameTable::find(std::string_view name) const noexcept {
    if (!fits(name)) return none;
    const std::uint32_t wanted = hash(name);
    std::size_t at = wanted & mask_;
    for (std::size_t steps = 0; steps <= mask_; ++steps, at = (at + 1) & mask_) {
        const std::uint64_t place = load_shared(places_[at]);
        if (place == 0) return none;
        const auto index = static_cast<std::int32_t>(place & 0xFFFFFFFFu) - 1;
        if (place >> 32 == wanted && holds(index, name)) return index;
    }
    return none;
}

void NameTable::insert(std::int32_t index, std::string_view name) noexcept {
    const std::uint32_t key = hash(name);
    set(index, name);
    std::size_t at = key & mask_;
    while (places_[at] != 0) at = (at + 1) & mask_;
    store_shared(places_[at], std::uint64_t{key} << 32 | static_cast<std::uint32_t>(index + 1));
}

void NameTable::erase(std::int32_t index) noexcept {
    std::size_t hole = hash(view(index)) & mask_;
    while ((places_[hole] & 0xFFFFFFFFu) != static_cast<std::uint32_t>(index + 1))
        hole = (hole + 1) & mask_;
    // Whoever follows in the run and may stand nearer to its own place moves into the hole.
    for (std::size_t at = (hole + 1) & mask_; places_[at] != 0; at = (at + 1) & mask_) {
        const std::size_t home = places_[at] >> 32 & mask_;
        if (((at - home) & mask_) >= ((at - hole) & mask_)) {
            store_shared(places_[hole], places_[at]);
            hole = at;
        }
    }
    store_shared(places_[hole], std::uint64_t{0});
}

}  // namespace tmkit
