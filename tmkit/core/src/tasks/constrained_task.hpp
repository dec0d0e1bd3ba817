// Compiled task with constraints: its states, and its relaxation, the task without delete effects.
#pragma once

#include <limits>
#include <utility>
#include <vector>

#include "tmkit/task_search.hpp"

namespace tmkit {

inline constexpr std::int64_t infinite_cost = std::numeric_limits<std::int64_t>::max() / 4;

inline bool hold(const TaskFacts& facts, const std::int32_t* state) {
    for (const TaskFact& f : facts)
        if (state[f.variable] != f.value) return false;
    return true;
}

// Rows of numbers in one array.
class NumberRows {
public:
    void add(const std::vector<std::int32_t>& row) {
        numbers_.insert(numbers_.end(), row.begin(), row.end());
        ends_.push_back(static_cast<std::int32_t>(numbers_.size()));
    }
    std::size_t size() const { return ends_.size() - 1; }
    const std::int32_t* begin(std::size_t row) const { return numbers_.data() + ends_[row]; }
    const std::int32_t* end(std::size_t row) const { return numbers_.data() + ends_[row + 1]; }
    std::int32_t length(std::size_t row) const { return ends_[row + 1] - ends_[row]; }
    // For each number below `count`, the rows that contain it, in order.
    NumberRows inverse(std::size_t count) const;

private:
    std::vector<std::int32_t> numbers_, ends_{0};
};

class ConstrainedTask {
public:
    // The task must outlive this object.
    ConstrainedTask(const Task& task, const std::vector<TaskConstraint>& constraints);

    const Task& task() const { return task_; }
    // The constraints of a task whose operators are those of this task with these numbers.
    std::vector<TaskConstraint> constraints_of(const std::vector<std::int32_t>& numbers) const;
    std::size_t width() const { return task_.domains.size(); }
    // Operators' effects and axioms.
    std::int64_t rule_count() const { return rule_count_; }

    void derive(std::int32_t* state, std::int64_t& work) const;
    // `after` is the state after an operator that applies in `before`.
    void apply(const TaskOperator& o, const std::int32_t* before, TaskValues& after,
               std::int64_t& work) const;
    bool is_applicable(std::int32_t number, const std::int32_t* state) const {
        return hold(task_.operators[number].needs, state) && is_allowed(number, state);
    }
    bool is_allowed(std::int32_t number, const std::int32_t* state) const;
    // Return whether the goal has more facts of a counter than can hold, since each operator that
    // adds any has a limit.
    bool exceeds_limits(const TaskFacts& goal, const std::int32_t* start) const;

    // Facts of the relaxation: those of the task, then "at most k of the facts of a counter hold"
    // for each counter and k, then facts about axioms.
    std::int32_t number(const TaskFact& f) const { return offsets_[f.variable] + f.value; }
    std::int32_t fact_count() const { return fact_count_; }
    // Collect the facts that hold in a state, in order.
    void facts(const std::int32_t* state, std::vector<std::int32_t>& result) const;
    // Facts "at most k", for all counters and k.
    std::pair<std::int32_t, std::int32_t> count_facts() const {
        return {first_count_fact_, end_of_count_facts_};
    }

    struct Rule {
        std::int64_t cost;
        std::int32_t of;  // the operator, -1 for an axiom
    };
    const std::vector<Rule>& rules() const { return rules_; }
    const NumberRows& needs() const { return needs_; }
    const NumberRows& adds() const { return adds_; }
    const NumberRows& needed_by() const { return needed_by_; }
    const std::vector<std::int32_t>& rules_without_needs() const { return rules_without_needs_; }

private:
    struct Counter {
        TaskFacts facts;  // sorted
        // The least limit, and the largest number of the facts that may hold.
        std::int32_t floor = 0, top = 0;
        std::int32_t first_fact = 0;  // "at most `floor`"; then one more each, below `top`
        std::int32_t ceiling = 0;     // largest number that hold after an operator that adds any
        std::int32_t count(const std::int32_t* state) const;
    };
    struct Limit {
        std::int32_t counter, limit;
    };

    void add_counters(const std::vector<TaskConstraint>& constraints);
    void add_operator(std::int32_t number);
    void add_negation(std::int32_t variable);
    void add_rule(std::vector<std::int32_t> needs, const std::vector<std::int32_t>& added,
                  std::int32_t of, std::int64_t cost);
    std::vector<std::int32_t> numbers(const TaskFacts& facts) const;
    struct Decrease {
        std::int32_t most = 0;
        TaskFacts lost;  // one of these held before; empty if unknown
    };
    static Decrease decrease_of(const Counter& counter, const TaskOperator& o);
    static std::int32_t greatest_increase(const Counter& counter, const TaskOperator& o);
    void raise_ceilings(std::int32_t number);

    const Task& task_;
    std::vector<TaskConstraint> constraints_;
    std::vector<std::vector<const TaskEffect*>> axioms_;  // by layer
    std::vector<std::int32_t> derived_;
    std::vector<Counter> counters_;
    std::vector<std::vector<Limit>> limits_;  // of each operator; empty without constraints
    std::vector<char> is_forbidden_;          // for each operator; empty without constraints
    std::vector<std::int32_t> offsets_;
    std::int32_t fact_count_ = 0, first_count_fact_ = 0, end_of_count_facts_ = 0;
    std::int64_t rule_count_ = 0;
    std::vector<Rule> rules_;
    NumberRows needs_, adds_, needed_by_;
    std::vector<std::int32_t> rules_without_needs_;
};

// Estimates of costs by relaxed plans. Not shared by threads.
class RelaxedPlanner {
public:
    RelaxedPlanner(const ConstrainedTask& task, const TaskFacts& goal);

    // Return the cost of a relaxed plan, infinite if there is none, with its applicable operators,
    // and all applicable operators, both in order.
    std::int64_t evaluate(const std::int32_t* state, std::vector<std::int32_t>& preferred,
                          std::vector<std::int32_t>& applicable);
    // The operators of the last relaxed plan.
    const std::vector<std::int32_t>& used() const { return used_; }

private:
    void reset();
    void reach(const std::int32_t* state);
    void reach_rule(std::int32_t rule);
    void push(std::int32_t fact, std::int64_t cost, std::int32_t supporter);

    const ConstrainedTask& task_;
    std::vector<std::int32_t> goal_;
    std::vector<std::int64_t> costs_, sums_;
    std::vector<std::int32_t> supporters_, missing_, held_, reached_, changed_rules_, open_, used_,
        candidates_;
    std::vector<char> is_goal_, is_seen_;
    std::vector<std::int32_t> seen_;
    std::vector<std::pair<std::int64_t, std::int32_t>> queue_;
};

}  // namespace tmkit
