#include "tmkit/elementary.hpp"

#include "bindings.hpp"
#include "tmkit/covariance.hpp"
#include "tmkit/random.hpp"

namespace tmkit::bindings {

void bind_elementary(nb::module_& m) {
    m.def("sin", &sine, "angle"_a,
          "Return the sine of an angle [rad], with the same bits on every CPU.");
    m.def("cos", &cosine, "angle"_a,
          "Return the cosine of an angle [rad], with the same bits on every CPU.");
    m.def("atan2", &arctangent, "y"_a, "x"_a,
          R"(Return the angle of a point from the x axis, with the same bits on every CPU.

Args:
    y: coordinate of the point.
    x: coordinate of the point, in the same unit.

Returns:
    Angle from -pi to pi [rad].)");
    m.def("exp", &exponential, "x"_a, "Return e to the power x, with the same bits on every CPU.");
    m.def("erfc", &complementary_error, "x"_a,
          "Return 1 - erf(x), with the same bits on every CPU.");
    m.def("symmetric_eigen", [](const ArrayArgument& matrix) {
        std::size_t n = 0;
        std::vector<double> rows = read_grid(matrix, "matrix", n, ErrorKind::configuration), values,
                            vectors;
        if (rows.size() != n * n)
            throw Error(ErrorKind::configuration, "matrix must be square, not ({}, {})",
                        n ? rows.size() / n : 0, n);
        symmetric_eigen(std::move(rows), n, values, vectors);
        return std::pair(make_array(std::move(values)), make_array(std::move(vectors), {n, n}));
    }, "matrix"_a, R"(Return the eigenvalues and eigenvectors of a symmetric matrix (n, n). O(n^3).

Returns:
    Eigenvalues (n,), ascending, and eigenvectors as rows (n, n).

Raises:
    ConfigurationError: if the matrix is not square, or a number is not finite.)");
    m.def("standard_normals",
          [](std::uint64_t seed, std::size_t count) {
        NormalRandom random(seed);
        std::vector<double> numbers(count);
        for (double& number : numbers) number = random();
        return make_array(std::move(numbers));
    }, "seed"_a, "count"_a,
          R"(Return independent standard normal numbers, with the same bits on every CPU. O(count).

Args:
    seed: of the random numbers; the same seed gives the same numbers.
    count: number of numbers.

Returns:
    (count,), read-only.)");
}

}  // namespace tmkit::bindings
