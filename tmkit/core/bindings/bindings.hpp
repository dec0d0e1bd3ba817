// Common parts of the bindings: reading arrays, making read-only arrays, and the names of the bind
// functions.
//
// The bindings are thin: they convert values between Python and the core, and hold the docstrings
// of the Python documentation. They contain no rule of the scene graph.
#pragma once

#include <algorithm>
#include <concepts>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "casters.hpp"
#include "tmkit/covariance.hpp"
#include "tmkit/pose.hpp"
#include "tmkit/scene_arrays.hpp"
#include "tmkit/scene_graph.hpp"

namespace nb = nanobind;

// Common parts of docstrings: arguments of queries along a path, and ends.
#define POSE_ARGS                                    \
    "\n    frame: the frame whose pose is returned." \
    "\n    relative_to: the reference frame; the root of its tree if omitted."
#define Q_ON_PATH                                                                    \
    "\n    q: (n_joints,) configuration [rad or m]; optional if no joint is on the " \
    "path."
#define OF_FRAME "\n\nArgs:\n    frame: the frame."
#define PAIR "\n\nArgs:\n    a: a frame.\n    b: another frame; the order does not matter."
#define NO_BODY "\n\nRaises:\n    UnknownNameError: if the body is unknown."
#define NO_GROUP "\n\nRaises:\n    UnknownNameError: if the group is unknown."
#define NO_JOINT "\n\nRaises:\n    UnknownNameError: if the joint is unknown."
#define NO_ROWS "\n\nRaises:\n    SceneError: if an array has another shape or non-finite numbers."
#define NO_FRAME "\n\nRaises:\n    UnknownNameError: if a frame is unknown."
#define NO_PATH NO_FRAME "\n    DisconnectedError: if the frames are in different trees."
#define NO_POSE                                                                                 \
    NO_PATH                                                                                     \
    "\n    ConfigurationError: if a joint is on the path and q is missing, or q has the wrong " \
    "length"                                                                                    \
    " or non-finite numbers."

namespace tmkit::bindings {

using namespace nb::literals;  // "name"_a: an argument of that name

// Python objects that are registered with the core at import, since the core imports no module of
// the package. They are the exception classes by name; the function (function, positional,
// keywords) -> error of a call that fits no signature; the class whose functions are the methods of
// all results; the function (values, units, name) -> numbers of quantities; JSON text -> immutable
// map, and JSON value -> text.
enum class Registered {
    errors,
    argument_error,
    result,
    si_numbers,
    tree_html,
    attribute_map,
    attribute_text
};

// Return a registered object, owned, since a call of it may register another. Invalid if it is not
// registered, before the module is initialised and after it is cleared at exit;
// `registered_function` throws std::runtime_error then.
nb::object registered(Registered what);
nb::object registered_function(Registered function);

// An argument that is any sequence or array of numbers; type checkers get numpy.typing.ArrayLike.
struct ArrayArgument {
    nb::object value;
    operator nb::handle() const { return value; }
};
// An argument that is a number, or a quantity with a unit, which `read_number` converts.
struct NumberArgument {
    double number = 0.0;
    nb::object quantity;
};
// Arguments that may be None.
using OptionalStamp = std::optional<double>;  // [s]
using OptionalArray = std::optional<ArrayArgument>;
using OptionalName = std::optional<std::string_view>;

// A mapping. A list or text, which nb::mapping accepts, is an argument of a wrong type.
class Mapping : public nb::mapping {
    NB_OBJECT_DEFAULT(Mapping, nb::mapping, "collections.abc.Mapping", is_mapping)

private:
    static bool is_mapping(PyObject* value) {
        return PyMapping_Check(value) && nb::hasattr(value, "items");
    }
};

// Handle of a shape in Python: one of its owners.
struct ShapeHandle {
    Ref<const Shape> shape;
    bool operator==(const ShapeHandle& other) const { return shape->same_content(*other.shape); }
};

// A shape on a frame, or a bare shape at the frame's origin.
struct ShapeArgument {
    nb::object value;
    AttachedShape attached() const;
};
std::vector<AttachedShape> attached_shapes(const std::vector<ShapeArgument>& shapes);

// A pose, or an uncertain pose.
struct PoseArgument {
    nb::object value;
    Pose mean() const;
};

// A read-only numpy array that owns its numbers.
template <class Number> struct OwnedArray {
    nb::object array;
};
using ReadOnlyArray = OwnedArray<double>;
using ReadOnlyIndices = OwnedArray<std::int32_t>;

template <class Number>
OwnedArray<Number> make_owned(std::vector<Number> values,
                              std::initializer_list<std::size_t> shape) {
    auto* owned = new std::vector<Number>(std::move(values));
    nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<Number>*>(p); });
    return {nb::cast(
        nb::ndarray<nb::numpy, const Number>(owned->data(), shape.size(), shape.begin(), owner))};
}
// Create a small array, by numpy over bytes, in half the time. Undefined at the end of the
// interpreter.
nb::object small_array(std::span<const double> numbers);
template <class Number> OwnedArray<Number> make_owned(std::vector<Number> values) {
    const std::size_t count = values.size();
    if constexpr (std::is_same_v<Number, double>)
        if (count > 0 && count <= 64)
            if (nb::object array = small_array(values); array.is_valid()) return {std::move(array)};
    return make_owned(std::move(values), {count});
}

