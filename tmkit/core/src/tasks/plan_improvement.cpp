#include "plan_improvement.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "lazy_search.hpp"

namespace tmkit {
namespace {

constexpr std::int64_t whole_weight = 2;  // weight of the estimate, with all actions free
constexpr std::int64_t whole_share = 2;  // that search gets this fraction of the work, as a divisor
constexpr std::size_t part_sizes[] = {8, 16, 24, 36};
// Of each search with few free actions, in the first iteration.
constexpr std::int64_t first_part_work = 16'000;
constexpr std::size_t usable_factor = 4;  // largest growth of the usable operators
constexpr std::int64_t work_factor = 4;   // between two iterations

bool is_interrupted(const std::function<bool()>& interrupted) {
    return interrupted && interrupted();
}

std::int64_t cost_of(const Task& task, const std::vector<std::int32_t>& operators) {
    std::int64_t cost = 0;
    for (const std::int32_t o : operators) cost += task.operators[o].cost;
    return cost;
}

// The facts without which the operators do not reach the goal. Basic facts suffice: plans are
// simulated afterwards.
TaskFacts needed_facts(const Task& task, const TaskFacts& goal, const std::int32_t* first,
                       const std::int32_t* last) {
    std::map<std::int32_t, std::int32_t> needed;
    for (const TaskFact& f : goal) needed[f.variable] = f.value;
    while (last != first) {
        const TaskOperator& o = task.operators[*--last];
        for (const TaskEffect& effect : o.effects)
            if (effect.conditions.empty()) needed.erase(effect.fact.variable);
        for (const TaskFact& f : o.needs) needed[f.variable] = f.value;
    }
    TaskFacts facts;
    for (const auto& [variable, value] : needed) facts.push_back({variable, value});
    return facts;
}

// Searches again for some actions of a plan, the free ones, and keeps the others in their order.
// The free actions are a window of the plan, or all that change a few variables, anywhere in it
// (compare Siddiqui and Haslum, JAIR 2015). Usable operators need and change only facts of the
// plans before: few in a large task. Others that are reachable from these facts are usable if they
// are few.
class PlanImprovement {
public:
    PlanImprovement(const ConstrainedTask& task, const TaskValues& start, const TaskFacts& goal,
                    std::int64_t work, const std::function<bool()>& interrupted)
        : task_(task), start_(start), goal_(goal), work_(work), interrupted_(interrupted),
          occurs_(static_cast<std::size_t>(task.fact_count())) {}

    std::vector<std::int32_t> run(const std::vector<std::int32_t>& plan) {
        set_plan(plan);
        part_work_ = work_ / whole_share;
        if (is_cheapest(Free(plan_.size(), true), whole_weight)) return plan_;
        for (part_work_ = first_part_work; is_going_on() && !are_parts_cheapest();
             part_work_ *= work_factor) {}
        return plan_;
    }

private:
    using Free = std::vector<char>;  // for each action of the plan, whether it is free

    // The task in which a range of actions is searched for again.
    struct Part {
        Task task;
        std::vector<std::int32_t> numbers;  // of its operators in the whole task
        std::ptrdiff_t first, last;         // actions, without `last`
        TaskFact end;                       // all fixed actions have been applied
    };

    bool is_going_on() const { return work_ > 0 && !is_interrupted(interrupted_); }
    const TaskOperator& operator_of(std::int32_t number) const {
        return task_.task().operators[number];
    }

    void set_plan(std::vector<std::int32_t> plan) {
        plan_ = std::move(plan);
        leads_to_goal(task_, start_, goal_, plan_, states_);
        changes_.assign(task_.width(), {});
        for (std::size_t i = 0; i < plan_.size(); ++i)
            for (const TaskEffect& effect : operator_of(plan_[i]).effects)
                changes_[effect.fact.variable].push_back(i);
        tried_.clear();
        find_usable();
    }

