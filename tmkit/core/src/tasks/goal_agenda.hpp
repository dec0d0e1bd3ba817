// Plans of large tasks, one goal after the other.
#pragma once

#include "lazy_search.hpp"

namespace tmkit {

// A plan that reaches one goal after the other and keeps those that hold, or else one by a greedy
// search for all. `work` is for each search. The result proves nothing when there is no plan.
TaskSearchResult plan_by_agenda(const ConstrainedTask& task, const TaskValues& start,
                                const TaskFacts& goal, std::int64_t work,
                                const std::function<bool()>& interrupted);

}  // namespace tmkit
