#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "tmkit/random.hpp"

using tmkit::Random;

TEST_CASE("the same seed and stream give the same numbers, another seed or stream others") {
    Random a(7, 1), b(7, 1), c(8, 1), d(7, 2);
    for (int i = 0; i < 100; ++i) {
        const std::uint64_t bits = a.bits();
        CHECK(bits == b.bits());
        CHECK(bits != c.bits());
        CHECK(bits != d.bits());
    }
}

TEST_CASE("the numbers of a seed never change between versions") {
    Random random(0);
    CHECK(random.bits() == 18110106563157542208ULL);
    CHECK(random.bits() == 8650457082529208451ULL);
}

TEST_CASE("uniform numbers lie in [0, 1) with mean 1/2 and variance 1/12") {
    Random random(3);
    double sum = 0.0, squares = 0.0;
    const int count = 100000;
    for (int i = 0; i < count; ++i) {
        const double u = random.uniform();
        REQUIRE(u >= 0.0);
        REQUIRE(u < 1.0);
        sum += u;
        squares += u * u;
    }
    CHECK(std::abs(sum / count - 0.5) < 0.005);
    CHECK(std::abs(squares / count - 1.0 / 3.0) < 0.005);
}

TEST_CASE("below(n) reaches every number under n and no other") {
    Random random(11);
    std::set<std::uint64_t> seen;
    for (int i = 0; i < 1000; ++i) seen.insert(random.below(7));
    CHECK(seen.size() == 7);
    CHECK(*seen.rbegin() == 6);
}
