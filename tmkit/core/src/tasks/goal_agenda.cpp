#include "goal_agenda.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>

namespace tmkit {
namespace {

constexpr std::int64_t goal_weight = 2;     // of the estimate, for the next goal
constexpr std::int64_t greedy_weight = 10;  // for all goals at once
constexpr std::int64_t whole_weight = 2;    // for all goals at once, where there is a plan already
constexpr std::size_t window_sizes[] = {8, 16, 24};
constexpr std::int64_t window_states = 60;  // evaluated for each window, at most

// Reasonable orders of goals (Koehler and Hoffmann, JAIR 2000): a goal comes before those beside which it cannot be
// reached without deleting them.
class GoalOrder {
public:
    GoalOrder(const ConstrainedTask& task, const TaskFacts& goal)
        : task_(task), goal_(goal), deletes_(task.task().operators.size()) {
        for (const TaskFacts& group : task.task().mutexes)
            for (const TaskFact& f : group) groups_[f].push_back(&group);
        for (const TaskFact& g : goal_) before_.push_back(find_before(g));
    }

    // Whether goal h comes before goal g.
    bool is_before(std::size_t h, std::size_t g) const { return before_[g][h] != 0; }

private:
    std::vector<char> find_before(const TaskFact& goal) {
        const std::vector<char> reached = find_reachable_beside(goal);
        std::vector<char> before;
        for (const TaskFact& other : goal_) before.push_back(!reached[task_.number(other)]);
        return before;
    }

    // The facts that operators which do not delete a fact can add, where all facts that it does not exclude may hold.
    std::vector<char> find_reachable_beside(const TaskFact& fact) {
        mark_deleting(fact);
        std::vector<char> seen(task_.fact_count(), true), added(task_.fact_count());
        for (std::int32_t value = 0; value < task_.task().domains[fact.variable]; ++value)
            seen[task_.number({fact.variable, value})] = value == fact.value;
        const auto groups = groups_.find(fact);
        if (groups != groups_.end())
            for (const TaskFacts* group : groups->second)
                for (const TaskFact& f : *group) seen[task_.number(f)] = f == fact;
        added[task_.number(fact)] = true;

        std::vector<std::int32_t> missing(task_.rules().size()), open;
        const auto apply = [&](std::int32_t rule) {
            const std::int32_t of = task_.rules()[rule].of;
            if (of >= 0 && deletes_[of]) return;
            for (const std::int32_t* f = task_.adds().begin(rule); f != task_.adds().end(rule); ++f) {
                added[*f] = true;
                if (!seen[*f]) open.push_back(*f);
                seen[*f] = true;
            }
        };
        for (std::size_t r = 0; r < missing.size(); ++r) {
            const auto is_missing = [&](std::int32_t f) { return !seen[f]; };
            missing[r] =
                static_cast<std::int32_t>(std::count_if(task_.needs().begin(r), task_.needs().end(r), is_missing));
        }
        const std::vector<std::int32_t> at_first = missing;
        for (std::size_t r = 0; r < missing.size(); ++r)
            if (at_first[r] == 0) apply(static_cast<std::int32_t>(r));
        while (!open.empty()) {
            const std::int32_t reached = open.back();
            open.pop_back();
            const NumberRows& needed_by = task_.needed_by();
            for (const std::int32_t* r = needed_by.begin(reached); r != needed_by.end(reached); ++r)
                if (--missing[*r] == 0) apply(*r);
        }
        return added;
    }

    void mark_deleting(const TaskFact& fact) {
        for (std::size_t i = 0; i < deletes_.size(); ++i)
            deletes_[i] = std::ranges::any_of(task_.task().operators[i].effects, [&](const TaskEffect& effect) {
                return effect.conditions.empty() && effect.fact.variable == fact.variable &&
                       effect.fact.value != fact.value;
            });
    }

    const ConstrainedTask& task_;
    const TaskFacts& goal_;
    std::vector<char> deletes_;
    std::map<TaskFact, std::vector<const TaskFacts*>> groups_;
    std::vector<std::vector<char>> before_;
};

// The next goal of an agenda.
class GoalChoice {
public:
    GoalChoice(const ConstrainedTask& task, const TaskFacts& goal)
        : task_(task), goal_(goal), order_(task, goal), left_(goal.size()) {
        for (std::size_t g = 0; g < left_.size(); ++g) left_[g] = g;
    }

    // Of the goals that can be next, that for which the fewest variables of other goals change, and then the cheapest.
    std::optional<TaskFact> choose(const TaskValues& state, const TaskFacts& kept) {
        if (left_.empty()) return std::nullopt;
        std::vector<std::size_t> ready;
        std::ranges::copy_if(left_, std::back_inserter(ready), [&](std::size_t g) { return is_ready(g); });
        if (ready.empty()) ready = left_;  // a circle
        std::size_t next = ready.front();
        std::pair<std::int64_t, std::int64_t> least{infinite_cost, infinite_cost};
        for (const std::size_t g : ready) {
            TaskFacts wanted = kept;
            wanted.push_back(goal_[g]);
            RelaxedPlanner relaxation(task_, wanted);
            const std::int64_t cost = relaxation.evaluate(state.data(), preferred_, applicable_);
            if (cost == infinite_cost) continue;
            const std::pair price{count_disturbed(g, relaxation.used()), cost};
            if (price < least) next = g;
            least = std::min(least, price);
        }
        std::erase(left_, next);
        return goal_[next];
    }

private:
    bool is_ready(std::size_t g) const {
        return std::ranges::none_of(left_, [&](std::size_t h) { return h != g && order_.is_before(h, g); });
    }

    std::int64_t count_disturbed(std::size_t g, const std::vector<std::int32_t>& operators) const {
        std::set<std::int32_t> changed;
        for (const std::int32_t o : operators)
            for (const TaskEffect& effect : task_.task().operators[o].effects) changed.insert(effect.fact.variable);
        return std::ranges::count_if(left_, [&](std::size_t h) {
            return h != g && !order_.is_before(g, h) && changed.contains(goal_[h].variable);
        });
    }

    const ConstrainedTask& task_;
    const TaskFacts& goal_;
    GoalOrder order_;
    std::vector<std::size_t> left_;
    std::vector<std::int32_t> preferred_, applicable_;
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
    GoalChoice choice(task, goal);
    while (is_reached) {
        const std::optional<TaskFact> g = choice.choose(state, kept);
        if (!g) break;
        kept.push_back(*g);
        if (hold(kept, state.data())) continue;
        if (is_interrupted(interrupted)) result.status = TaskSearchStatus::interrupted;
        if (result.status == TaskSearchStatus::interrupted) return result;
        const TaskSearchResult next = search_lazily(task, state, kept, options);
        add_counts(result, next);
        is_reached = next.status == TaskSearchStatus::solved;
        if (next.status == TaskSearchStatus::interrupted) result.status = next.status;
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