    void find_usable() {
        for (const TaskValues& state : states_)
            for (std::size_t v = 0; v < state.size(); ++v)
                if (state[v] >= 0)
                    occurs_[task_.number({static_cast<std::int32_t>(v), state[v]})] = true;
        const std::vector<TaskOperator>& operators = task_.task().operators;
        std::vector<char> reached = occurs_;
        const auto is_reached = [&](const TaskFact& f) { return reached[task_.number(f)] != 0; };
        usable_.clear();
        for (std::size_t i = 0; i < operators.size(); ++i)
            if (std::ranges::all_of(operators[i].needs, is_reached) &&
                std::ranges::all_of(operators[i].effects, is_reached, &TaskEffect::fact))
                usable_.push_back(static_cast<std::int32_t>(i));
        work_ -= task_.rule_count();
        // Operators that change other facts, while they are few.
        const std::size_t most = usable_factor * usable_.size();
        while (true) {
            std::vector<std::int32_t> more;
            for (std::size_t i = 0; i < operators.size() && more.size() <= most; ++i)
                if (std::ranges::all_of(operators[i].needs, is_reached))
                    more.push_back(static_cast<std::int32_t>(i));
            if (more.size() > most || more.size() == usable_.size()) return;
            for (const std::int32_t o : more)
                for (const TaskEffect& effect : operators[o].effects)
                    reached[task_.number(effect.fact)] = true;
            std::swap(usable_, more);
            work_ -= task_.rule_count();
        }
    }

    // Return whether an iteration of searches proves that none finds a cheaper plan.
    bool are_parts_cheapest() {
        bool are_cheapest = true;
        for (const std::size_t size : part_sizes) {
            for (std::size_t first = 0; first < plan_.size() && is_going_on(); first += size / 2)
                are_cheapest &= is_part_cheapest(find_window(first, size));
            for (std::size_t v = 0; v < task_.width() && is_going_on(); ++v)
                if (changes_[v].size() > 1) are_cheapest &= is_part_cheapest(find_cluster(v, size));
        }
        return are_cheapest;
    }

    bool is_part_cheapest(const Free& is_free) {
        const std::int64_t tried = tried_[is_free];  // with this work
        if (tried >= part_work_) return tried == infinite_cost;
        tried_[is_free] = part_work_;
        const bool is_proved = is_cheapest(is_free, 1);
        if (is_proved) tried_[is_free] = infinite_cost;
        return is_proved;
    }

    Free find_window(std::size_t first, std::size_t size) const {
        Free is_free(plan_.size());
        for (std::size_t i = first; i < std::min(first + size, plan_.size()); ++i)
            is_free[i] = true;
        return is_free;
    }

    // The actions that change a variable, then those that change another variable of these, up to
    // the given number.
    Free find_cluster(std::size_t variable, std::size_t size) const {
        Free is_free(plan_.size());
        std::vector<std::int32_t> variables{static_cast<std::int32_t>(variable)};
        std::set<std::int32_t> seen{variables.front()};
        const auto add_variable = [&](std::int32_t v) {
            if (seen.insert(v).second) variables.push_back(v);
        };
        std::size_t count = 0;
        for (std::size_t next = 0; next < variables.size(); ++next) {
            const std::vector<std::size_t>& actions = changes_[variables[next]];
            const std::size_t more =
                std::ranges::count_if(actions, [&](std::size_t i) { return !is_free[i]; });
            if (count + more > size) continue;
            count += more;
            for (const std::size_t i : actions) {
                if (is_free[i]) continue;
                is_free[i] = true;
                for (const TaskFact& f : operator_of(plan_[i]).needs) add_variable(f.variable);
                for (const TaskEffect& effect : operator_of(plan_[i]).effects)
                    add_variable(effect.fact.variable);
            }
        }
        return is_free;
    }

    // An additional variable counts the fixed actions.
    Part make_part(const Free& is_free) const {
        const Task& of = task_.task();
        const auto counter = static_cast<std::int32_t>(of.domains.size());
        Part part{{of.domains, of.layers, of.defaults, {}, {}, of.axioms}, {}, 0, 0, {counter, 0}};
        part.first = std::ranges::find(is_free, true) - is_free.begin();
        part.last = is_free.rend() - std::find(is_free.rbegin(), is_free.rend(), true);
        const auto add = [&](std::int32_t number) -> TaskOperator& {
            part.numbers.push_back(number);
            return part.task.operators.emplace_back(of.operators[number]);
        };
        std::set<std::int32_t> changed;
        for (auto i = part.first; i < part.last; ++i) {
            if (is_free[i]) {
                for (const TaskEffect& effect : operator_of(plan_[i]).effects)
                    changed.insert(effect.fact.variable);
                continue;
            }
            TaskOperator& stays = add(plan_[i]);
            stays.needs.push_back(part.end);
            ++part.end.value;
            stays.effects.push_back({{}, part.end});
        }
        const auto is_changed = [&](const TaskEffect& effect) {
            return changed.contains(effect.fact.variable) || changes_[effect.fact.variable].empty();
        };
        for (const std::int32_t number : usable_)
            if (std::ranges::all_of(of.operators[number].effects, is_changed)) add(number);
        part.task.domains.push_back(part.end.value + 1);
        part.task.layers.push_back(-1);
        part.task.defaults.push_back(0);
        return part;
    }

