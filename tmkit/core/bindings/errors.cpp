// The one place where an error of the core becomes a Python exception, of the class that is registered for its kind.
#include "bindings.hpp"
#include "registered.hpp"

namespace tmkit::bindings {
namespace {

const char* class_name(ErrorKind kind) {
    switch (kind) {
        case ErrorKind::scene: return "SceneError";
        case ErrorKind::shape: return "ShapeError";
        case ErrorKind::cycle: return "CycleError";
        case ErrorKind::duplicate_name: return "DuplicateNameError";
        case ErrorKind::disconnected: return "DisconnectedError";
        case ErrorKind::capacity: return "CapacityError";
        case ErrorKind::unknown_name: return "UnknownNameError";
        case ErrorKind::configuration: return "ConfigurationError";
        case ErrorKind::concurrent_write: return "ConcurrentWriteError";
        case ErrorKind::stamp: return "StampError";
        case ErrorKind::pickled_state: return "PickledStateError";
        case ErrorKind::overflow: return "NumberOverflowError";
    }
    return "TmkitError";
}

nb::object as_object(std::monostate) { return nb::none(); }

template <class Fact>
nb::object as_object(const Fact& fact) {
    return nb::cast(fact);
}

void raise_in_python(const Error& error) {
    if (!registered() || !registered()->errors.is_valid()) return PyErr_SetString(PyExc_RuntimeError, error.what());
    const nb::object type = registered()->errors[class_name(error.kind())];
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
