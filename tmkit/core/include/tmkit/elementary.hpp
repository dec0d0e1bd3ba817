// Elementary functions with the same bits on every CPU.
//
// The results of the C library depend on the CPU: glibc has variants with and without fused
// products that differ in the last bit, and a plan depends on every bit of every pose. These
// functions use +, -, *, / and the square root only, in a fixed order; IEEE 754 defines their
// rounding. The library is compiled with -ffp-contract=off, without fused products.
//
// The error is below one unit in the last place for every argument, unless stated otherwise.
// Non-finite arguments give the results of the C library. The polynomials were fitted in 300 bits,
// coefficient after coefficient rounded.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace tmkit {

struct SineCosine {
    double sine, cosine;
};

// An angle minus the nearest multiple of pi/2, as a sum of two doubles, with that multiple modulo
// four.
struct ReducedAngle {
    double high, low;
    std::uint64_t quadrant;
};

ReducedAngle reduce_exactly(double angle);  // by integers, for every angle

// Multiply with pi/2 in three parts, the first two of 33 bits, so their products are exact up to
// 2^19. Angles too close to a multiple of pi/2 for the third part are reduced with integers.
[[gnu::always_inline]] inline ReducedAngle reduce(double angle) {
    if (!(std::abs(angle) < 0x1.0p19)) [[unlikely]]
        return reduce_exactly(angle);
    constexpr double shift = 0x1.8p52;  // moves the nearest integer into the last bits
    const double shifted = angle * 0x1.45f306dc9c883p-1 + shift, n = shifted - shift;
    const double first = angle - n * 0x1.921fb544p+0, second = n * 0x1.0b4611a6p-34;
    const double remainder = first - second, back = first - remainder;
    const double error = (first - (remainder + back)) + (back - second);
    if (std::abs(remainder) < std::abs(n) * 0x1.0p-58) [[unlikely]]
        return reduce_exactly(angle);
    // Keeps -0.0.
    const double low = error - n * 0x1.3198a2e037073p-69, high = n == 0.0 ? angle : remainder + low;
    return {high, (remainder - high) + low, std::bit_cast<std::uint64_t>(shifted)};
}

// Sine and cosine of one angle.
[[gnu::always_inline]] inline SineCosine sine_cosine(double angle) {
    const ReducedAngle a = reduce(angle);
    const double x = a.high, z = x * x, w = z * z;
    const double s =
        (0x1.111111110f77cp-7 + z * -0x1.a01a019bf7bcbp-13) +
        w * ((0x1.71de35649b231p-19 + z * -0x1.ae5e591921411p-26) + w * 0x1.5d8f97c9f3d4bp-33);
    const double cube = z * x;
    const double sine = x - ((z * (0.5 * a.low - cube * s) - a.low) - cube * -0x1.5555555555548p-3);
    const double c = ((0x1.555555555554bp-5 + z * -0x1.6c16c16c1504bp-10) +
                      w * (0x1.a01a019c9773cp-16 + z * -0x1.27e4f7f8e48edp-22)) +
                     w * w * (0x1.1ee9e1583270bp-29 + z * -0x1.8fa99010a4496p-37);
    const double half = 0.5 * z, one = 1.0 - half;
    const double cosine = one + (((1.0 - one) - half) + (w * c - x * a.low));
    // Swap and signs without a branch, which a CPU could not predict.
    const std::uint64_t swap = 0 - (a.quadrant & 1), p = std::bit_cast<std::uint64_t>(sine),
                        q = std::bit_cast<std::uint64_t>(cosine);
    const std::uint64_t exchanged = (p ^ q) & swap;
    return {std::bit_cast<double>(p ^ exchanged ^ (a.quadrant & 2) << 62),
            std::bit_cast<double>(q ^ exchanged ^ ((a.quadrant + 1) & 2) << 62)};
}

inline double sine(double angle) { return sine_cosine(angle).sine; }
inline double cosine(double angle) { return sine_cosine(angle).cosine; }

// The angle of the point (x, y) from the x axis, -pi to pi, with the signs of zeros and infinities
// of atan2.
double arctangent(double y, double x);
// The length of (x, y), with an error of at most 1.5 units in the last place, without overflow of
// intermediate values.
double length_of(double x, double y);
double exponential(double x);
double logarithm(double x);
// 1 - erf(x), also for tiny results, with an error of at most 16 units in the last place.
double complementary_error(double x);

}  // namespace tmkit
