#include "tmkit/elementary.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numbers>

namespace tmkit {
namespace {

using Word = std::uint64_t;
using Wide = unsigned __int128;

constexpr double nan = std::numeric_limits<double>::quiet_NaN(),
                 infinity = std::numeric_limits<double>::infinity();

// 2/pi after 64 zeros, word by word.
constexpr std::array<Word, 20> two_over_pi{
    0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041,
    0xfe5163abdebbc561, 0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e,
    0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b,
    0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab};
// Times 2^-63 and 2^-127.
constexpr Word half_pi_high = 0xc90fdaa22168c234, half_pi_low = 0xc4c6628b80dc1cd1;

Word high_product(Word a, Word b) { return static_cast<Word>(static_cast<Wide>(a) * b >> 64); }

// The rounding error of a product (Dekker): a b = product + error, unless it underflows.
double rounding_error(double a, double b, double product) {
    const auto upper = [](double x) {
        return std::bit_cast<double>(std::bit_cast<Word>(x) & ~Word{0x7FFFFFF});
    };
    const double a1 = upper(a), a2 = a - a1, b1 = upper(b), b2 = b - b1;
    return ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2;
}

// Arctangents of multiples of 1/8, with their rounding errors.
constexpr std::array<std::array<double, 2>, 9> arctangents{{
    {0.0, 0.0},
    {0x1.fd5ba9aac2f6ep-4, -0x1.cd37686760c17p-59},
    {0x1.f5b75f92c80ddp-3, 0x1.8ab6e3cf7afbdp-57},
    {0x1.6f61941e4def1p-2, -0x1.c63aae6f6e918p-56},
    {0x1.dac670561bb4fp-2, 0x1.a2b7f222f65e2p-56},
    {0x1.1e00babdefeb4p-1, -0x1.928df287a668fp-58},
    {0x1.4978fa3269ee1p-1, 0x1.2419a87f2a458p-56},
    {0x1.700a7c5784634p-1, -0x1.8c34d25aadef6p-56},
    {0x1.921fb54442d18p-1, 0x1.1a62633145c07p-55},
}};

struct Sum {
    double high, low;
};

Sum fast_sum(double large, double small) {
    const double high = large + small;
    return {high, (large - high) + small};
}

// The arctangent of small / large, 0 <= small <= large, both far from the ends of the exponents.
// About k/8, the nearest multiple: atan(s / l) = atan(k/8) + atan((s - k/8 l) / (l + k/8 s)), with
// the rounding error of the quotient.
Sum arctangent_of(double small, double large) {
    const double k = (small / large * 8.0 + 0x1.8p52) - 0x1.8p52, c = 0.125 * k;
    const auto upper = [](double x) {
        return std::bit_cast<double>(std::bit_cast<Word>(x) & ~Word{0xFF});
    };
    const double l1 = upper(large), l2 = large - l1, s1 = upper(small), s2 = small - s1;
    const Sum n = fast_sum(small - c * l1, -c * l2), d = fast_sum(large, c * s1);
    const double q = n.high / d.high, product = q * d.high;
    const double remainder = (((n.high - product) - rounding_error(q, d.high, product)) +
                              (n.low - q * (d.low + c * s2))) /
                             d.high;
    const double z = q * q;
    const double series =
        -0x1.5555555555535p-2 +
        z * (0x1.99999999615eap-3 +
             z * (-0x1.2492482489a99p-3 + z * (0x1.c718744e5c9b1p-4 + z * -0x1.70bd70594a51dp-4)));
    const auto [base, base_low] = arctangents[static_cast<std::size_t>(k)];
    const Sum sum = fast_sum(base, q);
    return k == 0.0 ? Sum{q, remainder + q * z * series}
                    : Sum{sum.high, sum.low + (base_low + (remainder + q * z * series))};
}

double with_sign(double value, double sign) { return std::copysign(value, sign); }

}  // namespace

ReducedAngle reduce_exactly(double angle) {
    if (!std::isfinite(angle)) return {nan, 0.0, 0};
    const Word bits = std::bit_cast<Word>(std::abs(angle)),
               mantissa = (bits & ((Word{1} << 52) - 1)) | Word{1} << 52;
    // |angle| = mantissa 2^exponent, and at least 1/2.
    const int exponent = static_cast<int>(bits >> 52) - 1075;
    // Skip the bits of 2/pi that give multiples of four quadrants; 192 further bits leave 2^-137 of
    // a quadrant.
    const int begin = 64 + exponent - 2, word = begin / 64, shift = begin % 64;
    std::array<Word, 3> window;
    for (int i = 0; i < 3; ++i)
        window[i] = shift
                        ? two_over_pi[word + i] << shift | two_over_pi[word + i + 1] >> (64 - shift)
                        : two_over_pi[word + i];
    const Wide last = static_cast<Wide>(window[2]) * mantissa,
               middle = static_cast<Wide>(window[1]) * mantissa + (last >> 64);
    std::array<Word, 3> turns{window[0] * mantissa + static_cast<Word>(middle >> 64),
                              static_cast<Word>(middle), static_cast<Word>(last)};
    Word quadrant = turns[0] >> 62;
    Wide fraction =
        static_cast<Wide>(turns[0] << 2 | turns[1] >> 62) << 64 | (turns[1] << 2 | turns[2] >> 62);
    Word below = turns[2] << 2;
    const bool above = fraction >> 127;  // the next multiple is the nearest
    if (above) {
        ++quadrant;
        fraction = ~fraction + (below == 0);
        below = 0 - below;
    }
    int zeros = 0;  // no double lies nearer to a multiple than 2^-62
    for (; zeros < 127 && !(fraction >> 127); ++zeros)
        fraction = fraction << 1 | below >> 63, below <<= 1;
    const Word high = static_cast<Word>(fraction >> 64), low = static_cast<Word>(fraction);
    const Wide product = static_cast<Wide>(high) * half_pi_high + high_product(high, half_pi_low) +
                         high_product(low, half_pi_high);
    // Product 2^(-127 - zeros); the first 53 bits, and 53 of the next ones.
    const Word leading = static_cast<Word>(product >> 64), kept = leading & ~Word{0x7FF};
    const Word remainder = (leading - kept) << 52 | static_cast<Word>(product) >> 12;
    const double scale = std::bit_cast<double>(static_cast<Word>(1023 - 63 - zeros) << 52);
    const double sign = (angle < 0.0) != above ? -1.0 : 1.0;
    return {sign * scale * static_cast<double>(kept),
            sign * scale * 0x1.0p-52 * static_cast<double>(remainder),
            angle < 0.0 ? 0 - quadrant : quadrant};
}

double arctangent(double y, double x) {
    if (std::isnan(x) || std::isnan(y)) return nan;
    double small = std::abs(y), large = std::abs(x);
    const bool steep = small > large, back = std::signbit(x);
    if (steep) std::swap(small, large);
    Sum angle{0.0, 0.0};
    if (small == infinity) {
        angle = {arctangents[8][0], arctangents[8][1]};
    } else if (large != infinity && small != 0.0) {
        if (large > 0x1.0p900) small *= 0x1.0p-200, large *= 0x1.0p-200;
        else if (large < 0x1.0p-700) small *= 0x1.0p200, large *= 0x1.0p200;
        // Below 2^-60 the quotient is the result; it is rounded once, also if it underflows.
        angle = small < large * 0x1.0p-60 ? Sum{small / large, 0.0} : arctangent_of(small, large);
    }
    constexpr double pi = 0x1.921fb54442d18p+1, pi_low = 0x1.1a62633145c07p-53;
    if (steep) {
        const Sum turned = fast_sum(0.5 * pi, -angle.high);
        angle = {turned.high, turned.low + (0.5 * pi_low - angle.low)};
    }
    if (back) {
        const Sum turned = fast_sum(pi, -angle.high);
        angle = {turned.high, turned.low + (pi_low - angle.low)};
    }
    return with_sign(angle.high + angle.low, y);
}

double length_of(double x, double y) {
    const double a = std::abs(x), b = std::abs(y), large = std::max(a, b);
    if (a == infinity || b == infinity) return infinity;
    if (large > 0x1.0p500) return 0x1.0p600 * length_of(0x1.0p-600 * a, 0x1.0p-600 * b);
    if (large < 0x1.0p-450 && large > 0.0)
        return 0x1.0p-600 * length_of(0x1.0p600 * a, 0x1.0p600 * b);
    return std::sqrt(a * a + b * b);
}

double exponential(double x) {
    if (std::isnan(x)) return nan;
    if (x > 710.0) return infinity;
    if (x < -750.0) return 0.0;
    const double n = (x * std::numbers::log2e + 0x1.8p52) - 0x1.8p52;
    const double high = x - n * 0x1.62e42fefp-1, low = n * 0x1.473de6af278edp-34, r = high - low,
                 error = (high - r) - low;
    // Taylor's, whose coefficients are rounded quotients.
    double series = 0.0, factorial = 6227020800.0;
    for (int k = 13; k >= 2; factorial /= k, --k) series = series * r + 1.0 / factorial;
    return std::ldexp(1.0 + (r + (r * r * series + error * (1.0 + r))), static_cast<int>(n));
}

double logarithm(double x) {
    if (std::isnan(x) || x < 0.0) return nan;
    if (x == 0.0) return -infinity;
    if (x == infinity) return infinity;
    int exponent;
    double f = std::frexp(x, &exponent);  // exact
    if (f < 0.5 * std::numbers::sqrt2) f *= 2.0, --exponent;
    f -= 1.0;
    const double s = f / (2.0 + f), z = s * s, half = 0.5 * f * f, n = exponent;
    const double series =
        z * (0x1.5555555555594p-1 +
             z * (0x1.999999997f730p-2 +
                  z * (0x1.249249423c2bcp-2 +
                       z * (0x1.c71c51d55c12ep-3 +
                            z * (0x1.7466484ea67e8p-3 +
                                 z * (0x1.39a0e026e5d1ap-3 + z * 0x1.2f0d45c86f51ap-3))))));
    return n * 0x1.62e42fefp-1 - ((half - (s * (half + series) + n * 0x1.473de6af278edp-34)) - f);
}

double complementary_error(double x) {
    if (std::isnan(x)) return nan;
    const double a = std::abs(x);
    if (a > 27.5) return x > 0.0 ? 0.0 : 2.0;
    const double square = a * a;
    const double bell =
        exponential(-square) * (1.0 - rounding_error(a, a, square)) * std::numbers::inv_sqrtpi;
    if (a < 0.75) {  // erf(x) = 2/sqrt(pi) e^(-x^2) sum of (2 x^2)^n x / (2n+1)!!
        double term = a, sum = a;
        for (int n = 1; term > 1e-18 * sum; ++n) sum += term *= 2.0 * square / (2 * n + 1);
        return 1.0 - with_sign(2.0 * bell * sum, x);
    }
    double fraction = a;  // of Laplace: x + (1/2) / (x + (2/2) / (x + (3/2) / ...
    for (int n = 20 + static_cast<int>(200.0 / square); n >= 1; --n)
        fraction = a + 0.5 * n / fraction;
    return x > 0.0 ? bell / fraction : 2.0 - bell / fraction;
}

}  // namespace tmkit
