#include "tmkit/elementary.hpp"

#include "bindings.hpp"
#include "tmkit/covariance.hpp"
#include "tmkit/random.hpp"

namespace tmkit::bindings {

void bind_elementary(nb::module_& m) {
    m.def("sin", &sine, nb::arg("angle"), "Return the sine of an angle in radians, the same bits on every CPU.");
    m.def("cos", &cosine, nb::arg("angle"), "Return the cosine of an angle in radians, the same bits on every CPU.");
    m.def("atan2", &arctangent, nb::arg("y"), nb::arg("x"),
          R"(Return the angle of a point from the x axis, the same bits on every CPU.

Args:
    y: coordinate of the point.
    x: coordinate of the point, in the same unit.

Returns:
    Radians, -pi to pi.)");
    m.def("exp", &exponential, nb::arg("x"), "Return e to the power x, the same bits on every CPU.");
    m.def("erfc", &complementary_error, nb::arg("x"), "Return 1 - erf(x), the same bits on every CPU.");
    m.def("symmetric_eigen", [](const ArrayArgument& matrix) {
        std::size_t n = 0;
        std::vector<double> rows = read_grid(matrix, "matrix", n, ErrorKind::configuration), values, vectors;
        if (rows.size() != n * n)
            throw Error(ErrorKind::configuration, "matrix must be square, not (" +
                                                      std::to_string(n ? rows.size() / n : 0) + ", " +
                                                      std::to_string(n) + ")");
        symmetric_eigen(std::move(rows), n, values, vectors);
        return std::pair(make_array(std::move(values)), make_array(std::move(vectors), {n, n}));
    }, nb::arg("matrix"), R"(Return the eigenvalues and eigenvectors of a symmetric matrix (n, n). O(n^3).

Returns:
    Eigenvalues (n,), ascending, and eigenvectors as rows (n, n).

Raises:
    ConfigurationError: a matrix that is not square, or non-finite numbers.)");
    m.def("standard_normals",
          [](std::uint64_t seed, std::size_t count) {
        NormalRandom random(seed);
        std::vector<double> numbers(count);
        for (double& number : numbers) number = random();
        return make_array(std::move(numbers));
    }, nb::arg("seed"), nb::arg("count"),
          R"(Return independent standard normal numbers, the same bits on every CPU. O(count).

Args:
    seed: of the random numbers; the same seed gives the same numbers.
    count: how many numbers.

Returns:
    (count,), read-only.)");
}

}  // namespace tmkit::bindings
