// An `operator new` that can be told to fail: preloaded by the tests of what happens when memory
// runs out.
//
// `fail_at(k)` makes the k-th allocation from now on throw std::bad_alloc, once, whichever thread
// asks; `allocations()` returns how many there were since. Memory that C code takes by malloc
// (Python's own objects among it) is not touched.
#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<long> left{-1};
std::atomic<long> counted{0};

void* taken(std::size_t size, std::size_t alignment) {
    counted.fetch_add(1, std::memory_order_relaxed);
    if (left.load(std::memory_order_relaxed) >= 0 &&
        left.fetch_sub(1, std::memory_order_relaxed) == 1)
        return nullptr;
    size = size ? size : 1;
    return alignment ? std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)
                     : std::malloc(size);
}

void* taken_or_thrown(std::size_t size, std::size_t alignment = 0) {
    if (void* memory = taken(size, alignment)) return memory;
    throw std::bad_alloc();
}

std::size_t number(std::align_val_t alignment) { return static_cast<std::size_t>(alignment); }

}  // namespace

extern "C" void fail_at(long k) {
    counted = 0;
    left = k;
}
extern "C" long allocations() { return counted; }

void* operator new(std::size_t size) { return taken_or_thrown(size); }
void* operator new[](std::size_t size) { return taken_or_thrown(size); }
void* operator new(std::size_t size, std::align_val_t alignment) {
    return taken_or_thrown(size, number(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
    return taken_or_thrown(size, number(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return taken(size, 0); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return taken(size, 0); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
