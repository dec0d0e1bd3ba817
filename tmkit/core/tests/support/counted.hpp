// Number of calls of operator new, counted by test_allocations.cpp.
#pragma once

long allocations_so_far();

template <class Call> long count_allocations(Call&& call) {
    const long before = allocations_so_far();
    call();
    return allocations_so_far() - before;
}