// Throws if an array has masked values, which have no number. Arrays of numpy's own type have no
// mask.
void reject_masked(nb::handle values, const char* what, ErrorKind kind);

// SI unit of the numbers of an argument ("m"), or of each along its last axis ("m m rad"); empty
// for numbers without a unit. The text is only made if an argument has quantities.
class Units {
public:
    Units(const char* text = "") : text_(text) {}
    // Those of the entries of a configuration of a scene; `velocity` for those of their rates.
    template <class Scene> static Units of_joints(const Scene& scene, bool velocity = false);
    std::string text() const { return of_joints_ ? of_joints_(scene_, velocity_) : text_; }

private:
    const char* text_ = "";
    const void* scene_ = nullptr;
    bool velocity_ = false;
    std::string (*of_joints_)(const void*, bool) = nullptr;
};
std::string joint_units(const SceneGraph& scene, bool velocity);
std::string joint_units(const SceneArrays& scene, bool velocity);
template <class Scene> Units Units::of_joints(const Scene& scene, bool velocity) {
    Units units;
    units.scene_ = &scene;
    units.velocity_ = velocity;
    units.of_joints_ = [](const void* of, bool rates) {
        return joint_units(*static_cast<const Scene*>(of), rates);
    };
    return units;
}

// Of [rho, theta], of a twist with its linear part first, and of a position with a quaternion.
inline constexpr const char *xi_units = "m m m rad rad rad",
                            *twist_units = "m/s m/s m/s rad/s rad/s rad/s",
                            *pose_units = "m m m 1 1 1 1";

// A number in its unit; throws Error naming `what` for a quantity of another dimension.
double read_number(const NumberArgument& argument, const char* what, const char* unit,
                   ErrorKind kind = ErrorKind::scene);
inline double read_stamp(const NumberArgument& stamp, const char* what = "stamp") {
    return read_number(stamp, what, "s", ErrorKind::stamp);
}

