#include "tmkit/pose.hpp"

#include <cmath>

#include "state.hpp"

#define NO_SIX "\n\nRaises:\n    SceneError: if the argument is not six finite numbers."
#define NO_POSE_ROWS                                                                            \
    "\n\nRaises:\n    SceneError: if an array has another shape or non-finite numbers, or the " \
    "quaternion is zero."

namespace tmkit::bindings {
namespace {

bool is_matrix(nb::handle values) {
    return nb::hasattr(values, "shape") && values.attr("shape").equal(nb::make_tuple(4, 4));
}

Pose make_pose(const ArrayArgument& translation, const ArrayArgument& quat_xyzw) {
    if (is_matrix(translation.value))
        throw Error(ErrorKind::scene,
                    "translation must hold 3 numbers, but is a (4, 4) matrix; write "
                    "Pose.from_matrix(matrix)");
    const Vector4 q = read_array<4>(quat_xyzw, "quat_xyzw");
    return Pose::checked(read_vector3(translation, "translation", "m"), q);
}

Pose from_array(const ArrayArgument& seven) {
    return pose_of(read_array<7>(seven, "pose", pose_units).data());
}

Matrix3 matrix3(const std::vector<double>& v, std::size_t stride) {
    Matrix3 m;
    for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 3; ++j) m[3 * i + j] = v[stride * i + j];
    return m;
}

Pose from_matrix(const ArrayArgument& matrix) {
    const std::vector<double> v = read_shaped(matrix, "matrix", 4, 4, "1 1 1 m");
    // Accept rounding errors of zeros by exponentials and inverses of matrices, as in the rotation.
    const auto differs = [&v](std::size_t i, double exact) {
        return !(std::abs(v[i] - exact) <= 1e-9);
    };
    if (differs(12, 0.0) || differs(13, 0.0) || differs(14, 0.0) || differs(15, 1.0))
        throw Error(ErrorKind::scene, "the last row of a rigid transform is [0, 0, 0, 1]");
    return Pose::from_rotation_matrix({v[3], v[7], v[11]}, matrix3(v, 4));
}

Pose from_rotation_matrix(const ArrayArgument& translation, const ArrayArgument& rotation) {
    const std::vector<double> v = read_shaped(rotation, "rotation", 3, 3);
    return Pose::from_rotation_matrix(read_vector3(translation, "translation", "m"), matrix3(v, 3));
}

ReadOnlyArray transform_points(const Pose& pose, const ArrayArgument& argument, bool translate) {
    const nb::object& points = argument.value;
    const char* unit = translate ? "m" : "";
    const auto map_point = [&](const Vector3& p) {
        return translate ? pose.apply(p) : pose.rotate(p);
    };
    const auto is_matrix = [&points] {
        if (nb::hasattr(points, "ndim")) return nb::cast<int>(points.attr("ndim")) == 2;
        if (!nb::isinstance<nb::sequence>(points) || nb::len(points) == 0) return false;
        const nb::object first = points[0];  // of a quantity, which has a length without entries
        if (nb::hasattr(first, "ndim")) return nb::cast<int>(first.attr("ndim")) > 0;
        return nb::hasattr(first, "__len__");
    };
    if (is_matrix())
        return make_each(points, "points", 3, [&](const double* row) {
            return map_point({row[0], row[1], row[2]});
        }, unit);
    return make_array(map_point(read_vector3(points, "point", unit)));
}

void bind_pose_construction(nb::class_<Pose>& cls) {
    cls.def("__init__", made_by(&make_pose), "translation"_a = nb::make_tuple(0.0, 0.0, 0.0),
            "quat_xyzw"_a = nb::make_tuple(0.0, 0.0, 0.0, 1.0))
        .def_static("identity", [] { return Pose{}; }, "Return the identity.")
        .def_static("from_matrix", &from_matrix, "matrix"_a,
                    R"(Create a pose from a homogeneous matrix (4, 4).

Raises:
    SceneError: if the matrix is not orthonormal within 1e-6, is left-handed, or its last row is not
        [0, 0, 0, 1] within 1e-9.)")
        .def_static("from_rotation_matrix", &from_rotation_matrix, "translation"_a, "rotation"_a,
                    R"(Create a pose from a translation and a rotation matrix.

Args:
    translation: (3,) the child's origin in the parent [m].
    rotation: (3, 3) orthonormal matrix; its columns are the child's axes in the parent.

Raises:
    SceneError: if the matrix is not orthonormal within 1e-6 or is left-handed.)")
        .def_static("from_rpy",
                    [](const ArrayArgument& translation, const ArrayArgument& rpy) {
        return Pose::from_rpy(read_vector3(translation, "translation", "m"),
                              read_vector3(rpy, "rpy", "rad"));
    }, "translation"_a, "rpy"_a,
                    R"(Create a pose from a translation and roll, pitch and yaw about fixed axes.

Args:
    translation: (3,) the child's origin in the parent [m].
    rpy: (3,) roll, pitch and yaw [rad]: ``R = Rz(yaw) Ry(pitch) Rx(roll)``.

Raises:
    SceneError: if an argument has another shape or non-finite numbers.)")
        .def_static(
            "from_array", &from_array, "values"_a,
            R"(Create a pose from seven numbers: translation x, y, z [m] and quaternion x, y, z, w.

Raises:
    SceneError: if the argument is not seven finite numbers, or the quaternion is zero.)")
        .def_static("exp",
                    [](const ArrayArgument& xi) {
        return in_range(Pose::exp(read_array<6>(xi, "xi", xi_units)));
    }, "xi"_a,
                    R"(Return the exponential of xi = [rho, theta], (6,) [m, rad].

Raises:
    SceneError: if the argument is not six finite numbers.)");
}

void bind_pose_operations(nb::class_<Pose>& cls) {
    cls.def("log",
            [](const Pose& p) {
        return make_array(p.log());
    }, "Return xi = [rho, theta], (6,), with ``Pose.exp(xi)`` this pose; the angle is at most pi.")
        .def_prop_ro("translation", [](const Pose& p) { return make_array(p.translation); },
                     "(3,) translation [m], read-only.")
        .def_prop_ro("quat_xyzw", [](const Pose& p) { return make_array(p.quat_xyzw); },
                     "(4,) unit quaternion, real part last; read-only.")
        .def_prop_ro("quat_wxyz",
                     [](const Pose& p) {
        const auto& q = p.quat_xyzw;
        return make_array(Vector4{q[3], q[0], q[1], q[2]});
    }, "(4,) unit quaternion, real part first; read-only.")
        .def_prop_ro("rotation", [](const Pose& p) { return make_square(p.rotation(), 3); },
                     "(3, 3) rotation matrix, read-only.")
        .def("as_matrix", [](const Pose& p) { return make_square(p.matrix(), 4); },
             "Return the (4, 4) homogeneous matrix, read-only.")
        .def("as_array", [](const Pose& p) { return make_array(numbers_of(p)); },
             "Return seven numbers, read-only: translation x, y, z and quaternion x, y, z, w.");
    cls.def("__matmul__", [](const Pose& a, const Pose& b) { return in_range(a * b); },
            nb::is_operator(), "Compose: ``a_from_b @ b_from_c`` is ``a_from_c``.")
        .def("inverse", [](const Pose& p) { return in_range(p.inverse()); },
             "Return ``child_from_parent`` of ``parent_from_child``.")
        .def("apply",
             [](const Pose& p, const ArrayArgument& points) {
        return transform_points(p, points, true);
    }, "points"_a, R"(Map points (3,) or (n, 3) in the child [m] to the parent. O(n).)" NO_ROWS)
        .def("rotate",
             [](const Pose& p, const ArrayArgument& vectors) {
        return transform_points(p, vectors, false);
    }, "vectors"_a,
             "Rotate free vectors (3,) or (n, 3) from the axes of the child to those of the "
             "parent. O(n)." NO_ROWS)
        .def("interpolate",
             [](const Pose& a, const Pose& b, double fraction) {
        return in_range(a.interpolate(b, fraction));
    }, "other"_a, "fraction"_a,
             "Return a pose between this one and another: linear in translation, along the shorter "
             "arc in rotation."
             R"(

Args:
    other: the pose at fraction 1, relative to the same parent.
    fraction: 0 gives this pose, 1 the other; values outside [0, 1] extrapolate.

Raises:
    SceneError: if the fraction is not finite.)");
}

// Poses in rows, not copied if they are a float64 array already.
class PoseRows {
public:
    PoseRows(const ArrayArgument& source, const char* what) {
        reject_masked(source, what, ErrorKind::scene);
        if (nb::try_cast(nb::handle(source), array_, false))
            numbers_ = {array_.data(), array_.size()};
        else numbers_ = copied_ = read_matrix(source, what, 7, ErrorKind::scene, pose_units);
    }
    std::size_t size() const { return numbers_.size(); }
    const double* operator[](std::size_t row) const {
        return numbers_.data() + (size() == 7 ? 0 : 7 * row);
    }

private:
    nb::ndarray<const double, nb::shape<-1, 7>, nb::c_contig, nb::device::cpu> array_;
    std::vector<double> copied_;
    std::span<const double> numbers_;
};

// Unit quaternions and small translations need no further check: non-finite numbers are neither.
bool is_usual(const double* v) {
    const double squared = v[3] * v[3] + v[4] * v[4] + v[5] * v[5] + v[6] * v[6];
    return std::abs(squared - 1.0) <= 4e-15 &&
           std::abs(v[0]) + std::abs(v[1]) + std::abs(v[2]) < 1e100;
}

ReadOnlyArray compose_each(const ArrayArgument& left, const ArrayArgument& right) {
    const PoseRows a(left, "left"), b(right, "right");
    if (a.size() != b.size() && a.size() != 7 && b.size() != 7)
        throw Error(ErrorKind::scene,
                    "left and right must have as many rows, or one of them one row, not {} and {}",
                    a.size() / 7, b.size() / 7);
    const std::size_t count = a.size() == 0 || b.size() == 0 ? 0 : std::max(a.size(), b.size()) / 7;
    std::vector<double> rows(7 * count);
    const auto unchecked = [](const double* v) {
        return Pose{{v[0], v[1], v[2]}, {v[3], v[4], v[5], v[6]}};
    };
    for (std::size_t i = 0; i < count; ++i) {
        const double *x = a[i], *y = b[i];
        write_pose(&rows[7 * i], is_usual(x) && is_usual(y) ? compose(unchecked(x), unchecked(y))
                                                            : compose(pose_of(x), pose_of(y)));
    }
    return make_rows(std::move(rows), 7);
}

void bind_errors_of_poses(nb::module_& m) {
    m.def("adjoint", [](const Pose& pose) { return make_square(adjoint(pose), 6); }, "pose"_a,
          R"(Return the adjoint (6, 6) of a pose, read-only.

``pose @ exp(xi) == exp(adjoint(pose) @ xi) @ pose``: it maps errors and twists ``[rho, theta]`` of
the child's tangent space to the parent's.)");
    m.def("_moved_six",
          [](const ArrayArgument& six, const ArrayArgument& step, bool second) {
        Vector6 moved = read_array<6>(six, "six");
        const std::size_t to = second ? 3 : 0, from = 3 - to;
        const Vector3 added =
            cross({moved[from], moved[from + 1], moved[from + 2]}, read_vector3(step, "step"));
        for (std::size_t k = 0; k < 3; ++k) moved[to + k] += added[k];
        return make_array(moved);
    }, "six"_a, "step"_a, "second"_a,
          "Two vectors; to one is added the cross product of the other and a step.");
    m.def("_turned_six", [](const ArrayArgument& six, const Pose& turn) {
        const Vector6 v = read_array<6>(six, "six");
        const Vector3 a = turn.rotate({v[0], v[1], v[2]}), b = turn.rotate({v[3], v[4], v[5]});
        return make_array(Vector6{a[0], a[1], a[2], b[0], b[1], b[2]});
    }, "six"_a, "turn"_a, "Two vectors, both rotated.");
    const auto jacobian = [&m](const char* name, auto of, const char* text) {
        m.def(name, [of](const ArrayArgument& xi) {
            return make_square(of(read_array<6>(xi, "xi", xi_units)), 6);
        }, "xi"_a, text);
    };
    jacobian("left_jacobian", &left_jacobian,
             R"(Return the left Jacobian of the exponential at xi = [rho, theta], (6, 6), read-only.

To first order in d, ``exp(xi + d) = exp(left_jacobian(xi) @ d) @ exp(xi)``.)" NO_SIX);
    jacobian(
        "right_jacobian", &right_jacobian,
        R"(Return the right Jacobian of the exponential at xi = [rho, theta], (6, 6), read-only.

To first order in d, ``exp(xi + d) = exp(xi) @ exp(right_jacobian(xi) @ d)``.)" NO_SIX);
    jacobian("inverse_left_jacobian", &inverse_left_jacobian,
             R"(Return the inverse (6, 6) of the left Jacobian at xi = [rho, theta], read-only.

To first order in d, ``log(exp(d) @ exp(xi)) = xi + inverse_left_jacobian(xi) @ d``, at angles < 2
pi.)" NO_SIX);
    jacobian("inverse_right_jacobian", &inverse_right_jacobian,
             R"(Return the inverse (6, 6) of the right Jacobian at xi = [rho, theta], read-only.

To first order in d, ``log(exp(xi) @ exp(d)) = xi + inverse_right_jacobian(xi) @ d``, at angles < 2
pi.)" NO_SIX);
    m.def("exp_each",
          [](const ArrayArgument& argument) {
        return make_each(argument, "xi", 6, [](const double* xi) {
            return numbers_of(Pose::exp({xi[0], xi[1], xi[2], xi[3], xi[4], xi[5]}));
        }, xi_units);
    }, "xi"_a,
          "Return the exponentials of many xi, (n, 6), as poses (n, 7): x, y, z and quaternion x, "
          "y, z, w." NO_ROWS);
    m.def("log_each",
          [](const ArrayArgument& argument) {
        return make_each(argument, "poses", 7, [](const double* row) { return pose_of(row).log(); },
                         pose_units);
    }, "poses"_a,
          "Return the logarithms (n, 6) of many poses (n, 7): x, y, z and quaternion x, y, z, "
          "w." NO_POSE_ROWS);
    m.def("compose_each", &compose_each, "left"_a, "right"_a,
          R"(Return the products of many poses, row by row. O(n).

Args:
    left: (n, 7) or (1, 7) poses a_from_b: x, y, z and quaternion x, y, z, w. A single row applies
        to all.
    right: (n, 7) or (1, 7) poses b_from_c.

Returns:
    (n, 7) poses a_from_c, read-only.)" NO_POSE_ROWS);
}

}  // namespace

