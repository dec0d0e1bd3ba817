// Errors of the core.
//
// The core does not depend on Python, but its errors become exceptions with the class, message and
// attributes of the Python API. An error here is a kind (the name of the Python class), a message
// and a few named facts. The bindings translate it in one place (bindings/registered.cpp).
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

std::string number_text(double value);  // shortest text that reads back to the same number
std::string numbers_text(std::span<const double> values);  // "[0.5, 2]"
// Return a pattern with each {} replaced by the next part: texts unchanged, numbers as above.
std::string fill_pattern(std::string_view pattern, std::initializer_list<std::string> parts);
template <class Part> std::string part_text(const Part& part) {
    if constexpr (std::is_floating_point_v<Part>) return number_text(part);
    else if constexpr (std::is_convertible_v<const Part&, std::span<const double>>)
        return numbers_text(part);
    else if constexpr (std::is_arithmetic_v<Part>) return std::to_string(part);
    else return std::string(part);
}
template <class... Parts> std::string format_text(std::string_view pattern, const Parts&... parts) {
    return fill_pattern(pattern, {part_text(parts)...});
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
        : std::runtime_error(format_text(pattern, parts...)), kind_(kind) {}
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

// Throws Error(overflow), naming `what`, unless all numbers are finite. Results of finite arguments
// may overflow.
void require_in_range(std::span<const double> numbers, const char* what);

// The number of letters to insert, delete, replace or swap with their neighbour, case ignored.
// O(|a| |b|).
std::size_t edit_distance(std::string_view a, std::string_view b);

// Return the candidate nearest to `name`, or an empty string if none is within half its length.
// O(sum of lengths).
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

// "unknown frame 'tabel'; did you mean 'table'?" with the facts kind, name and nearest.
Error unknown_name(const std::string& kind, std::string_view name,
                   const std::vector<std::string>& candidates);

}  // namespace tmkit