// Any sequence or array of `expected` finite numbers; throws Error(configuration or scene) naming
// `what`. A float64 array is held, without a copy, while its numbers are read, by Python's buffer
// protocol, at half the cost of DLPack.
class HeldVector {
public:
    HeldVector(nb::handle values, const char* what, std::size_t expected,
               ErrorKind kind = ErrorKind::configuration, const Units& units = {});
    // For an expected number that the conversion may change, since it may run user code: it is
    // evaluated again afterwards.
    template <std::invocable Expected>
    HeldVector(nb::handle values, const char* what, Expected&& expected, const Units& units)
        : HeldVector(values, what, expected(), ErrorKind::configuration, units) {
        if (numbers_.size() != expected())
            throw Error(ErrorKind::configuration, "{} was read while the number of joints changed",
                        what);
    }
    HeldVector(const HeldVector&) = delete;
    HeldVector& operator=(const HeldVector&) = delete;
    ~HeldVector() {
        if (buffer_.obj) PyBuffer_Release(&buffer_);
    }
    std::span<const double> numbers() const { return numbers_; }
    std::vector<double> copy() const { return {numbers_.begin(), numbers_.end()}; }

private:
    bool hold_buffer(nb::handle values, std::size_t expected);
    bool read_sequence(nb::handle values, std::size_t expected);

    Py_buffer buffer_;
    std::vector<double> read_;
    std::optional<nb::ndarray<const double, nb::c_contig, nb::device::cpu>> array_;
    std::span<const double> numbers_;
};
inline std::vector<double> read_vector(nb::handle values, const char* what, std::size_t expected,
                                       ErrorKind kind = ErrorKind::configuration,
                                       const Units& units = {}) {
    return HeldVector(values, what, expected, kind, units).copy();
}
// Read N finite numbers; throws Error(scene).
template <std::size_t N>
std::array<double, N> read_array(nb::handle values, const char* what, const Units& units = {}) {
    const HeldVector held(values, what, N, ErrorKind::scene, units);
    std::array<double, N> numbers;
    std::copy(held.numbers().begin(), held.numbers().end(), numbers.begin());
    return numbers;
}
inline Vector3 read_vector3(nb::handle values, const char* what, const Units& units = {}) {
    return read_array<3>(values, what, units);
}
// Read any (m, columns) array of finite numbers, or nested sequences; row by row.
std::vector<double> read_matrix(nb::handle values, const char* what, std::size_t columns,
                                ErrorKind kind = ErrorKind::configuration, const Units& units = {});
// Read any (rows, columns) array of finite numbers; row by row.
std::vector<double> read_shaped(nb::handle values, const char* what, std::size_t rows,
                                std::size_t columns, const Units& units = {});
// Read an array of any number of columns, which is returned, too.
std::vector<double> read_grid(nb::handle values, const char* what, std::size_t& columns,
                              ErrorKind kind, const Units& units = {});
// Read any (m, columns) array of integers of 32 bits.
std::vector<std::int32_t> read_indices(nb::handle values, const char* what, std::size_t columns,
                                       ErrorKind kind);
// Throws unknown_name for an unknown level.
CollisionLevel read_level(const std::string& name);

// Create an array of a finite result; throws Error(overflow). make_owned is for possibly infinite
// numbers (limits, distances to nothing).
inline ReadOnlyArray make_array(std::vector<double> values,
                                std::initializer_list<std::size_t> shape) {
    require_in_range(values, "the result");
    return make_owned(std::move(values), shape);
}
inline Pose in_range(const Pose& pose) {
    require_in_range(pose, "the resulting pose");
    return pose;
}
GaussianPose in_range(const GaussianPose& pose);