void bind_pose(nb::module_& m) {
    nb::class_<Pose> pose(
        m, "Pose", nb::is_weak_referenceable(),
        R"(A rigid transform: a translation [m] and a unit quaternion stored x, y, z, w.

Named ``parent_from_child``, it maps coordinates of a point in the child to coordinates in the
parent, and ``a_from_b @ b_from_c`` is ``a_from_c``. Immutable. ``==`` is exact (the quaternions q
and -q differ); see ``is_close``.

Args:
    translation: (3,) translation [m].
    quat_xyzw: (4,) quaternion of any norm above 1e-9; it is normalised.

Raises:
    SceneError: if a number is not finite, or the quaternion is zero.)");
    bind_pose_construction(pose);
    bind_pose_operations(pose);
    pose.def("distance",
             [](const Pose& a, const Pose& b) {
        const auto d = a.distance(b);
        require_in_range(d, "the distance");
        return std::make_pair(d[0], d[1]);
    }, "other"_a,
             R"(Return the distance of the origins [m] and the angle between the orientations [rad].

Raises:
    NumberOverflowError: if the distance overflows.)")
        .def("is_close",
             [](const Pose& a, const Pose& b, const NumberArgument& translation_tolerance,
                const NumberArgument& rotation_tolerance) {
        const auto d = a.distance(b);
        return d[0] <= read_number(translation_tolerance, "translation_tolerance", "m") &&
               d[1] <= read_number(rotation_tolerance, "rotation_tolerance", "rad");
    },
             "other"_a, nb::kw_only(), "translation_tolerance"_a = 1e-9,
             "rotation_tolerance"_a = 1e-9,
             R"(Return whether two poses agree within tolerances; q and -q are the same rotation.

Args:
    other: the pose to compare with, relative to the same parent.
    translation_tolerance: largest distance of the origins [m].
    rotation_tolerance: largest angle between the orientations [rad].)");
    bind_value(pose, [](const Pose& p) { return nb::tuple(nb::cast(numbers_of(p))); }, &pose_text);

    bind_state(pose, [](const Pose& p) {
        return nb::make_tuple(
            nb::make_tuple(p.translation[0], p.translation[1], p.translation[2]),
            nb::make_tuple(p.quat_xyzw[0], p.quat_xyzw[1], p.quat_xyzw[2], p.quat_xyzw[3]));
    }, "a pose", &make_pose);
    bind_errors_of_poses(m);
    // An array times a pose is a TypeError, not a broadcast by numpy.
    pose.attr("__array_ufunc__") = nb::none();
}

}  // namespace tmkit::bindings
