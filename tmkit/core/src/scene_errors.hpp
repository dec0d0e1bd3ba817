// Error messages that several files of the scene graph share.
#pragma once

#include <string>
#include <string_view>

#include "tmkit/error.hpp"

namespace tmkit {

inline std::string quoted(std::string_view name) {
    std::string text(1, '\'');
    text.append(name);
    text.push_back('\'');
    return text;
}

inline Error duplicate(const std::string& kind, std::string_view name) {
    return Error(ErrorKind::duplicate_name, "a " + kind + " named " + quoted(name) + " is already in the scene",
                 {{"kind", kind}, {"name", std::string(name)}});
}

}  // namespace tmkit
