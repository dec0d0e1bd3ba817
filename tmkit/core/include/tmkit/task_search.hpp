// Search for plans of tasks in finite-domain variables, in the form of Fast Downward's translator.
//
// Small tasks: lazy A* (Richter and Westphal, JAIR 2010). States are evaluated on expansion. One of
// two queues holds only successors by preferred operators, and has priority while the estimate
// decreases. The heuristic is FF's (Hoffmann and Nebel, JAIR 2001), with supporters by additive
// costs (Keyder and Geffner, ECAI 2008). Derived facts count as facts. A negated derived fact is
// reached by breaking all rules for it, or, if those are recursive, assumed to be reached. A state
// without a relaxed plan is therefore a dead end, and an exhausted search is a proof.
//
// Large tasks: a goal agenda (Koehler and Hoffmann, JAIR 2000). Goals are reached one after the
// other and kept, in reasonable orders: first those that change no variable of another goal, and
// each only while all others remain reachable. The plan is then shortened by action elimination
// (Nakhost and Mueller, ICAPS 2010) and by searches for some of its actions, among the operators
// close to the plan (action plan neighborhood, same paper).
//
// Constraints bound the number of given facts that hold before an operator: capacities of regions,
// learned causes of failure. The relaxed task has facts "at most k of them hold" for them, which
// operators reach that make one of the facts false.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace tmkit {

struct TaskFact {
    std::int32_t variable, value;
    auto operator<=>(const TaskFact&) const = default;
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
    std::vector<std::int32_t> domains;   // number of values of each variable
    std::vector<std::int32_t> layers;    // of axioms; -1 for variables that are not derived
    std::vector<std::int32_t> defaults;  // of derived variables: the value if no axiom applies
    // Groups of mutually exclusive facts: at most one holds in a reachable state.
    std::vector<TaskFacts> mutexes;
    std::vector<TaskOperator> operators;
    std::vector<TaskEffect> axioms;  // each gives a derived variable its other value
};

// The operators apply only in states in which at most `limit` of the facts hold; with a limit of
// -1, never.
struct TaskConstraint {
    TaskFacts facts;
    std::int32_t limit;
    std::vector<std::int32_t> operators;
};

enum class TaskSearchStatus : std::uint8_t { solved, unsolvable, limit, interrupted };

struct TaskSearchResult {
    TaskSearchStatus status = TaskSearchStatus::limit;
    std::vector<std::int32_t> operators;
    std::int64_t expanded = 0, evaluated = 0;
    bool by_agenda = false;
};

// Numbers of rule evaluations; rules are operators' effects and axioms.
struct TaskSearchWork {
    std::int64_t search = 0;       // A*, until the first plan
    std::int64_t improvement = 0;  // search for a cheaper plan, after the first
    std::int64_t agenda = 0;  // of each search of the agenda, after A* has given up; 0: no search
};

using TaskValues = std::vector<std::int32_t>;

// Operators and the states along them, with the first and the last.
struct TaskPath {
    std::vector<std::int32_t> operators;
    std::vector<TaskValues> states;
};

class ConstrainedTask;

// A compiled task with constraints. All methods are functions of the arguments alone, and may be
// called by several threads.
class TaskSearch {
public:
    explicit TaskSearch(Task task);
    // The same task with only these constraints.
    TaskSearch with_constraints(const std::vector<TaskConstraint>& constraints) const;

    const Task& task() const { return *task_; }
    TaskValues derive(TaskValues values) const;  // with the values of the derived variables
    TaskValues apply(std::int32_t number, const TaskValues& values) const;
    bool is_applicable(std::int32_t number, const TaskValues& values) const;
    std::vector<std::int32_t> applicable(const TaskValues& values) const;

    // Return the path by these operators until the goal holds; none if it does not hold, or an
    // operator does not apply. With `omits`, such an operator is omitted.
    std::optional<TaskPath> follow(const TaskValues& values, const TaskFacts& goal,
                                   const std::vector<std::int32_t>& operators, bool omits) const;

    // Return a plan from the values. Only A* proves that there is none. `interrupted` is called
    // regularly; true ends the search.
    TaskSearchResult plan(const TaskValues& values, const TaskFacts& goal,
                          const TaskSearchWork& work,
                          const std::function<bool()>& interrupted = {}) const;

private:
    TaskSearch(std::shared_ptr<const Task> task, const std::vector<TaskConstraint>& constraints);

    std::shared_ptr<const Task> task_;
    std::shared_ptr<const ConstrainedTask> compiled_;
};

}  // namespace tmkit
