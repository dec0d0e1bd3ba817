// Shared ownership of immutable values.
//
// Versions of a scene share their nodes, records, shapes and names, and any thread may hold or
// release a version. Each shared value has an atomic count of owners (one word, no separate control
// block), and `Ref<T>` is a pointer that counts. Invariant: the target of a Ref<const T> never
// changes once it has a second owner.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace tmkit {

class Shared {
public:
    Shared() = default;
    Shared(const Shared&) noexcept {}  // a copy of a value starts without owners
    // Assignment keeps the owners of the target.
    Shared& operator=(const Shared&) noexcept { return *this; }

    void retain() const noexcept { owners_.fetch_add(1, std::memory_order_relaxed); }

    // True when the caller was the last owner and must delete the value.
    bool release() const noexcept { return owners_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

    bool has_one_owner() const noexcept { return owners_.load(std::memory_order_acquire) == 1; }

private:
    mutable std::atomic<std::uint32_t> owners_{0};
};

template <class T> class Ref {
public:
    Ref() noexcept = default;
    Ref(std::nullptr_t) noexcept {}
    explicit Ref(T* value) noexcept : value_(value) {
        if (value_) value_->retain();
    }
    Ref(const Ref& other) noexcept : Ref(other.value_) {}
    Ref(Ref&& other) noexcept : value_(std::exchange(other.value_, nullptr)) {}
    template <class U> Ref(const Ref<U>& other) noexcept : Ref(static_cast<T*>(other.get())) {}
    ~Ref() { drop(value_); }

    Ref& operator=(Ref other) noexcept {
        std::swap(value_, other.value_);
        return *this;
    }

    T* get() const noexcept { return value_; }
    T* operator->() const noexcept { return value_; }
    T& operator*() const noexcept { return *value_; }
    explicit operator bool() const noexcept { return value_ != nullptr; }
    friend bool operator==(const Ref& a, const Ref& b) noexcept { return a.value_ == b.value_; }

private:
    static void drop(T* value) noexcept {
        if (value && value->release()) delete value;
    }

    T* value_ = nullptr;
};

// A shared value that is computed on first use, by any thread, and shared with copies.
template <class T> class LazyRef {
public:
    LazyRef() noexcept = default;
    LazyRef(const LazyRef& other) noexcept : value_(other.value_.load(std::memory_order_acquire)) {
        if (const T* value = value_.load(std::memory_order_relaxed)) value->retain();
    }
    LazyRef(LazyRef&& other) noexcept : value_(other.value_.exchange(nullptr)) {}
    ~LazyRef() {
        if (const T* value = value_.load(std::memory_order_acquire); value && value->release())
            delete value;
    }
    LazyRef& operator=(LazyRef other) noexcept {
        other.value_.store(value_.exchange(other.value_.load()));
        return *this;
    }

    bool is_made() const noexcept { return value_.load(std::memory_order_acquire) != nullptr; }
    template <class Make> const T& get(Make&& make) const {
        if (const T* built = value_.load(std::memory_order_acquire)) return *built;
        const Ref<const T> new_value = make();
        const T* first = nullptr;
        if (!value_.compare_exchange_strong(first, new_value.get(), std::memory_order_acq_rel))
            return *first;
        new_value->retain();
        return *new_value;
    }
    // Return the value if it was computed, and release it here.
    Ref<const T> take() noexcept {
        const Ref<const T> taken(value_.exchange(nullptr));
        if (taken) static_cast<void>(taken->release());
        return taken;
    }

private:
    mutable std::atomic<const T*> value_{nullptr};
};

template <class T, class... Arguments> Ref<T> make_ref(Arguments&&... arguments) {
    return Ref<T>(new T(std::forward<Arguments>(arguments)...));
}

}  // namespace tmkit
