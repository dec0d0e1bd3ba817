// Reading what pickles keep, believing nothing of it: a file may be damaged, of another version, or
// made by somebody else.
//
// Every length, kind and number is checked before it is used, and what is wrong is an Error: of its
// own kind where a rule of the value is broken, else a PickledStateError.
#pragma once

#include "bindings.hpp"

namespace tmkit::bindings {

template <class... Parts> Error damaged_state(std::string_view pattern, const Parts&... parts) {
    return {ErrorKind::pickled_state, "this pickled state is damaged: {}",
            formatted(pattern, parts...)};
}

// The entries of a tuple. It owns them, so that what runs while they are converted can take none
// away.
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
    // The entries of a list or tuple that stands at a place.
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

// What `read` makes of a state; a conversion that Python refuses is an Error too.
template <class Read> auto restored(Read&& read) {
    try {
        return read();
    } catch (nb::python_error& error) {
        if (!error.matches(PyExc_ValueError) && !error.matches(PyExc_TypeError) &&
            !error.matches(PyExc_OverflowError) && !error.matches(PyExc_RecursionError))
            throw;
        throw damaged_state(nb::str(error.value()).c_str());
    }
}

// __getstate__ and __setstate__ of an immutable class; nanobind refuses the latter where there is a
// value already.
template <class Value, class Get, class Read>
void bind_state(nb::class_<Value>& cls, Get&& get, Read read) {
    cls.def("__getstate__", std::forward<Get>(get))
        .def("__setstate__", [read](Value& self, nb::handle state) {
        new (&self) Value(restored([&] { return read(state); }));
    }, "state"_a.none());
}

// The same for a state whose entries are what a function makes the value of.
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
