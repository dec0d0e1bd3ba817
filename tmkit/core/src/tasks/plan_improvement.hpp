// Cheaper plans near a plan.
#pragma once

#include "constrained_task.hpp"

namespace tmkit {

// Whether the operators lead from the state to the goal under the constraints. `states` receives
// the states between, the first and the last too.
bool leads_to_goal(const ConstrainedTask& task, const TaskValues& start, const TaskFacts& goal,
                   const std::vector<std::int32_t>& operators, std::vector<TaskValues>& states);

// The plan without operators that can be omitted with all that cannot be applied without them.
std::vector<std::int32_t> eliminate_actions(const ConstrainedTask& task, const TaskValues& start,
                                            const TaskFacts& goal, std::vector<std::int32_t> plan,
                                            const std::function<bool()>& interrupted);

// A plan that costs no more, by searches for some of its actions among operators that are close to
// it.
std::vector<std::int32_t> improve_plan(const ConstrainedTask& task, const TaskValues& start,
                                       const TaskFacts& goal, const std::vector<std::int32_t>& plan,
                                       std::int64_t work, const std::function<bool()>& interrupted);

}  // namespace tmkit
