// What Python registers with the core at import: exception classes, and functions written above the core.
//
// The core imports no module of the package and names none. Calls that need Python code go to what is registered here.
#pragma once

#include <nanobind/nanobind.h>

namespace tmkit::bindings {

struct Registered {
    nanobind::object errors;          // exception classes by name
    nanobind::object argument_error;  // (function, positional, keywords) -> the error of a call that fits no signature
    nanobind::object result;          // the class whose functions are the methods that all results have
    nanobind::object tree_html;
    nanobind::object attribute_map, attribute_text;  // JSON text -> immutable map, and a JSON value -> its text
};

// Null before the module is initialised, and after it is cleared at exit.
const Registered* registered();

// Returns a registered function, owned: its call may register another. Throws std::runtime_error where Python
// registered none.
nanobind::object registered_function(nanobind::object Registered::* function);

}  // namespace tmkit::bindings
