// Plans of large tasks: one goal after the other, then shorter plans near the first.
#pragma once

#include "lazy_search.hpp"

namespace tmkit {

// A plan that reaches one goal after the other and keeps those that hold, or else one by a greedy search for all.
// `work` is for each search. The result proves nothing when there is no plan.
TaskSearchResult plan_by_agenda(const ConstrainedTask& task, const TaskValues& start, const TaskFacts& goal,
                                std::int64_t work, const std::function<bool()>& interrupted);

// Whether the operators lead from the state to the goal under the constraints. `states` receives the states between,
// the first and the last too.
bool leads_to_goal(const ConstrainedTask& task, const TaskValues& start, const TaskFacts& goal,
                   const std::vector<std::int32_t>& operators, std::vector<TaskValues>& states);

// The plan without operators that can be omitted with all that cannot be applied without them.
std::vector<std::int32_t> eliminate_actions(const ConstrainedTask& task, const TaskValues& start, const TaskFacts& goal,
                                            std::vector<std::int32_t> plan, const std::function<bool()>& interrupted);

// A plan that costs no more, by a weighted search for a cheaper one and then by searches for cheaper replacements of
// windows of it.
std::vector<std::int32_t> improve_plan(const ConstrainedTask& task, const TaskValues& start, const TaskFacts& goal,
                                       std::vector<std::int32_t> plan, std::int64_t work,
                                       const std::function<bool()>& interrupted);

}  // namespace tmkit
