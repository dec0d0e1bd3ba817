// A sequence lock: one writer that never waits, any number of readers that retry.
//
// The writer makes a counter odd, writes, and makes it even. A reader reads the counter, the data,
// and the counter again. If the counter was odd or has changed, it discards the data and retries.
// Readers write nothing, so they disturb neither the writer nor one another.
//
// In the memory model of C++ a reader races with the writer unless every word that both access is
// atomic, so those words go through `load_shared` and `store_shared`: loads acquire, stores
// release, plain moves on x86. That is enough, without fences (which the thread sanitizer does not
// support):
//
//     writer                                reader
//     counter = odd                         before = counter      acquire
//     data = new       release              value  = data         acquire
//     counter = even   release              after  = counter
//
// A reader that loaded a new datum acquired it, hence also the odd counter stored before it, so
// `after` is not `before`. No load may move above an acquiring load before it, so `after` is read
// last. The writer may read its own words plainly: reads do not race with reads.
//
// Rules for a reader: it follows indices only within bounds, takes a bounded number of steps for
// any data, and uses the data only after `read` has returned. It waits while the writer is writing:
// keep sections short.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <thread>
#include <type_traits>
#include <vector>

#include "tmkit/error.hpp"
#include "tmkit/pose.hpp"

namespace tmkit {

template <class Word>
    requires std::is_integral_v<Word> || std::is_enum_v<Word>
inline Word load_shared(const Word& from) noexcept {
    static_assert(std::atomic_ref<Word>::is_always_lock_free);
    return std::atomic_ref<Word>(const_cast<Word&>(from)).load(std::memory_order_acquire);
}

template <class Word>
    requires std::is_integral_v<Word> || std::is_enum_v<Word>
inline void store_shared(Word& into, Word value) noexcept {
    std::atomic_ref<Word>(into).store(value, std::memory_order_release);
}

// An array of fixed size that one thread writes and all may read.
//
// A number or enumerator is stored once. A value made of doubles is stored twice: the writer's
// copy, unchanged, and the one for readers, word by word, so the writer computes at full speed. The
// words are integers, since compilers move atomic doubles through the stack.
template <class Value> class Column {
    static constexpr bool is_word = std::is_integral_v<Value> || std::is_enum_v<Value>;
    static constexpr std::size_t words = is_word ? 0 : sizeof(Value) / 8;
    using Shown = std::array<std::uint64_t, words>;

public:
    explicit Column(std::size_t size, Value value = {})
        : values_(size, value), shown_(is_word ? 0 : size) {
        for (std::size_t i = 0; i < size; ++i) store(static_cast<std::int32_t>(i), value);
    }

    // Writer only.
    const Value& operator[](std::int32_t index) const noexcept { return values_[place(index)]; }

    Value load(std::int32_t index) const noexcept {
        if constexpr (is_word) return load_shared(values_[place(index)]);
        else return assemble(shown_[place(index)]);
    }

    // Write the numbers of a value to their destination.
    void load_into(std::int32_t index, double* numbers) const noexcept {
        const Shown& shown = shown_[place(index)];
        for (std::size_t i = 0; i < words; ++i) {
            const std::uint64_t word = load_shared(shown[i]);
            std::memcpy(numbers + i, &word, 8);
        }
    }

    void store(std::int32_t index, const Value& value) noexcept {
        if constexpr (is_word) {
            store_shared(values_[place(index)], value);
        } else {
            prepare(index, value);
            show(index);
        }
    }

    // The two parts of `store` for values made of doubles. The first writes only the writer's copy,
    // before readers have to wait.
    void prepare(std::int32_t index, const Value& value) noexcept { values_[place(index)] = value; }
    void show(std::int32_t index) noexcept {
        const auto* bytes = reinterpret_cast<const char*>(&values_[place(index)]);
        Shown& shown = shown_[place(index)];
        for (std::size_t i = 0; i < words; ++i) {
            std::uint64_t word;
            std::memcpy(&word, bytes + 8 * i, 8);
            store_shared(shown[i], word);
        }
    }

private:
    static std::size_t place(std::int32_t index) noexcept {
        return static_cast<std::size_t>(index);
    }
    static double number(const std::uint64_t& word) noexcept {
        return std::bit_cast<double>(load_shared(word));
    }

    static double assemble(const std::array<std::uint64_t, 1>& w) noexcept { return number(w[0]); }
    static Vector3 assemble(const std::array<std::uint64_t, 3>& w) noexcept {
        return {number(w[0]), number(w[1]), number(w[2])};
    }
    static Vector6 assemble(const std::array<std::uint64_t, 6>& w) noexcept {
        return {number(w[0]), number(w[1]), number(w[2]), number(w[3]), number(w[4]), number(w[5])};
    }
    static Pose assemble(const std::array<std::uint64_t, 7>& w) noexcept {
        return {{number(w[0]), number(w[1]), number(w[2])},
                {number(w[3]), number(w[4]), number(w[5]), number(w[6])}};
    }
    template <std::size_t N> static Value assemble(const std::array<std::uint64_t, N>& w) noexcept {
        std::array<double, N> numbers;
        for (std::size_t i = 0; i < N; ++i) numbers[i] = number(w[i]);
        return std::bit_cast<Value>(numbers);
    }

    std::vector<Value> values_;
    std::vector<Shown> shown_;
};

class SequenceLock {
public:
    // Held by the writer during a whole edit. A second writer is a misuse and throws
    // Error(concurrent_write).
    class Writer {
    public:
        explicit Writer(SequenceLock& lock) : lock_(lock) {
            if (lock_.has_writer_.exchange(true, std::memory_order_acquire))
                throw Error(ErrorKind::concurrent_write,
                            "another thread is writing these arrays; one at a time may edit them, "
                            "run forward or freeze");
        }
        ~Writer() { lock_.has_writer_.store(false, std::memory_order_release); }
        Writer(const Writer&) = delete;
        Writer& operator=(const Writer&) = delete;

    private:
        SequenceLock& lock_;
    };

    // Held while words change; readers get an odd counter.
    class Section {
    public:
        explicit Section(SequenceLock& lock) noexcept
            : lock_(lock), count_(lock.count_.load(std::memory_order_relaxed)) {
            lock_.count_.store(count_ + 1, std::memory_order_relaxed);
        }
        ~Section() { lock_.count_.store(count_ + 2, std::memory_order_release); }
        Section(const Section&) = delete;
        Section& operator=(const Section&) = delete;

    private:
        SequenceLock& lock_;
        std::uint64_t count_;
    };

    // Return the result of `read`, or throw its Error, if there was no write in between. It may be
    // called many times.
    template <class Read> auto read(Read&& read) const {
        for (unsigned attempt = 1;; ++attempt) {
            const std::uint64_t before = count_.load(std::memory_order_acquire);
            if (before % 2 == 0) {
                try {
                    auto answer = read();
                    if (count_.load(std::memory_order_relaxed) == before) return answer;
                } catch (const Error&) {
                    if (count_.load(std::memory_order_relaxed) == before) throw;
                }
            }
            if (attempt % 64 == 0) std::this_thread::yield();  // the writer may need this processor
        }
    }

private:
    alignas(64) std::atomic<std::uint64_t> count_{0};
    std::atomic<bool> has_writer_{false};
};

}  // namespace tmkit
