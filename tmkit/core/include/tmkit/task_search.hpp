// Search for plans of tasks in finite-domain variables, as Fast Downward's translator states them.
//
// Lazy A* (Richter and Westphal, JAIR 2010): states are judged when they are expanded; of two queues one holds only
// what preferred operators lead to, and is served more often while that gets nearer to the goal. The heuristic is FF's
// (Hoffmann and Nebel, JAIR 2001), with supporters by additive costs (Keyder and Geffner, ECAI 2008). Derived facts
// count as facts; that one does not hold is reached by breaking all rules for it, or, where those are recursive, taken
// as reached. So a state without a relaxed plan is a dead end, and a search that runs out of states is a proof.
#pragma once

#include <cstdint>
#include <vector>

namespace tmkit {

struct TaskFact {
    std::int32_t variable, value;
};
using TaskFacts = std::vector<TaskFact>;

struct TaskEffect {
    TaskFacts conditions;
    TaskFact fact;
};

struct TaskOperator {
    TaskFacts needs;
    std::vector<TaskEffect> effects;
    std::int64_t cost;
};

struct Task {
    std::vector<std::int32_t> domains;  // how many values each variable has
    std::vector<std::int32_t> layers;   // of axioms; -1 for variables that are not derived
    std::vector<std::int32_t> init;     // for derived variables the value they have when no axiom applies
    TaskFacts goal;
    std::vector<TaskOperator> operators;
    std::vector<TaskEffect> axioms;  // each gives a derived variable its other value
};

enum class TaskSearchStatus : std::uint8_t { solved, unsolvable, limit };

struct TaskSearchResult {
    TaskSearchStatus status = TaskSearchStatus::limit;
    std::vector<std::int32_t> operators;
    std::int64_t expanded = 0, evaluated = 0;
};

// Looks at rules, which are operators' effects and axioms, at most `work` times before there is a plan, and then
// `improvement_work` times for cheaper ones. The same arguments give the same plan.
TaskSearchResult search_task(const Task& task, std::int64_t work, std::int64_t improvement_work);

}  // namespace tmkit