// Create an array of numbers, and one of rows of equal length.
inline ReadOnlyArray make_array(std::vector<double> values) {
    require_in_range(values, "the result");
    return make_owned(std::move(values));
}
inline ReadOnlyArray make_rows(std::vector<double> values, std::size_t columns) {
    const std::size_t count = values.size() / columns;
    return make_array(std::move(values), {count, columns});
}
template <std::size_t N> ReadOnlyArray make_array(const std::array<double, N>& values) {
    return make_array(std::vector<double>(values.begin(), values.end()));
}
// A matrix of n rows and n columns.
template <std::size_t N>
ReadOnlyArray make_square(const std::array<double, N>& matrix, std::size_t n) {
    return make_array(std::vector<double>(matrix.begin(), matrix.end()), {n, n});
}
// Return the results of `make` for each row of an (m, columns) argument, as rows.
template <class Make>
ReadOnlyArray make_each(nb::handle argument, const char* what, std::size_t columns, Make&& make,
                        const Units& units = {}) {
    const std::vector<double> matrix_rows =
        read_matrix(argument, what, columns, ErrorKind::scene, units);
    using Row = decltype(make(matrix_rows.data()));
    std::vector<double> made;
    made.reserve(matrix_rows.size() / columns * std::tuple_size_v<Row>);
    for (std::size_t i = 0; i < matrix_rows.size(); i += columns) {
        const Row row = make(&matrix_rows[i]);
        made.insert(made.end(), row.begin(), row.end());
    }
    return make_rows(std::move(made), std::tuple_size_v<Row>);
}
// x, y, z, qx, qy, qz, qw, and back.
using PoseNumbers = std::array<double, 7>;
inline PoseNumbers numbers_of(const Pose& pose) {
    const auto& [t, q] = pose;
    return {t[0], t[1], t[2], q[0], q[1], q[2], q[3]};
}
inline Pose pose_of(const double* v) {
    return Pose::checked({v[0], v[1], v[2]}, {v[3], v[4], v[5], v[6]});
}
inline void write_pose(double* row, const Pose& pose) { std::ranges::copy(numbers_of(pose), row); }

// A configuration argument, checked against the number of joints. None is nullptr for scenes, and
// the present configuration for arrays.
template <class Scene> struct Given {
    Given(const OptionalArray& q, const Scene& scene) : Given(q, scene, "q", false) {}
    // Of the velocities of the joints.
    static Given rates(const OptionalArray& qd, const Scene& scene) {
        return Given(qd, scene, "qd", true);
    }
    auto get() const {
        if constexpr (std::is_same_v<Scene, SceneGraph>)
            return held ? held->numbers().data() : nullptr;
        else return held ? SceneArrays::Configuration(held->numbers()) : std::nullopt;
    }
    std::optional<HeldVector> held;

private:
    Given(const OptionalArray& values, const Scene& scene, const char* what, bool velocity) {
        if (values)
            held.emplace(*values, what, [&] { return scene.joint_count(); },
                         Units::of_joints(scene, velocity));
    }
};
using ConfigurationArgument = Given<SceneGraph>;

// The reference frame of a pose: the given one, or the root of the frame's tree.
inline std::string_view reference_frame(const SceneGraph& scene, std::string_view frame,
                                        const OptionalName& relative_to) {
    return relative_to ? *relative_to
                       : scene.record(scene.root_of(scene.record(frame).id)).name->text;
}

// A docstring that is assembled from parts.
struct Text {
    std::string text;
    operator const char*() const { return text.c_str(); }
    Text operator+(const char* more) const { return {text + more}; }
};

template <class Value> using TupleOf = nb::typed<nb::tuple, Value, nb::ellipsis>;
// moved: std::bad_alloc of a copy would become a bad cast.
template <class Value> TupleOf<Value> tuple_of(std::vector<Value> values) {
    return TupleOf<Value>(nb::tuple(nb::cast(std::move(values))));
}
using Names = TupleOf<nb::str>;
inline Names tuple_of(const std::vector<std::string>& names) {
    return Names(nb::tuple(nb::cast(names)));
}
inline Names names_of(const SceneGraph& scene, const std::vector<FrameId>& frames) {
    nb::list names;
    for (const FrameId id : frames) names.append(scene.record(id).name->text);
    return Names(nb::tuple(names));
}

// __init__ of a class, by a function that creates its value.
template <class Value, class... Arguments> auto made_by(Value (*make)(Arguments...)) {
    return [make](Value* self, Arguments... arguments) { new (self) Value(make(arguments...)); };
}

// __eq__ of a class: equal to objects of the same class only.
template <class Value> bool equals(const Value& a, nb::handle b) {
    return nb::isinstance<Value>(b) && a == nb::cast<const Value&>(b);
}

