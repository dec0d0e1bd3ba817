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

// By ErrorKind.
constexpr const char* class_names[] = {"SceneError",         "ShapeError",         "CycleError",
                                       "DuplicateNameError", "DisconnectedError",  "CapacityError",
                                       "UnknownNameError",   "ConfigurationError", "ConcurrentWriteError",
                                       "StampError",         "PickledStateError",  "NumberOverflowError"};
static_assert(std::size(class_names) == static_cast<std::size_t>(ErrorKind::overflow) + 1);

nb::object as_object(std::monostate) { return nb::none(); }

template <class Fact> nb::object as_object(const Fact& fact) { return nb::cast(fact); }

void raise_in_python(const Error& error) {
    if (!registered() || !registered()->errors.is_valid()) return PyErr_SetString(PyExc_RuntimeError, error.what());
    const nb::object type = registered()->errors[class_names[static_cast<std::size_t>(error.kind())]];
    nb::dict facts;
    for (const auto& [name, value] : error.facts())
        std::visit([&](const auto& fact) { facts[name.c_str()] = as_object(fact); }, value);
    const nb::object made = type(error.what(), **facts);
    PyErr_SetObject(type.ptr(), made.ptr());
}

}  // namespace

const Registered* registered() { return present; }

nb::object registered_function(nb::object Registered::* function) {
    if (!present || !(present->*function).is_valid())
        throw std::runtime_error("the Python part of tmkit is not imported, or the interpreter is ending");
    return present->*function;
}

nb::object small_array(std::span<const double> numbers) {
    if (!present) return {};
    nb::object& from_bytes = present->from_bytes;
    if (!from_bytes.is_valid()) from_bytes = nb::module_::import_("numpy").attr("frombuffer");
    return from_bytes(nb::bytes(numbers.data(), numbers.size_bytes()));
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

// The one place where an error of the core becomes a Python exception, of the class that is registered for its kind.
void bind_errors(nb::module_&) {
    nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
        try {
            std::rethrow_exception(pointer);
        } catch (const Error& error) {
            raise_in_python(error);
        }
    });
}

}  // namespace tmkit::bindings
