// Python objects registered with the core, and translation of errors of the core, and of nanobind's
// argument errors, to Python exceptions.
#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "bindings.hpp"

namespace tmkit::bindings {
namespace {

constexpr std::array names{"errors",    "argument_error", "result",        "si_numbers",
                           "tree_html", "attribute_map",  "attribute_text"};
static_assert(names.size() == static_cast<std::size_t>(Registered::attribute_text) + 1);

struct Objects {
    std::array<nb::object, names.size()> registered;
    nb::object from_bytes;  // numpy.frombuffer, after the first call
};
// Null before the module is initialised, and after it is cleared at exit.
Objects* present = nullptr;

void register_objects(const nb::kwargs& objects) {
    for (const auto& [name, object] : objects) {
        const auto position = std::find(names.begin(), names.end(), nb::cast<std::string>(name));
        if (position == names.end()) throw nb::key_error(nb::str(name).c_str());
        present->registered[static_cast<std::size_t>(position - names.begin())] =
            nb::borrow(object);
    }
}

// By ErrorKind.
constexpr const char* class_names[] = {
    "SceneError",           "ShapeError",    "CycleError",        "DuplicateNameError",
    "DisconnectedError",    "CapacityError", "UnknownNameError",  "ConfigurationError",
    "ConcurrentWriteError", "StampError",    "PickledStateError", "NumberOverflowError"};
static_assert(std::size(class_names) == static_cast<std::size_t>(ErrorKind::overflow) + 1);

void raise_in_python(const Error& error) {
    const nb::object errors = registered(Registered::errors);
    if (!errors.is_valid()) return PyErr_SetString(PyExc_RuntimeError, error.what());
    const nb::object type = errors[class_names[static_cast<std::size_t>(error.kind())]];
    nb::dict facts;
    for (const auto& [name, value] : error.facts()) facts[name.c_str()] = nb::cast(value);
    const nb::object instance = type(error.what(), **facts);
    PyErr_SetObject(type.ptr(), instance.ptr());
}

}  // namespace

nb::object registered(Registered what) {
    return present ? present->registered[static_cast<std::size_t>(what)] : nb::object();
}

nb::object registered_function(Registered function) {
    const nb::object target = registered(function);
    if (!target.is_valid())
        throw std::runtime_error(
            "the Python part of tmkit is not imported, or the interpreter is ending");
    return target;
}

nb::object small_array(std::span<const double> numbers) {
    if (!present) return {};
    nb::object& from_bytes = present->from_bytes;
    if (!from_bytes.is_valid()) from_bytes = nb::module_::import_("numpy").attr("frombuffer");
    return from_bytes(nb::bytes(numbers.data(), numbers.size_bytes()));
}

// The module owns the registered objects: a module is cleared before the interpreter ends, so
// nothing outlives it.
void bind_registered(nb::module_& m) {
    present = new Objects;
    m.attr("_registered") = nb::capsule(present, [](void* owned) noexcept {
        present = nullptr;
        delete static_cast<Objects*>(owned);
    });
    m.def("_register", &register_objects, "objects"_a,
          "Register Python objects with the core by name: exception classes and functions of upper "
          "layers.");
    // Translate errors of the core to Python exceptions, of the class registered for their kind.
    nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
        try {
            std::rethrow_exception(pointer);
        } catch (const Error& error) {
            raise_in_python(error);
        }
    });
}

// --- arguments of a wrong type, in terms of the API

// nanobind reports a call that fits no overload with every signature of the function and the types
// of the arguments. Here each bound function gets a vectorcall around nanobind's. On that error it
// passes the call to the registered argument_error, which identifies the wrong argument. A
// successful call costs one comparison more. nanobind has a few vectorcall functions, selected by
// the shape of a signature. Each gets its own wrapper, which needs no look-up of the original.

namespace {

constexpr std::size_t kinds = 16;  // nanobind 3.0 has seven
std::array<vectorcallfunc, kinds> originals{};

// Return the current error if it is nanobind's about arguments; any other remains set.
bool take_mismatch() {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return false;
    nb::python_error error;
    const nb::str text(error.value());
    const bool is_mismatch = std::strstr(
        text.c_str(), "(): incompatible function arguments. The following argument types");
    if (!is_mismatch) error.restore();
    return is_mismatch;
}

void explain(PyObject* function, PyObject* const* args, std::size_t count,
             PyObject* names) noexcept {
    const nb::object argument_error = registered(Registered::argument_error);
    if (!argument_error.is_valid()) return;
    try {
        if (!take_mismatch()) return;
        nb::list positional;
        // The first argument of a constructor is an object that does not exist yet.
        const bool constructs = nb::borrow(function).attr("__name__").equal(nb::str("__init__"));
        for (std::size_t i = 0; i < count; ++i)
            positional.append(constructs && i == 0 ? nb::none() : nb::borrow(args[i]));
        nb::dict keywords;
        if (names)
            for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i)
                keywords[nb::borrow(PyTuple_GET_ITEM(names, i))] =
                    nb::borrow(args[count + static_cast<std::size_t>(i)]);
        const nb::object error = argument_error(nb::borrow(function), positional, keywords);
        PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
    } catch (nb::python_error& error) {
        error.restore();
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
    }
}

template <std::size_t kind>
PyObject* call_and_explain(PyObject* function, PyObject* const* args, std::size_t flags,
                           PyObject* names) {
    PyObject* result = originals[kind](function, args, flags, names);
    if (!result) [[unlikely]]
        // Nanobind passes its own flags in the upper half of the count.
        explain(function, args, static_cast<std::size_t>(PyVectorcall_NARGS(flags) & 0xffff'ffff),
                names);
    return result;
}

template <std::size_t... kind>
constexpr std::array<vectorcallfunc, kinds> make_wrappers(std::index_sequence<kind...>) {
    return {call_and_explain<kind>...};
}
constexpr auto wrappers = make_wrappers(std::make_index_sequence<kinds>());

void wrap(nb::handle function) {
    PyTypeObject* type = Py_TYPE(function.ptr());
    auto* slot = reinterpret_cast<vectorcallfunc*>(reinterpret_cast<char*>(function.ptr()) +
                                                   type->tp_vectorcall_offset);
    for (std::size_t kind = 0; kind < kinds; ++kind) {
        if (*slot == wrappers[kind]) return;  // another name of the same function
        if (!originals[kind]) originals[kind] = *slot;
        if (originals[kind] == *slot) {
            *slot = wrappers[kind];
            return;
        }
    }
}

void wrap_all(nb::handle names) {
    for (nb::handle entry : nb::steal<nb::list>(PyMapping_Values(names.ptr()))) {
        const char* type = Py_TYPE(entry.ptr())->tp_name;
        if (!std::strcmp(type, "nanobind.nb_func") || !std::strcmp(type, "nanobind.nb_method"))
            wrap(entry);
        else if (nb::isinstance<nb::type_object>(entry)) wrap_all(entry.attr("__dict__"));
    }
}

}  // namespace

void bind_argument_errors(nb::module_& m) { wrap_all(m.attr("__dict__")); }

}  // namespace tmkit::bindings
