#include "constrained_task.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>

namespace tmkit {

NumberRows NumberRows::inverse(std::size_t count) const {
    NumberRows inverse;
    inverse.numbers_.resize(numbers_.size());
    inverse.ends_.assign(count + 1, 0);
    for (const std::int32_t number : numbers_) ++inverse.ends_[number + 1];
    for (std::size_t i = 0; i < count; ++i) inverse.ends_[i + 1] += inverse.ends_[i];
    std::vector<std::int32_t> next(inverse.ends_.begin(), inverse.ends_.end() - 1);
    for (std::size_t row = 0; row < size(); ++row)
        for (const std::int32_t* number = begin(row); number != end(row); ++number)
            inverse.numbers_[next[*number]++] = static_cast<std::int32_t>(row);
    return inverse;
}

std::int32_t ConstrainedTask::Counter::count(const std::int32_t* state) const {
    return static_cast<std::int32_t>(std::ranges::count_if(
        facts, [&](const TaskFact& f) { return state[f.variable] == f.value; }));
}

ConstrainedTask::ConstrainedTask(const Task& task, const std::vector<TaskConstraint>& constraints)
    : task_(task), constraints_(constraints) {
    for (const std::int32_t size : task.domains) {
        offsets_.push_back(fact_count_);
        fact_count_ += size;
    }
    for (std::size_t v = 0; v < task.layers.size(); ++v)
        if (task.layers[v] >= 0) derived_.push_back(static_cast<std::int32_t>(v));
    for (const TaskEffect& axiom : task.axioms) {
        const auto layer = static_cast<std::size_t>(task.layers[axiom.fact.variable]);
        if (axioms_.size() <= layer) axioms_.resize(layer + 1);
        axioms_[layer].push_back(&axiom);
    }
    first_count_fact_ = fact_count_;
    add_counters(constraints);
    end_of_count_facts_ = fact_count_;

    for (std::size_t i = 0; i < task.operators.size(); ++i)
        add_operator(static_cast<std::int32_t>(i));
    for (const TaskEffect& axiom : task.axioms) {
        add_rule(numbers(axiom.conditions), {number(axiom.fact)}, -1, 0);
        ++rule_count_;
    }
    for (const std::int32_t v : derived_) add_negation(v);
    needed_by_ = needs_.inverse(fact_count_);
}

std::vector<TaskConstraint> ConstrainedTask::constraints_of(
    const std::vector<std::int32_t>& numbers) const {
    if (constraints_.empty()) return {};
    std::vector<TaskConstraint> result;
    std::vector<char> is_bound(task_.operators.size());
    for (const TaskConstraint& constraint : constraints_) {
        for (const std::int32_t o : constraint.operators) is_bound[o] = true;
        result.push_back({constraint.facts, constraint.limit, {}});
        for (std::size_t i = 0; i < numbers.size(); ++i)
            if (is_bound[numbers[i]])
                result.back().operators.push_back(static_cast<std::int32_t>(i));
        for (const std::int32_t o : constraint.operators) is_bound[o] = false;
    }
    return result;
}

void ConstrainedTask::add_counters(const std::vector<TaskConstraint>& constraints) {
    if (constraints.empty()) return;
    limits_.resize(task_.operators.size());
    is_forbidden_.resize(task_.operators.size());
    std::map<TaskFacts, std::int32_t> known;
    for (const TaskConstraint& constraint : constraints) {
        if (constraint.limit < 0) {
            for (const std::int32_t o : constraint.operators) is_forbidden_[o] = true;
            continue;
        }
        const std::set<TaskFact> unique(constraint.facts.begin(), constraint.facts.end());
        std::set<std::int32_t> variables;
        for (const TaskFact& f : unique) variables.insert(f.variable);
        const auto top = static_cast<std::int32_t>(variables.size());
        if (constraint.limit >= top) continue;  // always satisfied
        const auto counter = static_cast<std::int32_t>(counters_.size());
        const auto [result, is_new] =
            known.try_emplace(TaskFacts(unique.begin(), unique.end()), counter);
        if (is_new) counters_.push_back({result->first, top, top});
        Counter& shared = counters_[result->second];
        shared.floor = std::min(shared.floor, constraint.limit);
        for (const std::int32_t o : constraint.operators)
            limits_[o].push_back({result->second, constraint.limit});
    }
    for (Counter& counter : counters_) {
        counter.first_fact = fact_count_;
        fact_count_ += counter.top - counter.floor;
    }
}

std::vector<std::int32_t> ConstrainedTask::numbers(const TaskFacts& facts) const {
    std::vector<std::int32_t> result;
    for (const TaskFact& f : facts) result.push_back(number(f));
    return result;
}

void ConstrainedTask::add_operator(std::int32_t index) {
    const TaskOperator& o = task_.operators[index];
    rule_count_ += static_cast<std::int64_t>(o.effects.size());
    if (!is_forbidden_.empty() && is_forbidden_[index]) return;
    std::vector<std::int32_t> needs = numbers(o.needs);
    if (!limits_.empty())
        for (const auto& [counter, limit] : limits_[index])
            needs.push_back(counters_[counter].first_fact + limit - counters_[counter].floor);

    std::vector<std::int32_t> added;
    for (const TaskEffect& effect : o.effects)
        if (effect.conditions.empty()) added.push_back(number(effect.fact));
    add_rule(needs, added, index, o.cost);
    for (const TaskEffect& effect : o.effects) {
        if (effect.conditions.empty()) continue;
        std::vector<std::int32_t> all = numbers(effect.conditions);
        all.insert(all.end(), needs.begin(), needs.end());
        add_rule(std::move(all), {number(effect.fact)}, index, o.cost);
    }

    raise_ceilings(index);
    for (const Counter& counter : counters_) {
        const Decrease decrease = decrease_of(counter, o);
        if (decrease.most <= 0) continue;
        for (std::int32_t k = counter.floor + 1; k <= counter.top; ++k) {
            std::vector<std::int32_t> all = needs;
            if (k < counter.top) all.push_back(counter.first_fact + k - counter.floor);
            const std::int32_t remaining =
                counter.first_fact + std::max(0, k - decrease.most - counter.floor);
            if (decrease.lost.empty()) add_rule(all, {remaining}, index, o.cost);
            for (const TaskFact& f : decrease.lost) {
                std::vector<std::int32_t> with_fact = all;
                with_fact.push_back(number(f));
                add_rule(std::move(with_fact), {remaining}, index, o.cost);
            }
        }
    }
}

// An upper bound of the number of facts of the counter that an operator makes false, less those
// that it makes true.
ConstrainedTask::Decrease ConstrainedTask::decrease_of(const Counter& counter,
                                                       const TaskOperator& o) {
    const auto is_counted = [&](const TaskFact& f) {
        return std::ranges::binary_search(counter.facts, f);
    };
    std::map<std::int32_t, std::int32_t> changes;  // the least change by each variable
    Decrease decrease;
    for (const TaskEffect& effect : o.effects) {
        const std::int32_t v = effect.fact.variable;
        const auto counted = std::ranges::equal_range(counter.facts, v, {}, &TaskFact::variable);
        if (counted.empty()) continue;
        const auto need = std::ranges::find(o.needs, v, &TaskFact::variable);
        const bool was_counted = need == o.needs.end() || is_counted(*need);
        std::int32_t change = is_counted(effect.fact) - was_counted;
        if (!effect.conditions.empty()) change = std::min(change, 0);
        std::int32_t& least = changes.try_emplace(v, change).first->second;
        least = std::min(least, change);
        if (change >= 0) continue;
        for (const TaskFact& f : counted)
            if (need == o.needs.end() || *need == f) decrease.lost.push_back(f);
    }
    for (const auto& [variable, change] : changes) decrease.most -= change;
    return decrease;
}

// An upper bound of the number of facts of the counter that an operator makes true.
std::int32_t ConstrainedTask::greatest_increase(const Counter& counter, const TaskOperator& o) {
    std::set<std::int32_t> variables;
    for (const TaskEffect& effect : o.effects)
        if (std::ranges::binary_search(counter.facts, effect.fact))
            variables.insert(effect.fact.variable);
    return static_cast<std::int32_t>(variables.size());
}

void ConstrainedTask::raise_ceilings(std::int32_t number) {
    for (std::size_t c = 0; c < counters_.size(); ++c) {
        Counter& counter = counters_[c];
        const std::int32_t increase = greatest_increase(counter, task_.operators[number]);
        std::int32_t most = counter.top;
        for (const Limit& limit : limits_[number])
            if (limit.counter == static_cast<std::int32_t>(c))
                most = std::min(most, limit.limit + increase);
        if (increase > 0) counter.ceiling = std::max(counter.ceiling, most);
    }
}

// A derived variable keeps its default while each axiom for it is broken by one of its conditions.
void ConstrainedTask::add_negation(std::int32_t v) {
    std::vector<std::int32_t> broken;
    bool recursive = false;
    const auto is_derived_here = [&](const TaskFact& f) {
        return task_.layers[f.variable] >= task_.layers[v];
    };
    for (const TaskEffect& axiom : task_.axioms)
        recursive |=
            axiom.fact.variable == v && std::ranges::any_of(axiom.conditions, is_derived_here);
    for (const TaskEffect& axiom : task_.axioms) {
        if (axiom.fact.variable != v || recursive) continue;
        broken.push_back(fact_count_++);  // a fact of the relaxation alone
        for (const TaskFact& f : axiom.conditions)
            for (std::int32_t other_value = 0; other_value < task_.domains[f.variable];
                 ++other_value)
                if (other_value != f.value) {
                    add_rule({number({f.variable, other_value})}, {broken.back()}, -1, 0);
                    ++rule_count_;
                }
    }
    add_rule(std::move(broken), {number({v, task_.defaults[v]})}, -1, 0);
    ++rule_count_;
}

// A duplicate need counts once.
void ConstrainedTask::add_rule(std::vector<std::int32_t> needs,
                               const std::vector<std::int32_t>& added, std::int32_t of,
                               std::int64_t cost) {
    if (added.empty()) return;
    std::ranges::sort(needs);
    needs.erase(std::unique(needs.begin(), needs.end()), needs.end());
    if (needs.empty()) rules_without_needs_.push_back(static_cast<std::int32_t>(rules_.size()));
    rules_.push_back({cost, of});
    needs_.add(needs);
    adds_.add(added);
}

void ConstrainedTask::derive(std::int32_t* state, std::int64_t& work) const {
    for (const std::int32_t v : derived_) state[v] = task_.defaults[v];
    for (const std::vector<const TaskEffect*>& layer : axioms_)
        for (bool changed = true; changed;) {
            changed = false;
            work -= static_cast<std::int64_t>(layer.size());
            for (const TaskEffect* axiom : layer)
                if (state[axiom->fact.variable] != axiom->fact.value &&
                    hold(axiom->conditions, state)) {
                    state[axiom->fact.variable] = axiom->fact.value;
                    changed = true;
                }
        }
}

void ConstrainedTask::apply(const TaskOperator& o, const std::int32_t* before, TaskValues& after,
                            std::int64_t& work) const {
    after.assign(before, before + width());
    for (const TaskEffect& effect : o.effects)
        if (hold(effect.conditions, before)) after[effect.fact.variable] = effect.fact.value;
    derive(after.data(), work);
}

bool ConstrainedTask::is_allowed(std::int32_t number, const std::int32_t* state) const {
    if (limits_.empty()) return true;
    return !is_forbidden_[number] && std::ranges::all_of(limits_[number], [&](const Limit& limit) {
        return counters_[limit.counter].count(state) <= limit.limit;
    });
}

bool ConstrainedTask::exceeds_limits(const TaskFacts& goal, const std::int32_t* start) const {
    return std::ranges::any_of(counters_, [&](const Counter& counter) {
        const auto is_counted = [&](const TaskFact& f) {
            return std::ranges::binary_search(counter.facts, f);
        };
        std::set<TaskFact> wanted;
        std::ranges::copy_if(goal, std::inserter(wanted, wanted.end()), is_counted);
        return std::ssize(wanted) > std::max(counter.ceiling, counter.count(start));
    });
}

void ConstrainedTask::facts(const std::int32_t* state, std::vector<std::int32_t>& result) const {
    result.clear();
    for (std::size_t v = 0; v < width(); ++v)
        if (state[v] >= 0) result.push_back(offsets_[v] + state[v]);
    for (const Counter& counter : counters_)
        for (std::int32_t k = std::max(counter.floor, counter.count(state)); k < counter.top; ++k)
            result.push_back(counter.first_fact + k - counter.floor);
}

RelaxedPlanner::RelaxedPlanner(const ConstrainedTask& task, const TaskFacts& goal)
    : task_(task), costs_(task.fact_count(), infinite_cost), sums_(task.rules().size()),
      supporters_(task.fact_count(), -1), missing_(task.rules().size()),
      is_goal_(task.fact_count()), is_seen_(task.fact_count()) {
    for (const TaskFact& f : goal) goal_.push_back(task.number(f));
    for (const std::int32_t fact : goal_) is_goal_[fact] = true;
    for (std::size_t r = 0; r < missing_.size(); ++r) {
        missing_[r] = task.needs().length(r);
        sums_[r] = task.rules()[r].cost;
    }
}

std::int64_t RelaxedPlanner::evaluate(const std::int32_t* state,
                                      std::vector<std::int32_t>& preferred,
                                      std::vector<std::int32_t>& applicable) {
    preferred.clear();
    applicable.clear();
    reach(state);
    const Task& task = task_.task();
    std::int64_t cost = 0;
    if (std::ranges::any_of(goal_,
                            [&](std::int32_t fact) { return costs_[fact] == infinite_cost; })) {
        cost = infinite_cost;
    } else {
        open_ = goal_;
        used_.clear();
        while (!open_.empty()) {
            const std::int32_t fact = open_.back();
            open_.pop_back();
            if (is_seen_[fact] || supporters_[fact] < 0) continue;
            is_seen_[fact] = true;
            seen_.push_back(fact);
            const std::int32_t rule = supporters_[fact];
            open_.insert(open_.end(), task_.needs().begin(rule), task_.needs().end(rule));
            if (task_.rules()[rule].of >= 0) used_.push_back(task_.rules()[rule].of);
        }
        std::ranges::sort(used_);
        used_.erase(std::unique(used_.begin(), used_.end()), used_.end());
        for (const std::int32_t i : used_) {
            cost += task.operators[i].cost;
            if (task_.is_applicable(i, state)) preferred.push_back(i);
        }
        std::ranges::sort(candidates_);
        candidates_.erase(std::unique(candidates_.begin(), candidates_.end()), candidates_.end());
        for (const std::int32_t i : candidates_)
            if (task_.is_applicable(i, state)) applicable.push_back(i);
    }
    reset();
    return cost;
}

// The other arrays have their initial values.
void RelaxedPlanner::reset() {
    for (const std::int32_t fact : reached_) {
        costs_[fact] = infinite_cost;
        supporters_[fact] = -1;
    }
    for (const std::int32_t rule : changed_rules_) {
        missing_[rule] = task_.needs().length(rule);
        sums_[rule] = task_.rules()[rule].cost;
    }
    for (const std::int32_t fact : seen_) is_seen_[fact] = false;
    reached_.clear();
    changed_rules_.clear();
    seen_.clear();
    candidates_.clear();
    queue_.clear();
}

// End when all goals, and all facts without cost, are reached at their least costs.
void RelaxedPlanner::reach(const std::int32_t* state) {
    auto goals_left = static_cast<std::int64_t>(std::ranges::count(is_goal_, true));
    task_.facts(state, held_);
    for (const std::int32_t fact : held_) push(fact, 0, -1);
    for (const std::int32_t rule : task_.rules_without_needs()) reach_rule(rule);
    while (!queue_.empty()) {
        std::ranges::pop_heap(queue_, std::greater<>());
        const auto [cost, fact] = queue_.back();
        queue_.pop_back();
        if (cost > costs_[fact]) continue;
        if (cost > 0 && goals_left == 0) break;
        goals_left -= is_goal_[fact];
        const NumberRows& needed_by = task_.needed_by();
        for (const std::int32_t* r = needed_by.begin(fact); r != needed_by.end(fact); ++r) {
            if (missing_[*r] == task_.needs().length(*r)) changed_rules_.push_back(*r);
            sums_[*r] = std::min(infinite_cost - 1, sums_[*r] + cost);
            if (--missing_[*r] == 0) reach_rule(*r);
        }
    }
}

void RelaxedPlanner::reach_rule(std::int32_t rule) {
    const ConstrainedTask::Rule& reached = task_.rules()[rule];
    if (reached.of >= 0 && sums_[rule] == reached.cost) candidates_.push_back(reached.of);
    for (const std::int32_t* fact = task_.adds().begin(rule); fact != task_.adds().end(rule);
         ++fact)
        push(*fact, sums_[rule], rule);
}

void RelaxedPlanner::push(std::int32_t fact, std::int64_t cost, std::int32_t supporter) {
    if (cost >= costs_[fact]) return;
    if (costs_[fact] == infinite_cost) reached_.push_back(fact);
    costs_[fact] = cost;
    supporters_[fact] = supporter;
    queue_.emplace_back(cost, fact);
    std::ranges::push_heap(queue_, std::greater<>());
}

}  // namespace tmkit
