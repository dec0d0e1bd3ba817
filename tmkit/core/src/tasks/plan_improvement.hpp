// Cheaper plans near a plan.
#pragma once

#include "constrained_task.hpp"

namespace tmkit {

// Return whether the operators lead from the state to the goal under the constraints. `states`
// receives all states, with the first and the last.
bool leads_to_goal(const ConstrainedTask& task, const TaskValues& start, const TaskFacts& goal,
                   const std::vector<std::int32_t>& operators, std::vector<TaskValues>& states);

// Return the plan without operators that can be omitted, together with all that do not apply
// without them.
std::vector<std::int32_t> eliminate_actions(const ConstrainedTask& task, const TaskValues& start,
                                            const TaskFacts& goal, std::vector<std::int32_t> plan,
                                            const std::function<bool()>& interrupted);

// Return a plan that costs no more, by searches for some of its actions among operators close to
// it.
std::vector<std::int32_t> improve_plan(const ConstrainedTask& task, const TaskValues& start,
                                       const TaskFacts& goal, const std::vector<std::int32_t>& plan,
                                       std::int64_t work, const std::function<bool()>& interrupted);

}  // namespace tmkit
