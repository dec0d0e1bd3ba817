#include "tmkit/error.hpp"

#include <algorithm>
#include <bit>
#include <cctype>
#include <numeric>

namespace tmkit {

void require_in_range(std::span<const double> numbers, const char* what) {
    constexpr std::uint64_t exponent = 0x7ff0'0000'0000'0000;
    bool out = false;
    for (const double number : numbers) out |= (std::bit_cast<std::uint64_t>(number) & exponent) == exponent;
    if (out)
        throw Error(ErrorKind::overflow,
                    std::string(what) + " is beyond the range of floating-point numbers (1.8e308)");
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

Error unknown_name(const std::string& kind, std::string_view name, const std::vector<std::string>& candidates) {
    const std::string nearest = nearest_name(name, candidates);
    std::string message = "unknown " + kind + " '" + std::string(name) + "'";
    if (!nearest.empty()) message += "; did you mean '" + nearest + "'?";
    if (candidates.empty()) message += "; there is no " + kind + " at all";
    Error::Fact near{"nearest", std::monostate{}};
    if (!nearest.empty()) near.second = nearest;
    return Error(ErrorKind::unknown_name, message, {{"kind", kind}, {"name", std::string(name)}, near});
}

}  // namespace tmkit
