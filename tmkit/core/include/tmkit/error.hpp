// Errors of the core.
//
// The core knows no Python, yet every error must reach the user as the class, message and
// attributes that Python promises. So an error here is a kind (the name of the Python class), a
// message and a few named facts; the bindings translate it in one place (bindings/registered.cpp).
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tmkit {

enum class ErrorKind {
    scene,
    shape,
    cycle,
    duplicate_name,
    disconnected,
    capacity,
    unknown_name,
    configuration,
    concurrent_write,
    stamp,
    pickled_state,
    overflow
};

std::string number_text(double value);  // the shortest that reads back to the same number
std::string numbers_text(std::span<const double> values);  // "[0.5, 2]"
// The text of a pattern in which each {} is replaced by the next part: texts as they are, numbers
// as above.
std::string filled(std::string_view pattern, std::initializer_list<std::string> parts);
template <class Part> std::string part_text(const Part& part) {
    if constexpr (std::is_floating_point_v<Part>) return number_text(part);
    else if constexpr (std::is_convertible_v<const Part&, std::span<const double>>)
        return numbers_text(part);
    else if constexpr (std::is_arithmetic_v<Part>) return std::to_string(part);
    else return std::string(part);
}
template <class... Parts> std::string formatted(std::string_view pattern, const Parts&... parts) {
    return filled(pattern, {part_text(parts)...});
}

class Error : public std::runtime_error {
public:
    // No value (std::monostate) is None in Python.
    struct Fact {
        std::string name;
        std::variant<std::monostate, std::string, double, std::int64_t> value;

        Fact(std::string fact, std::string_view text)
            : name(std::move(fact)), value(std::string(text)) {}
        Fact(std::string fact, double number) : name(std::move(fact)), value(number) {}
        Fact(std::string fact, std::integral auto number)
            : name(std::move(fact)), value(static_cast<std::int64_t>(number)) {}
        Fact(std::string fact, std::monostate) : name(std::move(fact)) {}
    };

    // The message is a pattern with its parts.
    template <class... Parts>
    Error(ErrorKind kind, std::string_view pattern, const Parts&... parts)
        : std::runtime_error(formatted(pattern, parts...)), kind_(kind) {}
    Error with(std::vector<Fact> facts) && {
        facts_ = std::move(facts);
        return std::move(*this);
    }

    ErrorKind kind() const noexcept { return kind_; }
    const std::vector<Fact>& facts() const noexcept { return facts_; }

private:
    ErrorKind kind_;
    std::vector<Fact> facts_;
};

// Throws Error(overflow) that names `what` unless all numbers are finite: for results, of which
// arguments that are finite may still make an infinity.
void require_in_range(std::span<const double> numbers, const char* what);

// The number of letters to insert, delete, replace or swap with their neighbour, case ignored.
// O(|a| |b|).
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to `name`, or an empty string when none is within half its length. O(sum of
// lengths).
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

// "unknown frame 'tabel'; did you mean 'table'?" with the facts kind, name and nearest.
Error unknown_name(const std::string& kind, std::string_view name,
                   const std::vector<std::string>& candidates);

}  // namespace tmkit
