#include "tmkit/elementary.hpp"

#include "bindings.hpp"
#include "tmkit/covariance.hpp"
#include "tmkit/random.hpp"

namespace tmkit::bindings {

void bind_elementary(nb::module_& m) {
    m.def("sin", &sine, nb::arg("angle"), "Return the sine of an angle in radians, the same bits on every CPU.");
    m.def("cos", &cosine, nb::arg("angle"), "Return the cosine of an angle in radians, the same bits on every CPU.");
    m.def("atan2", &arctangent, nb::arg("y"), nb::arg("x"),
          "Return the angle of the point (x, y) from the x axis, -pi to pi, the same bits on every CPU.");
    m.def("exp", &exponential, nb::arg("x"), "Return e to the power x, the same bits on every CPU.");
    m.def("erfc", &complementary_error, nb::arg("x"), "Return 1 - erf(x), the same bits on every CPU.");
    m.def("symmetric_eigen",
          [](const ArrayArgument& matrix) {
        std::size_t n = 0;
        std::vector<double> rows = read_grid(matrix, "matrix", n, ErrorKind::configuration), values, vectors;
        if (rows.size() != n * n)
            throw Error(ErrorKind::configuration, "matrix must be square, not (" +
                                                      std::to_string(n ? rows.size() / n : 0) + ", " +
                                                      std::to_string(n) + ")");
        symmetric_eigen(std::move(rows), n, values, vectors);
        return std::pair(make_array(std::move(values), {n}), make_array(std::move(vectors), {n, n}));
    }, nb::arg("matrix"),
          R"(Return eigenvalues (n,), ascending, and eigenvectors as rows (n, n) of a symmetric matrix (n, n); O(n^3).

Raises:
    ConfigurationError: a matrix that is not square, or numbers that are not finite.)");
    m.def("standard_normals",
          [](std::uint64_t seed, std::size_t count) {
        NormalRandom random(seed);
        std::vector<double> numbers(count);
        for (double& number : numbers) number = random();
        return make_array(std::move(numbers), {count});
    }, nb::arg("seed"), nb::arg("count"),
          "Return so many independent standard normal numbers of a seed, the same bits on every CPU.");
}

}  // namespace tmkit::bindings