// Bind equality of an immutable value, its hash by `key` (a number of less than 63 bits is used
// unchanged), and its text.
template <class Value, class Key, class Text>
void bind_value(nb::class_<Value>& cls, Key key, Text text) {
    cls.def("__eq__", &equals<Value>, "other"_a.none())
        .def("__hash__", [key](const Value& value) {
        if constexpr (std::is_integral_v<decltype(key(value))>)
            return static_cast<Py_hash_t>(key(value));
        else return nb::hash(key(value));
    }).def("__repr__", text);
}

// Free tags of frames: JSON values, stored as canonical text.
using AttributeMapping = nb::typed<Mapping, nb::str, nb::any>;
std::string attribute_text(const std::string& key, nb::handle value);
Attributes attributes_of(const AttributeMapping& values);
std::string_view remove_stamp(std::string_view text);  // JSON without the stamp
const FrameDetails& details_on(const FrameRecord& record);
nb::object attribute_map(const Attributes& attributes);
Attributes with_attribute(Attributes attributes, const std::string& key, const std::string& text);
nb::object stamps_of(const Attributes& attributes);

// Twist edges: name of the reference body, and six numbers.
using TwistArgument = std::tuple<std::string, nb::object>;
TwistEdge read_twist_edge(const std::string& reference, nb::handle vector);
std::optional<TwistEdge> read_twist(const std::optional<TwistArgument>& twist);
std::optional<std::tuple<std::string, ReadOnlyArray>> twist_tuple(
    const std::optional<TwistEdge>& twist);

// Stamped poses; None if the edge has no history.
Ref<const StampCovariance> stamp_covariance(const OptionalArray& covariance,
                                            std::string_view what);  // null without one
std::optional<StampedPoses> stamps_copy(const Ref<const StampedPoses>& stamps);
Ref<const StampedPoses> stamps_ref(const std::optional<StampedPoses>& stamps);
nb::object stamps_state(const Ref<const StampedPoses>& stamps);
Ref<const StampedPoses> stamps_from_state(nb::handle state);
// Handles of the noise of an edge and of a source in Python.
struct NoiseHandle {
    Ref<const EdgeNoise> noise;
    bool operator==(const NoiseHandle& other) const { return noise->same_content(*other.noise); }
};
inline std::optional<NoiseHandle> noise_or_none(const Ref<const EdgeNoise>& noise) {
    return noise ? std::optional(NoiseHandle{noise}) : std::nullopt;
}
struct SourceHandle {
    Ref<const NoiseSource> source;
    bool operator==(const SourceHandle& other) const { return source == other.source; }
};

// A shape on a frame, checked.
AttachedShape make_attached(const ShapeHandle& shape, const Pose& pose, const OptionalArray& color,
                            bool visual, bool collision, const std::optional<double>& friction,
                            const std::optional<std::string>& level,
                            const OptionalStamp& stamp = {});
// The same error with an exact covariance, as first given; throws Error(scene) if it differs from
// that of the maps.
Ref<const EdgeNoise> with_covariance(const EdgeNoise& noise, const Covariance& covariance);

nb::tuple scene_state(const SceneGraph& scene);
SceneGraph scene_from_state(nb::handle state);
std::string digest_text(const ContentSum& digest);

std::string pose_text(const Pose& pose);
inline std::string capitalise(std::string name) {
    name[0] = static_cast<char>(std::toupper(name[0]));
    return name;
}

void bind_registered(nb::module_& m);
// Read a symmetric positive semi-definite (6, 6) argument, and return such an array.
Covariance read_covariance(const ArrayArgument& matrix, std::string_view what);
ReadOnlyArray covariance_array(const Covariance& covariance);