    // Return whether it is proved that there is no cheaper plan; a cheaper one replaces the plan.
    bool is_cheapest(const Free& is_free, std::int64_t weight) {
        const Part part = make_part(is_free);
        if (part.first >= part.last) return true;
        const auto first = plan_.begin() + part.first, last = plan_.begin() + part.last;
        const ConstrainedTask part_task(part.task, task_.constraints_of(part.numbers));
        TaskValues start = states_[part.first];
        start.push_back(0);
        TaskFacts goal_facts = needed_facts(task_.task(), goal_, plan_.data() + part.last,
                                            plan_.data() + plan_.size());
        goal_facts.push_back(part.end);
        const std::int64_t work = std::min(work_, part_work_);
        const TaskSearchResult result =
            search_lazily(part_task, start, goal_facts,
                          {.work = work,
                           .improvement_work = work,
                           .weight = weight,
                           .bound = cost_of(task_.task(), {first, last}),
                           .interrupted = &interrupted_});
        work_ -= (1 + result.evaluated) * part_task.rule_count() + std::ssize(start) +
                 std::ssize(usable_);
        if (result.status != TaskSearchStatus::solved)
            return result.status == TaskSearchStatus::unsolvable;
        std::vector<std::int32_t> changed(plan_.begin(), first);
        for (const std::int32_t o : result.operators) changed.push_back(part.numbers[o]);
        changed.insert(changed.end(), last, plan_.end());
        std::vector<TaskValues> states;
        // Derived facts that the other actions need may no longer hold.
        if (!leads_to_goal(task_, start_, goal_, changed, states)) return false;
        set_plan(std::move(changed));
        return false;
    }

    const ConstrainedTask& task_;
    const TaskValues& start_;
    const TaskFacts& goal_;
    std::int64_t work_, part_work_ = 0;
    const std::function<bool()>& interrupted_;
    std::vector<char> occurs_;  // for each fact, whether it holds in a state of a plan
    std::vector<std::int32_t> usable_, plan_;
    std::vector<TaskValues> states_;
    std::vector<std::vector<std::size_t>> changes_;  // the actions that change each variable
    std::map<Free, std::int64_t> tried_;
};

}  // namespace

bool leads_to_goal(const ConstrainedTask& task, const TaskValues& start, const TaskFacts& goal,
                   const std::vector<std::int32_t>& operators, std::vector<TaskValues>& states) {
    std::int64_t work = 0;
    states.assign(1, start);
    for (const std::int32_t o : operators) {
        if (!task.is_applicable(o, states.back().data())) return false;
        TaskValues after;
        task.apply(task.task().operators[o], states.back().data(), after, work);
        states.push_back(std::move(after));
    }
    return hold(goal, states.back().data());
}

std::vector<std::int32_t> eliminate_actions(const ConstrainedTask& task, const TaskValues& start,
                                            const TaskFacts& goal, std::vector<std::int32_t> plan,
                                            const std::function<bool()>& interrupted) {
    const Task& of = task.task();
    std::int64_t work = 0;
    TaskValues state = start, after, other;
    std::vector<std::int32_t> kept;
    for (bool has_changed = true; has_changed && !is_interrupted(interrupted);) {
        has_changed = false;
        state = start;
        for (std::size_t i = 0; i < plan.size();) {
            // Everything after operator i that applies without it.
            kept.assign(plan.begin(), plan.begin() + static_cast<std::ptrdiff_t>(i));
            other = state;
            for (std::size_t k = i + 1; k < plan.size(); ++k) {
                if (!task.is_applicable(plan[k], other.data())) continue;
                task.apply(of.operators[plan[k]], other.data(), after, work);
                std::swap(other, after);
                kept.push_back(plan[k]);
            }
            if (hold(goal, other.data())) {
                std::swap(plan, kept);
                has_changed = true;
                continue;
            }
            task.apply(of.operators[plan[i]], state.data(), after, work);
            std::swap(state, after);
            ++i;
        }
    }
    return plan;
}

std::vector<std::int32_t> improve_plan(const ConstrainedTask& task, const TaskValues& start,
                                       const TaskFacts& goal, const std::vector<std::int32_t>& plan,
                                       std::int64_t work,
                                       const std::function<bool()>& interrupted) {
    return PlanImprovement(task, start, goal, work, interrupted).run(plan);
}

}  // namespace tmkit
