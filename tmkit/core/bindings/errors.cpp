// The one place where an error of the core becomes a Python exception, of the class that is registered for its kind.
#include "bindings.hpp"
#include "registered.hpp"

namespace tmkit::bindings {
namespace {

// By ErrorKind.
constexpr const char* class_names[] = {"SceneError",         "ShapeError",         "CycleError",
                                       "DuplicateNameError", "DisconnectedError",  "CapacityError",
                                       "UnknownNameError",   "ConfigurationError", "ConcurrentWriteError",
                                       "StampError",         "PickledStateError",  "NumberOverflowError"};
static_assert(std::size(class_names) == static_cast<std::size_t>(ErrorKind::overflow) + 1);

nb::object as_object(std::monostate) { return nb::none(); }

template <class Fact>
nb::object as_object(const Fact& fact) {
    return nb::cast(fact);
}

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
