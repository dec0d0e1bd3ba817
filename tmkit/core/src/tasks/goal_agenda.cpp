#include "goal_agenda.hpp"

#include <algorithm>
#include <map>

namespace tmkit {
namespace {

constexpr std::int64_t goal_weight = 2;     // of the estimate, for the next goal
constexpr std::int64_t greedy_weight = 10;  // for all goals at once
constexpr std::int64_t whole_weight = 2;    // for all goals at once, where there is a plan already
constexpr std::size_t window_sizes[] = {8, 16, 24};
constexpr std::int64_t window_states = 60;  // evaluated for each window, at most

// The goals that cannot be reached while one of them holds come before it.
class GoalOrder {
public:
    GoalOrder(const ConstrainedTask& task, const TaskValues& start, const TaskFacts& goal)
        : task_(task), start_(start), goal_(goal), deletes_(task.task().operators.size()) {
        for (const TaskFacts& group : task.task().mutexes)
            for (const TaskFact& f : group) groups_[f].push_back(&group);
    }

    TaskFacts order() {
        std::vector<std::vector<char>> before;  // [g][h]: h comes before g
        for (const TaskFact& g : goal_) {
            const std::vector<char> reached = reachable_beside(g);
            std::vector<char> row;
            for (const TaskFact& h : goal_) row.push_back(!reached[task_.number(h)]);
            before.push_back(std::move(row));
        }
        std::vector<std::size_t> left(goal_.size());
        for (std::size_t i = 0; i < left.size(); ++i) left[i] = i;
        TaskFacts ordered;
        while (!left.empty()) {
            const auto is_first = [&](std::size_t g) {
                return std::ranges::none_of(left, [&](std::size_t h) { return h != g && before[g][h]; });
            };
            auto next = std::ranges::find_if(left, is_first);
            if (next == left.end()) next = left.begin();  // a circle
            ordered.push_back(goal_[*next]);
            left.erase(next);
        }
        return ordered;
    }

private:
    // The facts that are reachable in the relaxed task by operators that do not delete a fact, from a state in which it
    // holds beside the facts of the start that do not exclude it.
    std::vector<char> reachable_beside(const TaskFact& fact) {
        const bool is_derived = task_.task().layers[fact.variable] >= 0;
        mark_deleting(fact);
        std::vector<char> seen(task_.fact_count());
        std::vector<std::int32_t> open;
        const auto reach = [&](std::int32_t reached) {
            if (!seen[reached]) open.push_back(reached);
            seen[reached] = true;
        };
        reach(task_.number(fact));
        for (std::size_t v = 0; v < start_.size(); ++v) {
            const TaskFact held{static_cast<std::int32_t>(v), start_[v]};
            const bool is_basic = task_.task().layers[v] < 0;
            if (held.value >= 0 && is_basic &&
                (is_derived || (held.variable != fact.variable && !excludes(fact, held))))
                reach(task_.number(held));
        }
        const auto [first, end] = task_.count_facts();
        for (std::int32_t count_fact = first; count_fact < end; ++count_fact) reach(count_fact);

        std::vector<std::int32_t> missing(task_.rules().size());
        for (std::size_t r = 0; r < missing.size(); ++r) missing[r] = task_.needs().length(r);
        const auto apply = [&](std::int32_t rule) {
            const std::int32_t of = task_.rules()[rule].of;
            if (of >= 0 && deletes_[of]) return;
            std::for_each(task_.adds().begin(rule), task_.adds().end(rule), reach);
        };
        std::ranges::for_each(task_.rules_without_needs(), apply);
        while (!open.empty()) {
            const std::int32_t reached = open.back();
            open.pop_back();
            const NumberRows& needed_by = task_.needed_by();
            for (const std::int32_t* r = needed_by.begin(reached); r != needed_by.end(reached); ++r)
                if (--missing[*r] == 0) apply(*r);
        }
        return seen;
    }

    void mark_deleting(const TaskFact& fact) {
        for (std::size_t i = 0; i < deletes_.size(); ++i)
            deletes_[i] = std::ranges::any_of(task_.task().operators[i].effects, [&](const TaskEffect& effect) {
                return effect.conditions.empty() && effect.fact.variable == fact.variable &&
                       effect.fact.value != fact.value;
            });
    }

    bool excludes(const TaskFact& a, const TaskFact& b) const {
        const auto groups = groups_.find(a);
        return groups != groups_.end() && std::ranges::any_of(groups->second, [&](const TaskFacts* group) {
            return std::ranges::find(*group, b) != group->end();
        });
    }

