#include "tmkit/error.hpp"

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <numeric>

namespace tmkit {

std::string number_text(double value) {
    char text[32];
    return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

std::string numbers_text(std::span<const double> values) {
    std::string text = "[";
    for (const double value : values)
        text.append(text.size() > 1 ? ", " : "").append(number_text(value));
    return text + "]";
}

std::string fill_pattern(std::string_view pattern, std::initializer_list<std::string> parts) {
    std::string text;
    for (const std::string& part : parts) {
        const std::size_t hole = pattern.find("{}");
        text.append(pattern.substr(0, hole)).append(part);
        pattern.remove_prefix(hole + 2);
    }
    return text.append(pattern);
}

void require_in_range(std::span<const double> numbers, const char* what) {
    constexpr std::uint64_t exponent = 0x7ff0'0000'0000'0000, one = 0x0010'0000'0000'0000;
    // An exponent of ones sets its first bit; vectors of SSE2 can add, but not compare.
    std::uint64_t highest = 0;
    for (const double number : numbers)
        highest |= (std::bit_cast<std::uint64_t>(number) & exponent) + one;
    if (highest >> 63)
        throw Error(ErrorKind::overflow,
                    "{} is beyond the range of floating-point numbers (1.8e308)", what);
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
    const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
    const auto same = [&](std::size_t i, std::size_t j) { return lower(a[i]) == lower(b[j]); };
    std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        before.swap(last);
        last.swap(row);
        row[0] = i + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            row[j + 1] = std::min({last[j] + !same(i, j), row[j] + 1, last[j + 1] + 1});
            if (i > 0 && j > 0 && same(i, j - 1) && same(i - 1, j))
                row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
        }
    }
    return row[b.size()];
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
    std::string nearest;
    std::size_t least = std::max<std::size_t>(name.size(), 2) / 2 + 1;
    for (const std::string& candidate : candidates) {
        const std::size_t distance = edit_distance(name, candidate);
        if (distance < least) {
            least = distance;
            nearest = candidate;
        }
    }
    return nearest;
}

static std::string list_names(const std::vector<std::string>& names) {
    std::string text;
    if (names.size() > 12) return text;
    for (const std::string& name : names) text += (text.empty() ? " (known: " : ", ") + name;
    return text + ")";
}

Error unknown_name(const std::string& kind, std::string_view name,
                   const std::vector<std::string>& candidates) {
    const std::string nearest = nearest_name(name, candidates);
    const std::string hint = !nearest.empty()     ? format_text("; did you mean '{}'?", nearest)
                             : candidates.empty() ? format_text("; there is no {} at all", kind)
                                                  : list_names(candidates);
    const Error::Fact nearest_fact = nearest.empty() ? Error::Fact("nearest", std::monostate{})
                                                     : Error::Fact("nearest", nearest);
    return Error(ErrorKind::unknown_name, "unknown {} '{}'{}", kind, name, hint)
        .with({{"kind", kind}, {"name", name}, nearest_fact});
}

}  // namespace tmkit
