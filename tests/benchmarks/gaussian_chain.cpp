// A chain of uncertain poses composed inside the core, again and again: what the arithmetic takes
// without any call from Python. Compiled by uncertainty_table.py with the core's own sources and
// options.
#include <algorithm>
#include <vector>

#include "tmkit/covariance.hpp"

namespace {

tmkit::GaussianPose link_of(const double* row) {
    tmkit::GaussianPose link;
    link.mean = {{row[0], row[1], row[2]}, {row[3], row[4], row[5], row[6]}};
    const double* m = row + 7;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
            link.covariance.linear[3 * i + j] = m[6 * i + j];
            link.covariance.cross[3 * i + j] = m[6 * i + 3 + j];
            link.covariance.angular[3 * i + j] = m[6 * (3 + i) + 3 + j];
        }
    return link;
}

}  // namespace

// `links` has `count` rows of 7 + 36 numbers; `result` takes 36. The chain is composed `repeat`
// times.
extern "C" void compose_chain(int repeat, int count, const double* links, double* result) {
    std::vector<tmkit::GaussianPose> chain;
    for (int i = 0; i < count; ++i) chain.push_back(link_of(links + 43 * i));
    tmkit::GaussianPose product;
    for (int turn = 0; turn < repeat; ++turn) {
        product = chain[0];
        for (int i = 1; i < count; ++i) product = product * chain[static_cast<std::size_t>(i)];
        asm volatile("" : : "r"(&product) : "memory");  // so that no turn is left out
    }
    const tmkit::Matrix6 covariance = product.covariance.matrix();
    std::copy(covariance.begin(), covariance.end(), result);
}
