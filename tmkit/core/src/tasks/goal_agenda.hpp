// Plans of large tasks, one goal after the other.
#pragma once

#include "lazy_search.hpp"

namespace tmkit {

// Return a plan that reaches one goal after the other and keeps those that hold, or else one by a
// greedy search for all. `work` is for each search. No plan is no proof.
TaskSearchResult plan_by_agenda(const ConstrainedTask& task, const TaskValues& start,
                                const TaskFacts& goal, std::int64_t work,
                                const std::function<bool()>& interrupted);

}  // namespace tmkit
