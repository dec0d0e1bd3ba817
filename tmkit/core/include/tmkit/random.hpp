// Random numbers that are the same on every platform.
//
// A search is reproducible only if its random numbers are. Therefore nothing here depends on the
// standard library's unspecified distributions, on a clock or on shared state. A generator is a
// small value, made from a seed and the number of a stream, and each user owns one. The generator
// is xoshiro256** (Blackman and Vigna, "Scrambled linear pseudorandom number generators", ACM TOMS
// 2021), its state initialised by splitmix64; a uniform double is the upper 53 bits.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "tmkit/elementary.hpp"

namespace tmkit {

class Random {
public:
    // Streams of one seed are independent of each other for practical purposes.
    explicit Random(std::uint64_t seed, std::uint64_t stream = 0) {
        std::uint64_t mixer = seed;
        mixer = split_mix(mixer) ^ (stream * 0xD1342543DE82EF95ULL);
        for (std::uint64_t& word : state_) word = split_mix(mixer);
    }

    std::uint64_t bits() {
        const std::uint64_t result = rotate(state_[1] * 5, 7) * 9;
        const std::uint64_t shifted = state_[1] << 17;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= shifted;
        state_[3] = rotate(state_[3], 45);
        return result;
    }

    // In [0, 1), a multiple of 2^-53.
    double uniform() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }

    double uniform(double lower, double upper) { return lower + (upper - lower) * uniform(); }

    // In [0, count); the bias is below count / 2^64.
    std::uint64_t below(std::uint64_t count) {
        return static_cast<std::uint64_t>((static_cast<unsigned __int128>(bits()) * count) >> 64);
    }

private:
    static std::uint64_t rotate(std::uint64_t word, int by) {
        return (word << by) | (word >> (64 - by));
    }

    static std::uint64_t split_mix(std::uint64_t& state) {
        std::uint64_t word = (state += 0x9E3779B97F4A7C15ULL);
        word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ULL;
        word = (word ^ (word >> 27)) * 0x94D049BB133111EBULL;
        return word ^ (word >> 31);
    }

    std::uint64_t state_[4];
};

// Standard normal numbers in pairs (Box and Muller).
class NormalRandom {
public:
    explicit NormalRandom(std::uint64_t seed) : random_(seed) {}
    double operator()() {
        if (has_second_) {
            has_second_ = false;
            return second_;
        }
        const double radius = std::sqrt(-2.0 * logarithm(1.0 - random_.uniform())),
                     angle = 2.0 * std::numbers::pi * random_.uniform();
        const auto [sine, cosine] = sine_cosine(angle);
        second_ = radius * sine;
        has_second_ = true;
        return radius * cosine;
    }

private:
    Random random_;
    double second_ = 0.0;
    bool has_second_ = false;
};

}  // namespace tmkit
