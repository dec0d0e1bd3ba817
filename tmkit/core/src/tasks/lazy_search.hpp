// Lazy best-first search in a constrained task: A*, or with a weight on the estimate.
#pragma once

#include "constrained_task.hpp"

namespace tmkit {

struct LazySearchOptions {
    // Rule evaluations until the first plan, and after it.
    std::int64_t work = 0, improvement_work = 0;
    std::int64_t weight = 1;             // of the estimate
    std::int64_t bound = infinite_cost;  // plans cost less
    const std::function<bool()>* interrupted = nullptr;
};

// Return a cheap plan from a state, whose derived values are valid. Unsolvable: no plan costs less
// than the bound.
TaskSearchResult search_lazily(const ConstrainedTask& task, const TaskValues& start,
                               const TaskFacts& goal, const LazySearchOptions& options);

}  // namespace tmkit
