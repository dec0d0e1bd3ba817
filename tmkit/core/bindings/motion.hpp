// Common parts of the bindings of the motion half.
#pragma once

#include <cmath>

#include "bindings.hpp"
#include "tmkit/path_search.hpp"

namespace tmkit::bindings {

// Run a long computation without the GIL. `run` gets a function to call regularly, which is true if
// Python has a pending signal (Ctrl-C); the pending exception (KeyboardInterrupt) is then raised.
template <class Run> auto without_gil(Run&& run) {
    bool stopped = false;
    const auto interrupted = [&stopped] {
        nb::gil_scoped_acquire acquired;
        stopped = stopped || PyErr_CheckSignals() != 0;
        return stopped;
    };
    auto result = [&] {
        nb::gil_scoped_release released;
        return run(interrupted);
    }();
    if (stopped) throw nb::python_error();
    return result;
}

using PairNames = std::pair<std::string, std::string>;

inline std::optional<PairNames> pair_names(const CollisionWorld* world, FramePair pair) {
    if (!pair || !world) return std::nullopt;
    return PairNames{world->frame_name(pair.a), world->frame_name(pair.b)};
}

// (frame_a, frame_b, count) of each pair, as a tuple.
using PairCounts =
    nb::typed<nb::tuple, nb::typed<nb::tuple, nb::str, nb::str, nb::int_>, nb::ellipsis>;
inline PairCounts name_counts(const CollisionWorld* world, const std::vector<PairCount>& counts) {
    nb::list rows;
    for (const PairCount& count : counts)
        rows.append(nb::make_tuple(world->frame_name(count.pair.a), world->frame_name(count.pair.b),
                                   count.count));
    return PairCounts(nb::tuple(rows));
}

// Text in Python's quotes.
inline std::string quote(const std::string& text) {
    return nb::cast<std::string>(nb::repr(nb::cast(text)));
}

// Throws Error(configuration) unless value > 0 and finite.
inline void require_positive(double value, const char* name) {
    if (!(value > 0.0) || std::isinf(value))
        throw Error(ErrorKind::configuration, "{} must be positive and finite, got {}", name, value)
            .with({{"value", value}});
}

inline void require_positive(std::initializer_list<std::pair<double, const char*>> values) {
    for (const auto& [value, name] : values) require_positive(value, name);
}

// A scene, or a collision world of one for collision checks.
struct SceneOrWorld {
    nb::object value;

    const CollisionWorld* world() const {
        return nb::isinstance<CollisionWorld>(value) ? &nb::cast<const CollisionWorld&>(value)
                                                     : nullptr;
    }
    const SceneGraph& scene() const {
        return world() ? world()->scene() : nb::cast<const SceneGraph&>(value);
    }
};

// The name of a bound enum's value, such as "SOLVED".
template <class Status> std::string status_name(Status status) {
    return nb::cast<std::string>(nb::cast(status).attr("name"));
}

// Bind a class of results with the common methods of the registered class: no truth value, plain
// values, a display.
template <class T> nb::class_<T> result_class(nb::module_& m, const char* name, const char* doc) {
    using PlainValues = nb::typed<nb::dict, nb::str, nb::any>;
    static const auto call = [](nb::handle_t<T> self, const char* method) {
        return registered_function(Registered::result).attr(method)(self);
    };
    nb::class_<T> bound(m, name, nb::is_weak_referenceable(), doc);
    bound
        .def("__bool__",
             [](nb::handle_t<T> self) { return nb::cast<bool>(call(self, "__bool__")); },
             "Reject a truth value.\n\nRaises:\n    TypeError: always; the message names the "
             "alternative.")
        .def("to_dict",
             [](nb::handle_t<T> self) { return nb::cast<PlainValues>(call(self, "to_dict")); },
             "Return all properties as plain values for :func:`json.dumps`.")
        .def("_repr_html_", [](nb::handle_t<T> self) {
        return nb::cast<nb::str>(call(self, "_repr_html_"));
    }, "Return a short table for notebooks.");
    return bound;
}

// The rows of a result.
inline ReadOnlyArray array_of(const std::vector<std::vector<double>>& rows, std::size_t columns) {
    std::vector<double> values;
    for (const std::vector<double>& row : rows) values.insert(values.end(), row.begin(), row.end());
    return make_array(std::move(values), {rows.size(), columns});
}

// Inverse kinematics of a frame by these joints; `reference`: the root of its tree if omitted.
// `name` is that of q.
inline InverseKinematics make_problem(const SceneGraph& scene, const std::string& tip,
                                      const std::vector<std::string>& joints,
                                      const ArrayArgument& q, const char* name,
                                      const std::optional<std::string>& reference) {
    const std::int32_t tip_number = scene.frame_number(tip);
    const std::int32_t reference_number =
        reference ? scene.frame_number(*reference) : scene.layout().root[tip_number];
    return InverseKinematics(scene, tip_number, reference_number, joint_entries(scene, joints),
                             read_vector(q, name, scene.joint_count()));
}

}  // namespace tmkit::bindings

namespace nanobind::detail {

template <> struct type_caster<tmkit::bindings::SceneOrWorld> {
    NB_TYPE_CASTER(tmkit::bindings::SceneOrWorld,
                   const_name("tmkit._core.SceneGraph | tmkit._core.CollisionWorld"))
    bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
        value.value = borrow(source);
        return isinstance<tmkit::SceneGraph>(source) || isinstance<tmkit::CollisionWorld>(source);
    }
    static handle from_cpp(const tmkit::bindings::SceneOrWorld& source, rv_policy,
                           cleanup_list*) noexcept {
        return source.value.inc_ref();
    }
};

}  // namespace nanobind::detail
