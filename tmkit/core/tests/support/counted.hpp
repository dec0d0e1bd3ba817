// How many times the program has called operator new: test_allocations.cpp counts.
#pragma once

long allocations_so_far();

template <class Call> long count_allocations(Call&& call) {
    const long before = allocations_so_far();
    call();
    return allocations_so_far() - before;
}
