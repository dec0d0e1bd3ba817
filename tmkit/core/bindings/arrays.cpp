#include <cmath>
#include <limits>

#include "bindings.hpp"

namespace tmkit::bindings {
void reject_masked(nb::handle values, const char* what, ErrorKind kind) {
    if (std::string_view(Py_TYPE(values.ptr())->tp_name) == "numpy.ndarray" ||
        !nb::hasattr(values, "mask"))
        return;
    const nb::object mask = nb::module_::import_("numpy").attr("any")(values.attr("mask"));
    if (PyObject_IsTrue(mask.ptr()) == 1)
        throw Error(kind,
                    "{} is an array with masked values; fill them first, as in array.filled(0.0)",
                    what);
}

namespace {

using Array = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;

constexpr double largest_exact = 9007199254740992.0;  // 2^53: float64 holds all smaller integers

// Throws if float64 cannot represent an integer; numpy rejects integers that are too large.
void require_exact(nb::handle integer, const char* what, ErrorKind kind) {
    const double number = PyLong_AsDouble(integer.ptr());
    if (number == -1.0 && PyErr_Occurred()) return PyErr_Clear();
    if (PyObject_RichCompareBool(nb::float_(number).ptr(), integer.ptr(), Py_EQ) != 1)
        throw Error(kind, "{} holds {}, which float64 cannot hold", what, nb::str(integer).c_str());
}

// Throws if an object in an array is not a real number (text, dates), or is an integer that float64
// cannot represent.
void require_real(nb::handle value, const char* what, ErrorKind kind) {
    const bool is_typed = nb::hasattr(value, "dtype");  // a number of numpy
    const std::string letter =
        is_typed ? nb::cast<std::string>(value.attr("dtype").attr("kind")) : "O";
    const nb::object number = is_typed && letter != "O" ? value.attr("item")() : nb::borrow(value);
    if (std::string_view("fiubO").find(letter) == std::string_view::npos ||
        PyUnicode_Check(number.ptr()) || PyBytes_Check(number.ptr()))
        throw Error(kind, "{} must be an array of real numbers, not of objects such as {}", what,
                    nb::cast<std::string>(nb::repr(value)));
    if (PyLong_Check(number.ptr())) require_exact(number, what, kind);
}

// Convert an array of another type to float64; throws if its numbers would change. Decimal numbers
// and fractions are rounded to the nearest, as in text.
nb::object as_float64(const nb::object& argument, const char* what, ErrorKind kind) {
    const nb::module_ numpy = nb::module_::import_("numpy");
    const auto convert = [&numpy](const nb::object& array, const char* type) {
        // Without warnings.
        return numpy.attr("errstate")("all"_a = "ignore")(array.attr("astype"))(type);
    };
    const nb::object dtype = argument.attr("dtype");
    const bool has_objects = nb::cast<std::string>(dtype.attr("kind")) == "O";
    if (has_objects)
        for (nb::handle value : argument.attr("flat")) require_real(value, what, kind);
    nb::object result = convert(argument, "float64");
    if (has_objects || nb::cast<int>(dtype.attr("itemsize")) < 8) return result;
    const nb::object before = convert(argument, "longdouble"),
                     after = convert(result, "longdouble");
    if (!nb::cast<bool>(numpy.attr("array_equal")(before, after, "equal_nan"_a = true)))
        throw Error(kind,
                    "{} holds numbers of type {} that float64 cannot hold; round them first: "
                    "array.astype(float)",
                    what, nb::str(dtype).c_str());
    return result;
}

// Return the numbers of values with quantities in SI units, as the registered function.
nb::object si_numbers(nb::handle values, const char* what, ErrorKind kind,
                      const std::string& units) {
    try {
        return registered_function(Registered::si_numbers)(values, units, what);
    } catch (nb::python_error& error) {
        if (!error.matches(PyExc_ValueError)) throw;
        throw Error(kind, "{}", nb::cast<std::string>(nb::str(error.value())));
    }
}

// Return plain numbers. Values with a unit (quantities of pint) are converted, since they lose it
// when numpy converts them.
nb::object plain(nb::handle argument, const char* what, ErrorKind kind, const Units& units) {
    constexpr int most_dimensions = 64;  // of arrays of numpy, which rejects more
    const auto is_plain = [](nb::handle value) {
        return PyFloat_Check(value.ptr()) || PyLong_Check(value.ptr()) ||
               PyObject_CheckBuffer(value.ptr());
    };
    // Checks all values; whether one of them is a quantity.
    const auto has_quantity = [&](const auto& self, nb::handle values, int depth) -> bool {
        if (is_plain(values) || depth > most_dimensions) return false;
        if (!PyList_Check(values.ptr()) && !PyTuple_Check(values.ptr()))
            return nb::hasattr(values, "magnitude") && nb::hasattr(values, "to");
        bool has = false;
        for (nb::handle value : values) {
            has |= self(self, value, depth + 1);
            if (PyLong_CheckExact(value.ptr())) require_exact(value, what, kind);
            else if (PyObject_CheckBuffer(value.ptr())) reject_masked(value, what, kind);
        }
        return has;
    };
    return has_quantity(has_quantity, argument, 0) ? si_numbers(argument, what, kind, units.text())
                                                   : nb::borrow(argument);
}

// Hint on creating a configuration, for messages.
std::string configuration_hint(ErrorKind kind) {
    return kind == ErrorKind::configuration
               ? "; write one number for each joint, in the order of joint_names, or "
                 "scene.configuration({joint: value})"
               : "";
}

// Fast path for float64 arrays; numpy converts all other real numbers (no text, no complex
// numbers).
Array as_array(nb::handle argument, const char* what, ErrorKind kind, const Units& units = {}) {
    Array array;
    const nb::object values = plain(argument, what, kind, units);
    reject_masked(values, what, kind);
    if (nb::try_cast<Array>(values, array, false)) return array;
    const std::string expected = std::string(what) + " must be an array of real numbers";
    try {
        nb::object converted =
            nb::module_::import_("numpy").attr("asarray")(values, "order"_a = "C");
        const nb::object dtype = converted.attr("dtype"), letter = dtype.attr("kind");
        if (std::string("fiubO").find(nb::cast<std::string>(letter)) == std::string::npos)
            throw Error(kind, "{}, not of type {}", expected, nb::str(dtype).c_str());
        return nb::cast<Array>(as_float64(converted, what, kind));
    } catch (nb::python_error& error) {
        const bool is_known = error.matches(PyExc_ValueError) || error.matches(PyExc_TypeError);
        if (!is_known && !error.matches(PyExc_OverflowError)) throw;
        throw Error(kind, "{}, not {}{}", expected, nb::cast<std::string>(nb::repr(values)),
                    configuration_hint(kind));
    }
}

template <class AnyArray> std::string shape_text(const AnyArray& array) {
    std::string text = "(";
    for (std::size_t i = 0; i < array.ndim(); ++i)
        text += (i ? ", " : "") + std::to_string(array.shape(i));
    return text + (array.ndim() == 1 ? ",)" : ")");
}

template <class AnyArray>
void require_columns(const AnyArray& array, const char* what, std::size_t columns, ErrorKind kind) {
    if (array.ndim() != 2 || array.shape(1) != columns)
        throw Error(kind, "{} must have shape (m, {}), not {}{}", what, columns, shape_text(array),
                    configuration_hint(kind));
}

// Fast path for contiguous integers; false for all other arrays.
template <class Integer>
bool read_integers(nb::handle values, const char* what, std::size_t columns, ErrorKind kind,
                   std::vector<std::int32_t>& result) {
    nb::ndarray<const Integer, nb::c_contig, nb::device::cpu> array;
    reject_masked(values, what, kind);
    if (!PyObject_CheckBuffer(values.ptr()) || !nb::try_cast(values, array, false)) return false;
    require_columns(array, what, columns, kind);
    result.reserve(array.size());
    for (std::size_t i = 0; i < array.size(); ++i) {
        const Integer index = array.data()[i];
        if (index != static_cast<std::int32_t>(index))
            throw Error(kind, "{} must hold integers of 32 bits, not {}", what, index);
        result.push_back(static_cast<std::int32_t>(index));
    }
    return true;
}

void require_finite(std::span<const double> numbers, const char* what, ErrorKind kind) {
    for (const double value : numbers)
        if (!std::isfinite(value))
            throw Error(kind, "{} holds {}; only finite numbers are accepted", what, value);
}

std::vector<double> finite(const Array& array, const char* what, ErrorKind kind) {
    require_finite({array.data(), array.size()}, what, kind);
    return {array.data(), array.data() + array.size()};
}

}  // namespace

// Hold a buffer if the values are a contiguous row of float64 numbers; numpy converts or rejects
// all others.
bool HeldVector::hold_buffer(nb::handle values, std::size_t expected) {
    if (!PyObject_CheckBuffer(values.ptr())) return false;
    if (PyObject_GetBuffer(values.ptr(), &buffer_, PyBUF_ND | PyBUF_FORMAT) != 0) {
        PyErr_Clear();  // not contiguous
        return false;
    }
    const bool fits = buffer_.ndim == 1 && buffer_.format &&
                      std::string_view(buffer_.format) == "d" &&
                      static_cast<std::size_t>(buffer_.shape[0]) == expected;
    if (fits) numbers_ = {static_cast<const double*>(buffer_.buf), expected};
    else PyBuffer_Release(&buffer_);
    return fits;
}

// Read lists and tuples of Python's numbers, ten times as fast as numpy.
bool HeldVector::read_sequence(nb::handle values, std::size_t expected) {
    if (!PyList_CheckExact(values.ptr()) && !PyTuple_CheckExact(values.ptr())) return false;
    for (nb::handle value : std::span(PySequence_Fast_ITEMS(values.ptr()), Py_SIZE(values.ptr()))) {
        if (!PyFloat_Check(value.ptr()) && !PyLong_CheckExact(value.ptr())) return false;
        read_.push_back(PyFloat_AsDouble(value.ptr()));
        if (PyFloat_Check(value.ptr())) continue;
        if (std::abs(read_.back()) < largest_exact && !(read_.back() == -1.0 && PyErr_Occurred()))
            continue;
        PyErr_Clear();  // from an integer that is too large
        return false;
    }
    numbers_ = read_;
    return read_.size() == expected;
}

HeldVector::HeldVector(nb::handle values, const char* what, std::size_t expected, ErrorKind kind,
                       const Units& units) {
    buffer_.obj = nullptr;
    if (PyObject_CheckBuffer(values.ptr())) reject_masked(values, what, kind);
    if (!hold_buffer(values, expected) && !read_sequence(values, expected)) {
        const Array& array = array_.emplace(as_array(values, what, kind, units));
        if (array.ndim() != 1 || array.size() != expected)
            throw Error(kind, "{} must hold {} numbers, but has shape {}{}", what, expected,
                        shape_text(array), configuration_hint(kind))
                .with({{"expected", expected}, {"received", array.size()}});
        numbers_ = {array.data(), array.size()};
    }
    require_finite(numbers_, what, kind);
}

std::vector<double> read_matrix(nb::handle values, const char* what, std::size_t columns,
                                ErrorKind kind, const Units& units) {
    const Array array = as_array(values, what, kind, units);
    require_columns(array, what, columns, kind);
    return finite(array, what, kind);
}

std::vector<double> read_shaped(nb::handle values, const char* what, std::size_t rows,
                                std::size_t columns, const Units& units) {
    constexpr ErrorKind kind = ErrorKind::scene;
    const Array array = as_array(values, what, kind, units);
    if (array.ndim() != 2 || array.shape(0) != rows || array.shape(1) != columns)
        throw Error(kind, "{} must have shape ({}, {}), not {}", what, rows, columns,
                    shape_text(array));
    return finite(array, what, kind);
}

std::vector<double> read_grid(nb::handle values, const char* what, std::size_t& columns,
                              ErrorKind kind, const Units& units) {
    const Array array = as_array(values, what, kind, units);
    if (array.ndim() != 2)
        throw Error(kind, "{} must have shape (rows, columns), not {}", what, shape_text(array));
    columns = array.shape(1);
    return finite(array, what, kind);
}

std::vector<std::int32_t> read_indices(nb::handle values, const char* what, std::size_t columns,
                                       ErrorKind kind) {
    std::vector<std::int32_t> indices;
    if (read_integers<std::int32_t>(values, what, columns, kind, indices) ||
        read_integers<std::int64_t>(values, what, columns, kind, indices))
        return indices;
    for (const double index : read_matrix(values, what, columns, kind)) {
        if (index != std::trunc(index) ||
            std::abs(index) > std::numeric_limits<std::int32_t>::max())
            throw Error(kind, "{} must hold integers of 32 bits, not {}", what, index);
        indices.push_back(static_cast<std::int32_t>(index));
    }
    return indices;
}

double read_number(const NumberArgument& argument, const char* what, const char* unit,
                   ErrorKind kind) {
    if (!argument.quantity.is_valid()) return argument.number;
    const nb::object converted = si_numbers(argument.quantity, what, kind, unit);
    double number = 0.0;
    if (!nb::try_cast(converted, number))
        throw Error(kind, "{} must be one number, not {}", what,
                    nb::cast<std::string>(nb::repr(argument.quantity)));
    return number;
}

std::string joint_units(const SceneGraph& scene, bool velocity) {
    std::string units;
    for (const FrameId id : scene.joint_frames()) {
        units += scene.record(id).joint->type == JointType::prismatic ? "m" : "rad";
        units += velocity ? "/s " : " ";
    }
    return units;
}

std::string joint_units(const SceneArrays& scene, bool velocity) {
    return joint_units(scene.freeze(), velocity);
}

std::string pose_text(const Pose& pose) {
    return format_text("Pose({}, quat_xyzw={})", pose.translation, pose.quat_xyzw);
}

}  // namespace tmkit::bindings
