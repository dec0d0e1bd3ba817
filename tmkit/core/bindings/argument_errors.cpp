// Arguments of a wrong type, in the words of the API instead of C++ signatures.
//
// nanobind reports a call that fits no overload with every signature of the function and the types that it was called
// with. Here each bound function gets a vectorcall of our own around nanobind's: on that one error it passes the call
// to the registered argument_error, which finds the argument that does not fit. A call that succeeds pays for one
// comparison.
//
// nanobind has a handful of vectorcall functions, chosen by the shape of a signature. Each gets a wrapper of its own,
// so that no look-up is needed to find the original.
#include <array>
#include <cstring>
#include <utility>

#include "bindings.hpp"

namespace tmkit::bindings {
namespace {

constexpr std::size_t kinds = 16;  // nanobind 3.0 has seven
std::array<vectorcallfunc, kinds> originals{};

// The error that is set, if it is nanobind's about arguments; it stays set otherwise.
bool take_mismatch() {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return false;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject* text = value ? PyObject_Str(value) : nullptr;
    const char* words = text ? PyUnicode_AsUTF8(text) : nullptr;
    const bool found = words && std::strstr(words, "(): incompatible function arguments. The following argument types");
    Py_XDECREF(text);
    if (!found) {
        PyErr_Restore(type, value, trace);
        return false;
    }
    Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
    return true;
}

void explain(PyObject* function, PyObject* const* args, std::size_t count, PyObject* names) noexcept {
    if (!registered() || !registered()->argument_error.is_valid() || !take_mismatch()) return;
    try {
        nb::list positional;
        // the first argument of a constructor is an object that does not exist yet
        const bool constructs = nb::borrow(function).attr("__name__").equal(nb::str("__init__"));
        for (std::size_t i = 0; i < count; ++i)
            positional.append(constructs && i == 0 ? nb::none() : nb::borrow(args[i]));
        nb::dict keywords;
        if (names)
            for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i)
                keywords[nb::borrow(PyTuple_GET_ITEM(names, i))] =
                    nb::borrow(args[count + static_cast<std::size_t>(i)]);
        const nb::object error = registered()->argument_error(nb::borrow(function), positional, keywords);
        PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
    } catch (nb::python_error& error) {
        error.restore();
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
    }
}

template <std::size_t kind>
PyObject* explained(PyObject* function, PyObject* const* args, std::size_t flags, PyObject* names) {
    PyObject* result = originals[kind](function, args, flags, names);
    if (!result) [[unlikely]]
        // nanobind hands flags of its own down in the upper half of the count
        explain(function, args, static_cast<std::size_t>(PyVectorcall_NARGS(flags) & 0xffff'ffff), names);
    return result;
}

template <std::size_t... kind> constexpr std::array<vectorcallfunc, kinds> make_wrappers(std::index_sequence<kind...>) {
    return {explained<kind>...};
}
constexpr auto wrappers = make_wrappers(std::make_index_sequence<kinds>());

void wrap(nb::handle function) {
    PyTypeObject* type = Py_TYPE(function.ptr());
    auto* slot =
        reinterpret_cast<vectorcallfunc*>(reinterpret_cast<char*>(function.ptr()) + type->tp_vectorcall_offset);
    for (std::size_t kind = 0; kind < kinds; ++kind) {
        if (*slot == wrappers[kind]) return;  // a name for a function that has another one
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
        if (!std::strcmp(type, "nanobind.nb_func") || !std::strcmp(type, "nanobind.nb_method")) wrap(entry);
        else if (nb::isinstance<nb::type_object>(entry)) wrap_all(entry.attr("__dict__"));
    }
}

}  // namespace

void bind_argument_errors(nb::module_& m) { wrap_all(m.attr("__dict__")); }

}  // namespace tmkit::bindings
