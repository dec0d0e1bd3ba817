// Fields of an immutable class, with their names and setters for a copy.
#pragma once

#include <algorithm>

#include "bindings.hpp"

namespace tmkit::bindings {

template <class Value> struct Field {
    const char* name;
    void (*set)(Value& changed, nb::handle value);  // throws std::bad_cast for another type
};

// Set a field that is a member, or the result of `read` for an argument of another type.
template <auto member, class Value> void set_member(Value& changed, nb::handle value) {
    auto& target = changed.*member;
    target = nb::cast<std::remove_cvref_t<decltype(target)>>(value);
}

// Raises ArgumentError for a value of a type that the field cannot have.
[[noreturn]] inline void raise_wrong_field(const char* type, const char* field, nb::handle value) {
    const std::string received = nb::cast<std::string>(nb::str(value.type().attr("__name__")));
    const std::string text =
        format_text("{}.replace(): '{}' cannot be a value of type {}", type, field, received);
    const nb::object error = registered_function(Registered::errors)["ArgumentError"](
        text, nb::arg("function") = "replace", nb::arg("argument") = field,
        nb::arg("received") = received);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
    throw nb::python_error();
}

// `replace`: a copy with other values of some fields, set in the order of the table; `check` throws
// if they are inconsistent.
template <class Value, std::size_t count>
void bind_replace(nb::class_<Value>& cls, const Field<Value> (&fields)[count],
                  std::type_identity_t<void (*)(Value&)> check, const char* type,
                  const std::string& raises) {
    const std::vector<Field<Value>> known(std::begin(fields), std::end(fields));
    std::vector<std::string> names;
    for (const Field<Value>& field : known) names.emplace_back(field.name);
    std::string text =
        "Return a copy with other values of some fields.\n\nArgs:\n    fields: values by name:";
    for (const Field<Value>& field : known)
        text += (&field == &known.front() ? " ``" : ", ``") + std::string(field.name) + "``";
    text += ".\n\nRaises:\n    UnknownNameError: if there is no such field.\n    " + raises;
    const std::string signature = format_text("def replace(self, **fields: object) -> {}", type);
    cls.def("replace", [known, names, check, type](const Value& self, const nb::kwargs& changes) {
        for (nb::handle key : changes.keys()) {
            std::string name;
            if (!nb::try_cast(key, name)) name = nb::cast<std::string>(nb::repr(key));
            if (!std::ranges::count(names, name))
                throw unknown_name(std::string("field of ") + type, name, names);
        }
        Value changed(self);
        for (const Field<Value>& field : known) {
            if (!changes.contains(field.name)) continue;
            const nb::object value = changes[field.name];
            try {
                field.set(changed, value);
            } catch (const std::bad_cast&) {
                raise_wrong_field(type, field.name, value);
            }
        }
        check(changed);
        return changed;
    }, "fields"_a, nb::sig(signature.c_str()), text.c_str());
}

}  // namespace tmkit::bindings
