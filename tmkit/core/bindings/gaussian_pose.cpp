#include "tmkit/covariance.hpp"

#include <cmath>
#include <variant>

#include "state.hpp"
#include "tmkit/retraction.hpp"

namespace tmkit::bindings {

Covariance read_covariance(const ArrayArgument& matrix, std::string_view what) {
    const std::string name(what);
    const std::vector<double> v = read_shaped(matrix, name.c_str(), 6, 6);
    Matrix6 m;
    std::copy(v.begin(), v.end(), m.begin());
    return Covariance::checked(m, what);
}

GaussianPose in_range(const GaussianPose& pose) {
    require_in_range(pose.mean, "the mean of the resulting pose");
    require_in_range(pose.covariance.matrix(), "the covariance of the resulting pose");
    return pose;
}

Pose PoseArgument::mean() const {
    if (nb::isinstance<GaussianPose>(value)) return nb::cast<const GaussianPose&>(value).mean;
    return nb::cast<const Pose&>(value);
}

ReadOnlyArray covariance_array(const Covariance& covariance) {
    return make_square(covariance.matrix(), 6);
}

namespace {

std::string text_of(const GaussianPose& g) {
    const Covariance& c = g.covariance;
    const auto deviation = [](const Matrix3& m) { return std::sqrt(m[0] + m[4] + m[8]); };
    char text[64];
    std::snprintf(text, sizeof text, ", sigma %.3g m, %.3g rad)", deviation(c.linear),
                  deviation(c.angular));
    return "GaussianPose(" + pose_text(g.mean) + text;
}

GaussianPose make_gaussian(const Pose& mean, const OptionalArray& covariance) {
    return {mean, covariance ? read_covariance(*covariance, "covariance") : Covariance{}};
}

void bind_gaussian_members(nb::class_<GaussianPose>& cls) {
    cls.def("__init__", made_by(&make_gaussian), "mean"_a = Pose{}, "covariance"_a = nb::none())
        .def_prop_ro("mean", [](const GaussianPose& g) { return g.mean; }, "parent_from_child.")
        .def_prop_ro("covariance", [](const GaussianPose& g) {
        return covariance_array(g.covariance);
    }, "(6, 6) covariance of xi = [rho, theta] in the child's axes, read-only.");
    cls.def("inverse", [](const GaussianPose& g) { return in_range(g.inverse()); },
            "Return ``child_from_parent``; exact.")
        .def("__matmul__",
             [](const GaussianPose& a, const GaussianPose& b) { return in_range(a * b); },
             nb::is_operator(),
             "Compose independent poses, to first order: ``a_from_b @ b_from_c`` is ``a_from_c``.")
        .def("__matmul__",
             [](const GaussianPose& a, const Pose& b) { return in_range(a * GaussianPose{b, {}}); },
             nb::is_operator(), "Compose with an exact pose.")
        .def("__rmatmul__",
             [](const GaussianPose& b, const Pose& a) {
        return in_range(GaussianPose{a * b.mean, b.covariance});
    }, nb::is_operator(), "Compose an exact pose with this one.")
        .def_static("from_left",
                    [](const Pose& mean, const ArrayArgument& covariance) {
        return in_range(
            GaussianPose{mean, read_covariance(covariance, "covariance").carry_down(mean)});
    }, "mean"_a, "covariance"_a,
                    "Create an uncertain pose from the covariance of its left error: ``T = "
                    "Pose.exp(xi) @ mean``."
                    R"(

Args:
    mean: parent_from_child.
    covariance: (6, 6) covariance of xi = [rho, theta] [m, rad], in the parent's axes about its
        origin; symmetric positive semi-definite.

Raises:
    SceneError: if the constructor raises it.)")
        .def_prop_ro(
            "left_covariance",
            [](const GaussianPose& g) { return covariance_array(g.covariance.carry_up(g.mean)); },
            R"((6, 6) covariance of the left error, read-only: ``T = Pose.exp(xi) @ mean``.

xi is in the parent's axes, about its origin.)")
        .def("compose",
             [](const GaussianPose& a, const GaussianPose& b, int order) {
        if (order != 1 && order != 4)
            throw Error(ErrorKind::scene, "order is 1 or 4, not {}", order);
        return in_range(order == 1 ? a * b : compose_to_fourth_order(a, b));
    }, "other"_a, nb::kw_only(), "order"_a = 1,
             R"(Compose independent poses: ``a_from_b.compose(b_from_c)`` is ``a_from_c``.

Args:
    other: b_from_c.
    order: 1, as for ``@``, or 4: with the terms of fourth order in the errors. The mean is the
        same.

Raises:
    SceneError: if the order is neither 1 nor 4.)");
    const auto key = [](const GaussianPose& g) {
        return nb::make_tuple(g.mean, g.covariance.linear[0], g.covariance.angular[0]);
    };
    bind_value(cls, key, &text_of);
}

nb::typed<nb::tuple, ReadOnlyArray, ReadOnlyArray> residual_of(const Retraction& retraction,
                                                               const Pose& pose) {
    const auto [error, derivative] = retraction.residual(pose);
    require_in_range(error, "the error of a pose");
    return nb::typed<nb::tuple, ReadOnlyArray, ReadOnlyArray>(
        nb::make_tuple(make_array(error).array, make_square(derivative, 6).array));
}

Pose pose_at(const Retraction& retraction, const ArrayArgument& xi) {
    const Pose moved = retraction.pose(read_array<6>(xi, "xi", xi_units));
    require_in_range(moved, "the moved pose");
    return moved;
}

void bind_retraction(nb::module_& m) {
    nb::class_<Retraction>(m, "Retraction",
                           R"(Retraction of a covariance: the motion of a pose by an error.

It is ``Pose.exp(xi)`` if the orientation is known to 13 degrees. A rotation about less certain axes
is applied last, in the axes of the child, and does not bend the shift: measurements then add no
false information on unknown axes.

Args:
    covariance: (6, 6) covariance of xi = [rho, theta], symmetric positive semi-definite.

Raises:
    SceneError: if :class:`GaussianPose` raises it.)")
        .def("__init__",
             [](Retraction* self, const ArrayArgument& covariance) {
        new (self) Retraction(read_covariance(covariance, "covariance"));
    }, "covariance"_a)
        .def_prop_ro("is_exponential", &Retraction::is_exponential,
                     "Whether it is ``Pose.exp(xi)``.")
        .def("pose", &pose_at, "xi"_a,
             R"(Return the identity moved by the error xi = [rho, theta].

A pose T is moved to ``T @ retraction.pose(xi)``.

Raises:
    SceneError: if the argument is not six finite numbers.)")
        .def("jacobian",
             [](const Retraction& r, const ArrayArgument& xi) {
        return make_square(r.jacobian(read_array<6>(xi, "xi", xi_units)), 6);
    }, "xi"_a,
             R"(Return the right Jacobian (6, 6) at xi = [rho, theta], read-only.

To first order in d, ``pose(xi + d) = pose(xi) @ Pose.exp(jacobian(xi) @ d)``.

Raises:
    SceneError: if the argument is not six finite numbers.)")
        .def("residual", &residual_of, "pose"_a,
             "Return the error (6,) that moves the identity to a pose; its derivative (6, 6) by "
             "the pose's right error."
             R"(

If no axis of the orientation is known to 13 degrees, theta is as likely negative: the derivative is
the mean of those at both signs.

Args:
    pose: measured_from_predicted.)");
}

}  // namespace

void bind_gaussian_pose(nb::module_& m) {
    nb::class_<GaussianPose> cls(m, "GaussianPose", nb::is_weak_referenceable(),
                                 R"(A pose with a Gaussian error: ``T = mean @ Pose.exp(xi)``.

``xi = [rho, theta]`` [m, rad] has mean zero, linear part first, in the axes of the child at the
mean (the right, local tangent). Named ``parent_from_child`` like a pose. Composition and inverse
treat the errors of different poses as independent. Immutable; ``==`` is exact.

Args:
    mean: parent_from_child; the identity if omitted.
    covariance: (6, 6) covariance of xi, symmetric positive semi-definite, possibly rank-deficient
        or zero. Exact (zero) if omitted.

Raises:
    SceneError: if the covariance is not symmetric within 1e-9 of its greatest entry, or has an
        eigenvalue below -1e-9 of the greatest; the message has the eigenvalues.)");
    bind_gaussian_members(cls);
    bind_retraction(m);

    bind_state(cls, [](const GaussianPose& g) {
        return nb::make_tuple(g.mean, covariance_array(g.covariance).array);
    }, "an uncertain pose", &make_gaussian);
    m.def("compose",
          [](const nb::typed<nb::iterable, std::variant<GaussianPose, Pose>>& poses, int order) {
        if (order != 1 && order != 4)
            throw Error(ErrorKind::scene, "order is 1 or 4, not {}", order);
        GaussianPose product;
        std::size_t place = 0;
        for (nb::handle item : poses) {
            const bool is_exact = !nb::isinstance<GaussianPose>(item);
            if (is_exact && !nb::isinstance<Pose>(item))
                throw Error(ErrorKind::scene,
                            "a chain is made of uncertain and exact poses; number {} is a {}",
                            place, nb::cast<std::string>(item.type().attr("__name__")));
            const GaussianPose pose = is_exact ? GaussianPose{*nb::inst_ptr<Pose>(item), {}}
                                               : *nb::inst_ptr<GaussianPose>(item);
            product = place++ == 0 ? pose
                      : order == 1 ? product * pose
                                   : compose_to_fourth_order(product, pose);
        }
        return in_range(product);
    }, "poses"_a, nb::kw_only(), "order"_a = 1,
          R"(Return the product of independent uncertain poses, from left to right.

Args:
    poses: a_from_b, b_from_c, ...; an empty sequence gives the exact identity. A :class:`Pose`
        among them is exact.
    order: 1 or 4: the highest order of errors in the covariance.

Raises:
    SceneError: if the order is neither 1 nor 4, or an item is not a pose.)");
    // An array times a pose is a TypeError, not a broadcast by numpy.
    cls.attr("__array_ufunc__") = nb::none();
}

}  // namespace tmkit::bindings