    const ConstrainedTask& task_;
    const TaskValues& start_;
    const TaskFacts& goal_;
    std::vector<char> deletes_;
    std::map<TaskFact, std::vector<const TaskFacts*>> groups_;
};

bool is_interrupted(const std::function<bool()>& interrupted) { return interrupted && interrupted(); }

void add_counts(TaskSearchResult& total, const TaskSearchResult& part) {
    total.expanded += part.expanded;
    total.evaluated += part.evaluated;
}

std::int64_t cost_of(const Task& task, const std::vector<std::int32_t>& operators) {
    std::int64_t cost = 0;
    for (const std::int32_t o : operators) cost += task.operators[o].cost;
    return cost;
}

// The facts without which the operators do not reach the goal. Basic facts are enough: plans are simulated afterwards.
TaskFacts needed_facts(const Task& task, const TaskFacts& goal, const std::int32_t* first, const std::int32_t* last) {
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

TaskSearchResult plan_by_agenda(const ConstrainedTask& task, const TaskValues& start, const TaskFacts& goal,
                                std::int64_t work, const std::function<bool()>& interrupted) {
    TaskSearchResult result;
    std::int64_t unlimited = 0;
    const LazySearchOptions options{.work = work, .weight = goal_weight, .interrupted = &interrupted};
    TaskValues state = start, after;
    TaskFacts kept;
    bool is_reached = true;
    for (const TaskFact& g : GoalOrder(task, start, goal).order()) {
        kept.push_back(g);
        if (hold(kept, state.data())) continue;
        if (is_interrupted(interrupted)) result.status = TaskSearchStatus::interrupted;
        if (result.status == TaskSearchStatus::interrupted) return result;
        const TaskSearchResult next = search_lazily(task, state, kept, options);
        add_counts(result, next);
        is_reached = next.status == TaskSearchStatus::solved;
        if (next.status == TaskSearchStatus::interrupted) result.status = next.status;
        if (!is_reached) break;
        for (const std::int32_t o : next.operators) {
            task.apply(task.task().operators[o], state.data(), after, unlimited);
            std::swap(state, after);
            result.operators.push_back(o);
        }
    }
    if (result.status == TaskSearchStatus::interrupted) return result;
    if (!is_reached) {
        LazySearchOptions greedy = options;
        greedy.weight = greedy_weight;
        const TaskSearchResult whole = search_lazily(task, start, goal, greedy);
        add_counts(result, whole);
        is_reached = whole.status == TaskSearchStatus::solved;
        if (whole.status == TaskSearchStatus::interrupted) result.status = whole.status;
        result.operators = whole.operators;
    }
    if (is_reached) result.status = TaskSearchStatus::solved;
    result.by_agenda = true;
    return result;
}

std::vector<std::int32_t> eliminate_actions(const ConstrainedTask& task, const TaskValues& start, const TaskFacts& goal,
                                            std::vector<std::int32_t> plan, const std::function<bool()>& interrupted) {
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

std::vector<std::int32_t> improve_plan(const ConstrainedTask& task, const TaskValues& start, const TaskFacts& goal,
                                       std::vector<std::int32_t> plan, std::int64_t work,
                                       const std::function<bool()>& interrupted) {
    LazySearchOptions options{.work = work / 2, .weight = whole_weight, .interrupted = &interrupted};
    options.bound = cost_of(task.task(), plan);
    TaskSearchResult whole = search_lazily(task, start, goal, options);
    if (whole.status == TaskSearchStatus::solved) std::swap(plan, whole.operators);
    work -= whole.evaluated * task.rule_count();

    std::vector<TaskValues> states, changed_states;
    leads_to_goal(task, start, goal, plan, states);
    options.weight = 1;
    for (const std::size_t size : window_sizes) {
        const auto stride = static_cast<std::ptrdiff_t>(size / 2);
        for (auto first = std::ptrdiff_t{0}; first < std::ssize(plan) && work > 0; first += stride) {
            if (is_interrupted(interrupted)) return plan;
            const std::ptrdiff_t last = std::min(std::ssize(plan), first + 2 * stride);
            const TaskFacts needed = needed_facts(task.task(), goal, plan.data() + last, plan.data() + plan.size());
            options.bound = cost_of(task.task(), {plan.begin() + first, plan.begin() + last});
            options.work = options.improvement_work = std::min(work, window_states * task.rule_count());
            const TaskSearchResult window = search_lazily(task, states[first], needed, options);
            work -= (1 + window.evaluated) * task.rule_count();
            if (window.status != TaskSearchStatus::solved) continue;
            std::vector<std::int32_t> changed(plan.begin(), plan.begin() + first);
            changed.insert(changed.end(), window.operators.begin(), window.operators.end());
            changed.insert(changed.end(), plan.begin() + last, plan.end());
            if (!leads_to_goal(task, start, goal, changed, changed_states)) continue;
            std::swap(plan, changed);
            std::swap(states, changed_states);
        }
    }
    return plan;
}

}  // namespace tmkit
