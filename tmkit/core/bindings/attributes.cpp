// Free tags of frames: Python values as canonical JSON text, and back.
#include "bindings.hpp"

namespace tmkit::bindings {
namespace {

// What stands before the value of a key in a JSON object.
std::string quoted_key(bool is_first, const std::string& key) {
    std::string text = is_first ? "\"" : ", \"";
    for (const char letter : key) {
        if (letter == '"' || letter == '\\') text += '\\';
        text += letter;
    }
    return text + "\": ";
}

}  // namespace

// A value of an attribute as canonical JSON text, and back.
std::string attribute_text(const std::string& key, nb::handle value) {
    try {
        return nb::cast<std::string>(registered_function(&Registered::attribute_text)(value));
    } catch (nb::python_error& error) {
        if (!error.matches(PyExc_ValueError) && !error.matches(PyExc_TypeError)) throw;
        throw Error(
            ErrorKind::scene,
            "attribute '{}' must be text, a finite number, true, false, None, or lists and dicts of these, not {}", key,
            nb::cast<std::string>(nb::repr(value)));
    }
}

// JSON that ends in a digit is a number, in which there is no `@`.
std::string_view unstamped(std::string_view text) {
    const bool ends_in_digit = !text.empty() && text.back() >= '0' && text.back() <= '9';
    return ends_in_digit ? text.substr(0, text.rfind('@')) : text;
}

nb::object stamps_of(const Attributes& attributes) {
    std::string text;
    for (const auto& [key, value] : attributes)
        if (const std::size_t end = unstamped(value).size(); end < value.size())
            text += quoted_key(text.empty(), key) + value.substr(end + 1);
    return registered_function(&Registered::attribute_map)("{" + text + "}");
}

Attributes attributes_of(const AttributeMapping& values) {
    Attributes attributes;
    for (nb::handle item : values.items()) {
        std::string_view text;
        if (!nb::try_cast(item[0], text) || text.empty())
            throw Error(ErrorKind::scene, "an attribute's key is text that is not empty, not {}",
                        nb::cast<std::string>(nb::repr(item[0])));
        const std::string key(text);
        attributes.emplace_back(key, attribute_text(key, item[1]));
    }
    return attributes;
}

Attributes with_attribute(Attributes attributes, const std::string& key, const std::string& text) {
    if (key.empty()) throw Error(ErrorKind::scene, "an attribute needs a key that is not empty");
    std::erase_if(attributes, [&](const auto& entry) { return entry.first == key; });
    attributes.emplace_back(key, text);
    return attributes;
}

const FrameDetails& details_on(const FrameRecord& record) {
    static const FrameDetails none;
    return record.details ? *record.details : none;
}

nb::object attribute_map(const Attributes& attributes) {
    std::string text;
    for (const auto& [key, value] : attributes) text.append(quoted_key(text.empty(), key)).append(unstamped(value));
    return registered_function(&Registered::attribute_map)("{" + text + "}");
}

}  // namespace tmkit::bindings
