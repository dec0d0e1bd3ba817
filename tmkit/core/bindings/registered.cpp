#include "registered.hpp"

#include <array>
#include <stdexcept>
#include <string>
#include <utility>

#include "bindings.hpp"

namespace tmkit::bindings {
namespace {

constexpr std::array<std::pair<const char*, nb::object Registered::*>, 6> entries{{
    {"errors", &Registered::errors},
    {"argument_error", &Registered::argument_error},
    {"result", &Registered::result},
    {"tree_html", &Registered::tree_html},
    {"attribute_map", &Registered::attribute_map},
    {"attribute_text", &Registered::attribute_text},
}};

Registered* present = nullptr;

nb::object Registered::* entry_named(const std::string& name) {
    for (const auto& [known, entry] : entries)
        if (name == known) return entry;
    throw nb::key_error(name.c_str());
}

void register_objects(const nb::kwargs& objects) {
    for (const auto& [name, object] : objects) present->*entry_named(nb::cast<std::string>(name)) = nb::borrow(object);
}

}  // namespace

const Registered* registered() { return present; }

nb::object registered_function(nb::object Registered::* function) {
    if (!present || !(present->*function).is_valid())
        throw std::runtime_error("the Python part of tmkit is not imported, or the interpreter is ending");
    return present->*function;
}

// The module owns what is registered: a module is cleared before the interpreter ends, so nothing outlives it.
void bind_registered(nb::module_& m) {
    present = new Registered;
    m.attr("_registered") = nb::capsule(present, [](void* owned) noexcept {
        present = nullptr;
        delete static_cast<Registered*>(owned);
    });
    m.def("_register", &register_objects, "objects"_a,
          "Register Python objects with the core by name: exception classes and functions written above it.");
}

}  // namespace tmkit::bindings