void bind_pose(nb::module_& m);
void bind_gaussian_pose(nb::module_& m);
void bind_elementary(nb::module_& m);
void bind_noise(nb::module_& m);
void bind_measurement(nb::module_& m);
template <class Scene> void bind_pose_queries(nb::class_<Scene>& cls);
void bind_scene_functions(nb::module_& m);
void bind_shape(nb::module_& m);
void bind_joint(nb::module_& m);
void bind_scene_graph(nb::module_& m);
void bind_stamped_poses(nb::module_& m);
void bind_scene_records(nb::module_& m);
void bind_scene_difference(nb::module_& m);
void bind_structure_queries(nb::class_<SceneGraph>& cls);
void bind_structure_queries(nb::class_<SceneArrays>& cls);
void bind_scene_queries(nb::class_<SceneGraph>& cls);
void bind_relations(nb::class_<SceneGraph>& cls);
void bind_kinematics(nb::module_& m);
void bind_scene_arrays(nb::module_& m);
void bind_collision_world(nb::module_& m);
void bind_motion_settings(nb::module_& m);
void bind_inverse_kinematics(nb::module_& m);
void bind_path_search(nb::module_& m);
void bind_task_search(nb::module_& m);
void bind_argument_errors(nb::module_& m);

}  // namespace tmkit::bindings

namespace nanobind::detail {

template <> struct type_caster<tmkit::bindings::ArrayArgument> {
    NB_TYPE_CASTER(tmkit::bindings::ArrayArgument, const_name("numpy.typing.ArrayLike"))
    bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
        value.value = borrow(source);
        return true;
    }
    static handle from_cpp(const tmkit::bindings::ArrayArgument& source, rv_policy,
                           cleanup_list*) noexcept {
        return source.value.inc_ref();
    }
};

template <> struct type_caster<tmkit::bindings::NumberArgument> {
    NB_TYPE_CASTER(tmkit::bindings::NumberArgument, const_name("float"))
    bool from_python(handle source, std::uint8_t flags, cleanup_list* cleanup) noexcept {
        make_caster<double> number;
        const bool is_number = PyFloat_Check(source.ptr()) || PyLong_Check(source.ptr());
        if (!is_number && hasattr(source, "magnitude") && hasattr(source, "to")) {
            value.quantity = borrow(source);
            return true;
        }
        if (!number.from_python(source, flags, cleanup)) return false;
        value.number = number.value;
        return true;
    }
    static handle from_cpp(const tmkit::bindings::NumberArgument& source, rv_policy,
                           cleanup_list*) noexcept {
        return PyFloat_FromDouble(source.number);
    }
};

template <> struct type_caster<tmkit::bindings::ShapeArgument> {
    NB_TYPE_CASTER(tmkit::bindings::ShapeArgument,
                   const_name("tmkit._core.AttachedShape | tmkit._core.Shape"))
    bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
        value.value = borrow(source);
        return isinstance<tmkit::AttachedShape>(source) ||
               isinstance<tmkit::bindings::ShapeHandle>(source);
    }
    static handle from_cpp(const tmkit::bindings::ShapeArgument& source, rv_policy,
                           cleanup_list*) noexcept {
        return source.value.inc_ref();
    }
};

template <> struct type_caster<tmkit::bindings::PoseArgument> {
    NB_TYPE_CASTER(tmkit::bindings::PoseArgument,
                   const_name("tmkit._core.Pose | tmkit._core.GaussianPose"))
    bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
        value.value = borrow(source);
        return isinstance<tmkit::Pose>(source) || isinstance<tmkit::GaussianPose>(source);
    }
    static handle from_cpp(const tmkit::bindings::PoseArgument& source, rv_policy,
                           cleanup_list*) noexcept {
        return source.value.inc_ref();
    }
};

template <class Number> struct type_caster<tmkit::bindings::OwnedArray<Number>> {
    NB_TYPE_CASTER(tmkit::bindings::OwnedArray<Number>,
                   const_name("numpy.typing.NDArray[numpy.") +
                       const_name<std::is_floating_point_v<Number>>("float64", "int32") +
                       const_name("]"))
    bool from_python(handle, std::uint8_t, cleanup_list*) noexcept { return false; }
    static handle from_cpp(const tmkit::bindings::OwnedArray<Number>& source, rv_policy,
                           cleanup_list*) noexcept {
        return source.array.inc_ref();
    }
};

}  // namespace nanobind::detail
