// Reading of untrusted pickled state: a file may be damaged, of another version, or malicious.
//
// Every length, kind and number is checked before use. A violated rule of the value throws its own
// kind of Error, all else a PickledStateError.
#pragma once

#include "bindings.hpp"

namespace tmkit::bindings {

template <class... Parts> Error damaged_state(std::string_view pattern, const Parts&... parts) {
    return {ErrorKind::pickled_state, "this pickled state is damaged: {}",
            format_text(pattern, parts...)};
}

// The entries of a tuple. It owns them, so code that runs during their conversion cannot remove
// any.
class StateTuple {
public:
    StateTuple(nb::handle state, const char* what, std::size_t count) : what_(what) {
        if (!nb::isinstance<nb::tuple>(state))
            throw damaged_state("{} must be a tuple, not {}", what,
                                nb::type_name(state.type()).c_str());
        items_ = nb::borrow<nb::tuple>(state);
        if (size() != count)
            throw damaged_state("{} must have {} entries, not {}", what, count, size());
    }

    std::size_t size() const { return nb::len(items_); }
    nb::object at(std::size_t i) const {
        return nb::borrow(PyTuple_GetItem(items_.ptr(), static_cast<Py_ssize_t>(i)));
    }
    template <class T> T get(std::size_t i) const {
        try {
            return nb::cast<T>(at(i));
        } catch (const std::bad_cast&) {
            throw wrong_entry(i);
        }
    }
    // The entries of a list or tuple at an index.
    std::vector<nb::object> items(std::size_t i) const {
        if (!nb::isinstance<nb::tuple>(at(i)) && !nb::isinstance<nb::list>(at(i)))
            throw wrong_entry(i);
        const nb::tuple owned(at(i));
        std::vector<nb::object> items;
        for (nb::handle item : owned) items.push_back(nb::borrow(item));
        return items;
    }

private:
    Error wrong_entry(std::size_t i) const {
        return damaged_state("entry {} of {} cannot be a value of type {}", i, what_,
                             nb::type_name(at(i).type()).c_str());
    }

    const char* what_;
    nb::tuple items_;
};

// The result of `read` for a state; a failed conversion in Python is an Error too.
template <class Read> auto restore(Read&& read) {
    try {
        return read();
    } catch (nb::python_error& error) {
        if (!error.matches(PyExc_ValueError) && !error.matches(PyExc_TypeError) &&
            !error.matches(PyExc_OverflowError) && !error.matches(PyExc_RecursionError))
            throw;
        throw damaged_state(nb::str(error.value()).c_str());
    }
}

// __getstate__ and __setstate__ of an immutable class; nanobind rejects the latter for an object
// with a value.
template <class Value, class Get, class Read>
void bind_state(nb::class_<Value>& cls, Get&& get, Read read) {
    cls.def("__getstate__", std::forward<Get>(get))
        .def("__setstate__", [read](Value& self, nb::handle state) {
        new (&self) Value(restore([&] { return read(state); }));
    }, "state"_a.none());
}

// __getstate__ and __setstate__ for a state whose entries are the arguments of a function that
// creates the value.
template <class Value, class Get, class... Parts>
void bind_state(nb::class_<Value>& cls, Get&& get, const char* what, Value (*make)(Parts...)) {
    bind_state(cls, std::forward<Get>(get), [what, make](nb::handle state) {
        const StateTuple s(state, what, sizeof...(Parts));
        return [&]<std::size_t... i>(std::index_sequence<i...>) {
            return make(s.get<std::remove_cvref_t<Parts>>(i)...);
        }(std::index_sequence_for<Parts...>());
    });
}

}  // namespace tmkit::bindings
