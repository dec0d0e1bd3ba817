// Parallel loop over rows.
//
// A counter hands out rows in blocks, and each row has its own result, so results do not depend on
// the number of threads. The calling thread works too, and it alone checks for an interruption.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tmkit {

// Call work(row) for every row in 0 .. count - 1, by at least one thread. The caller's thread calls
// `interrupted` regularly; true ends the work, and results are then undefined. Throws the first
// exception of work.
template <class Work>
void for_each_row(std::size_t count, int threads, const std::function<bool()>& interrupted,
                  Work&& work) {
    constexpr std::size_t block = 64;
    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
    std::mutex guard;
    const auto run = [&](bool asks) {
        try {
            for (std::size_t begin; (begin = next.fetch_add(block)) < count;) {
                for (std::size_t row = begin; row < std::min(count, begin + block); ++row)
                    work(row);
                if (asks && interrupted && begin / block % 64 == 63 && interrupted()) next = count;
            }
        } catch (...) {
            next = count;
            const std::lock_guard lock(guard);
            if (!failure) failure = std::current_exception();
        }
    };
    const std::size_t blocks = (count + block - 1) / block;
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < std::min<std::size_t>(threads, blocks); ++i)
        others.emplace_back([&] { run(false); });
    run(true);
    others.clear();  // joins
    if (failure) std::rethrow_exception(failure);
}

}  // namespace tmkit
