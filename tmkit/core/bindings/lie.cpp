#include "tmkit/lie.hpp"

#include "bindings.hpp"

#define NO_SIX "\n\nRaises:\n    SceneError: not six numbers, or non-finite numbers."
#define NO_POSE_ROWS "\n\nRaises:\n    SceneError: an array of another shape, non-finite numbers, or a zero quaternion."

namespace tmkit::bindings {
namespace {

ReadOnlyArray exp_each(const ArrayArgument& argument) {
    return make_each(argument, "xi", 6, [](const double* xi) {
        return numbers_of(Pose::exp({xi[0], xi[1], xi[2], xi[3], xi[4], xi[5]}));
    });
}

ReadOnlyArray log_each(const ArrayArgument& argument) {
    return make_each(argument, "poses", 7, [](const double* row) { return pose_of(row).log(); });
}

// Poses in rows, not copied where they are an array of float64 already.
class PoseRows {
public:
    PoseRows(const ArrayArgument& given, const char* what) {
        if (nb::try_cast(nb::handle(given), array_, false)) numbers_ = {array_.data(), array_.size()};
        else numbers_ = copied_ = read_matrix(given, what, 7, ErrorKind::scene);
    }
    std::size_t size() const { return numbers_.size(); }
    // Unit quaternions and small translations need no further look: what is not finite is neither.
    Pose operator[](std::size_t row) const {
        const double* v = numbers_.data() + (size() == 7 ? 0 : 7 * row);
        const double squared = v[3] * v[3] + v[4] * v[4] + v[5] * v[5] + v[6] * v[6];
        if (std::abs(squared - 1.0) <= 4e-15 && std::abs(v[0]) + std::abs(v[1]) + std::abs(v[2]) < 1e100)
            return {{v[0], v[1], v[2]}, {v[3], v[4], v[5], v[6]}};
        return pose_of(v);
    }

private:
    nb::ndarray<const double, nb::shape<-1, 7>, nb::c_contig, nb::device::cpu> array_;
    std::vector<double> copied_;
    std::span<const double> numbers_;
};

ReadOnlyArray compose_each(const ArrayArgument& left, const ArrayArgument& right) {
    const PoseRows a(left, "left"), b(right, "right");
    if (a.size() != b.size() && a.size() != 7 && b.size() != 7)
        throw Error(ErrorKind::scene, "left and right must have as many rows, or one of them one row, not {} and {}",
                    a.size() / 7, b.size() / 7);
    const std::size_t count = a.size() == 0 || b.size() == 0 ? 0 : std::max(a.size(), b.size()) / 7;
    std::vector<double> rows(7 * count);
    for (std::size_t i = 0; i < count; ++i) write_pose(&rows[7 * i], composed(a[i], b[i]));
    return make_rows(std::move(rows), 7);
}

}  // namespace

void bind_lie(nb::module_& m) {
    m.def("adjoint", [](const Pose& pose) { return make_square(adjoint(pose), 6); }, "pose"_a,
          R"(Return the adjoint (6, 6) of a pose, read-only.

``pose @ exp(xi) == exp(adjoint(pose) @ xi) @ pose``: it maps errors and twists ``[rho, theta]`` of the child's
tangent space to the parent's.)");
    const auto jacobian = [&m](const char* name, auto of, const char* text) {
        m.def(name, [of](const ArrayArgument& xi) { return make_square(of(read_array<6>(xi, "xi")), 6); }, "xi"_a,
              text);
    };
    jacobian("left_jacobian", &left_jacobian,
             R"(Return the left Jacobian of the exponential at xi = [rho, theta], (6, 6), read-only.

To first order in d, ``exp(xi + d) = exp(left_jacobian(xi) @ d) @ exp(xi)``.)" NO_SIX);
    jacobian("right_jacobian", &right_jacobian,
             R"(Return the right Jacobian of the exponential at xi = [rho, theta], (6, 6), read-only.

To first order in d, ``exp(xi + d) = exp(xi) @ exp(right_jacobian(xi) @ d)``.)" NO_SIX);
    jacobian("inverse_left_jacobian", &inverse_left_jacobian,
             R"(Return the inverse (6, 6) of the left Jacobian at xi = [rho, theta], read-only.

To first order in d, ``log(exp(d) @ exp(xi)) = xi + inverse_left_jacobian(xi) @ d``, at angles < 2 pi.)" NO_SIX);
    jacobian("inverse_right_jacobian", &inverse_right_jacobian,
             R"(Return the inverse (6, 6) of the right Jacobian at xi = [rho, theta], read-only.

To first order in d, ``log(exp(xi) @ exp(d)) = xi + inverse_right_jacobian(xi) @ d``, at angles < 2 pi.)" NO_SIX);
    m.def("exp_each", &exp_each, "xi"_a,
          R"(Return the exponentials of many xi, (n, 6), as poses (n, 7): x, y, z and quaternion x, y, z, w.)" NO_ROWS);
    m.def("log_each", &log_each, "poses"_a,
          R"(Return the logarithms (n, 6) of many poses (n, 7): x, y, z and quaternion x, y, z, w.)" NO_POSE_ROWS);
    m.def("compose_each", &compose_each, "left"_a, "right"_a,
          R"(Return the products of many poses, row by row. O(n).

Args:
    left: (n, 7) or (1, 7) poses a_from_b: x, y, z and quaternion x, y, z, w. One row is used for all.
    right: (n, 7) or (1, 7) poses b_from_c.

Returns:
    (n, 7) poses a_from_c, read-only.)" NO_POSE_ROWS);
}

}  // namespace tmkit::bindings
