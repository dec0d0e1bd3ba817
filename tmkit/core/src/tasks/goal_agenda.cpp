#include "goal_agenda.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "lazy_search.hpp"

namespace tmkit {
namespace {

constexpr std::int64_t goal_weight = 2;       // weight of the estimate, for the next goal
constexpr std::int64_t greedy_weight = 10;    // weight of the estimate, for all goals at once
constexpr std::int64_t failing_searches = 2;  // largest number of searches that use all work
// Largest number of goals that are compared to select the next one.
constexpr std::size_t candidate_count = 20;

// Reachable facts of the relaxed task while others are kept.
class Reachability {
public:
    explicit Reachability(const ConstrainedTask& task)
        : task_(task), kept_(task.width()), missing_(task.rules().size()) {}

    // Return the facts that operators add without deleting a kept fact. `holds` has the facts at
    // first, and receives the added ones.
    std::vector<char> find_added(std::vector<char>& holds, const TaskFacts& kept_facts) {
        std::ranges::fill(kept_, -1);
        for (const TaskFact& f : kept_facts) kept_[f.variable] = f.value;
        std::vector<char> added(holds.size());
        open_.clear();
        const auto apply = [&](std::size_t rule) {
            const std::int32_t of = task_.rules()[rule].of;
            if (of >= 0 && deletes_kept(task_.task().operators[of])) return;
            for (const std::int32_t* f = task_.adds().begin(rule); f != task_.adds().end(rule);
                 ++f) {
                added[*f] = true;
                if (!holds[*f]) open_.push_back(*f);
                holds[*f] = true;
            }
        };
        const auto is_missing = [&](std::int32_t f) { return !holds[f]; };
        std::vector<std::size_t> first;
        for (std::size_t r = 0; r < missing_.size(); ++r) {
            missing_[r] = std::count_if(task_.needs().begin(r), task_.needs().end(r), is_missing);
            if (missing_[r] == 0) first.push_back(r);
        }
        for (const std::size_t r : first) apply(r);
        while (!open_.empty()) {
            const std::int32_t reached = open_.back();
            open_.pop_back();
            const NumberRows& needed_by = task_.needed_by();
            for (const std::int32_t* r = needed_by.begin(reached); r != needed_by.end(reached); ++r)
                if (--missing_[*r] == 0) apply(static_cast<std::size_t>(*r));
        }
        return added;
    }

    // The facts that hold in a state or are added by operators that delete none of the kept facts.
    std::vector<char> find_reached(const TaskValues& state, const TaskFacts& kept_facts) {
        std::vector<char> holds(static_cast<std::size_t>(task_.fact_count()));
        task_.facts(state.data(), facts_);
        for (const std::int32_t f : facts_) holds[f] = true;
        find_added(holds, kept_facts);
        return holds;
    }

private:
    bool deletes_kept(const TaskOperator& o) const {
        return std::ranges::any_of(o.effects, [&](const TaskEffect& effect) {
            const std::int32_t value = kept_[effect.fact.variable];
            return value >= 0 && value != effect.fact.value && effect.conditions.empty();
        });
    }

    const ConstrainedTask& task_;
    std::vector<std::int32_t> kept_;  // the value of each kept variable; -1 for others
    std::vector<std::int64_t> missing_;
    std::vector<std::int32_t> open_, facts_;
};

// For each goal, the goals before it: those that cannot be reached beside it without deleting it.
// All facts that it does not exclude may hold at first (reasonable orders, Koehler and Hoffmann,
// JAIR 2000).
std::vector<std::vector<char>> order_goals(const ConstrainedTask& task, const TaskFacts& goal,
                                           Reachability& reachability) {
    std::map<TaskFact, std::vector<const TaskFacts*>> groups;
    for (const TaskFacts& group : task.task().mutexes)
        for (const TaskFact& f : group) groups[f].push_back(&group);
    std::vector<std::vector<char>> before;
    for (const TaskFact& g : goal) {
        std::vector<char> holds(static_cast<std::size_t>(task.fact_count()), true);
        for (std::int32_t value = 0; value < task.task().domains[g.variable]; ++value)
            holds[task.number({g.variable, value})] = false;
        for (const TaskFacts* group : groups[g])
            for (const TaskFact& f : *group) holds[task.number(f)] = false;
        holds[task.number(g)] = true;
        const std::vector<char> added = reachability.find_added(holds, {g});
        std::vector<char> row;
        for (const TaskFact& h : goal) row.push_back(h != g && !added[task.number(h)]);
        before.push_back(std::move(row));
    }
    return before;
}

void add_counts(TaskSearchResult& total, const TaskSearchResult& part) {
    total.expanded += part.expanded;
    total.evaluated += part.evaluated;
}

// Reaches one goal after the other and keeps those that hold.
class GoalAgenda {
public:
    GoalAgenda(const ConstrainedTask& task, const TaskFacts& goal, const LazySearchOptions& options)
        : task_(task), goal_(goal), options_(options), reachability_(task),
          before_(order_goals(task, goal, reachability_)), left_(goal.size()),
          failing_work_(failing_searches * options.work) {
        for (std::size_t g = 0; g < left_.size(); ++g) left_[g] = g;
    }

    TaskSearchResult run(const TaskValues& start) {
        state_ = start;
        result_.status = TaskSearchStatus::solved;
        while (!left_.empty() && result_.status == TaskSearchStatus::solved) reach_next();
        return std::move(result_);
    }

private:
    using Operators = std::vector<std::int32_t>;
    struct Candidate {
        // Other goals whose variables change, and the cost of the relaxed plan.
        std::int64_t disturbed, cost;
        std::size_t goal;
        auto operator<=>(const Candidate&) const = default;
    };
    struct Step {
        Operators operators;
        std::size_t goal;
    };

    // Reach a goal beside which all others remain reachable, if there is one.
    void reach_next() {
        const std::vector<char> reached = reachability_.find_reached(state_, kept_);
        std::optional<Step> premature;
        std::size_t lost = 0;
        for (const Candidate& candidate : find_candidates()) {
            const std::optional<Operators> operators = search(state_, goal_[candidate.goal]);
            if (is_interrupted()) return;
            if (!operators) continue;
            const std::optional<std::size_t> loss =
                find_loss(reached, simulate(state_, *operators), candidate.goal);
            if (!loss) return advance({*operators, candidate.goal});
            if (!premature) {
                premature = {*operators, candidate.goal};
                lost = *loss;
            }
        }
        if (!premature) {
            if (!is_interrupted()) result_.status = TaskSearchStatus::limit;
            return;
        }
        if (std::optional<Step> later = reach_later(reached, premature->goal, lost))
            premature = std::move(later);
        if (!is_interrupted()) advance(*premature);
    }

    // The beginning of a plan for a goal that would be lost, after which it is not lost beside the
    // other goal.
    std::optional<Step> reach_later(const std::vector<char>& reached, std::size_t goal,
                                    std::size_t lost) {
        const std::optional<Operators> beginning = search(state_, goal_[lost]);
        if (!beginning) return std::nullopt;
        Operators operators;
        for (const std::int32_t o : *beginning) {
            operators.push_back(o);
            const TaskValues state = simulate(state_, operators);
            const std::optional<Operators> continuation = search(state, goal_[goal]);
            if (!continuation || find_loss(reached, simulate(state, *continuation), goal)) continue;
            operators.insert(operators.end(), continuation->begin(), continuation->end());
            return Step{std::move(operators), goal};
        }
        return std::nullopt;
    }

    // The candidates for the next goal, those first for which the fewest variables of other goals
    // change.
    std::vector<Candidate> find_candidates() {
        std::vector<std::size_t> ready;
        std::ranges::copy_if(left_, std::back_inserter(ready), [&](std::size_t g) {
            return std::ranges::none_of(left_, [&](std::size_t h) { return before_[g][h] != 0; });
        });
        if (ready.empty()) ready = left_;  // a cycle
        ready.resize(std::min(ready.size(), candidate_count));
        std::vector<Candidate> candidates;
        for (const std::size_t g : ready) {
            RelaxedPlanner relaxation(task_, with(goal_[g]));
            const std::int64_t cost = relaxation.evaluate(state_.data(), preferred_, applicable_);
            if (cost < infinite_cost)
                candidates.push_back({count_disturbed(g, relaxation.used()), cost, g});
        }
        result_.evaluated += std::ssize(ready);
        std::ranges::sort(candidates);
        return candidates;
    }

    std::int64_t count_disturbed(std::size_t g, const Operators& operators) const {
        std::set<std::int32_t> changed;
        for (const std::int32_t o : operators)
            for (const TaskEffect& effect : task_.task().operators[o].effects)
                changed.insert(effect.fact.variable);
        return std::ranges::count_if(left_, [&](std::size_t h) {
            return h != g && !before_[h][g] && changed.contains(goal_[h].variable);
        });
    }

    // A reachable goal that is not reachable from a state in which another goal is kept, too.
    std::optional<std::size_t> find_loss(const std::vector<char>& reached, const TaskValues& state,
                                         std::size_t goal) {
        const std::vector<char> still = reachability_.find_reached(state, with(goal_[goal]));
        for (const std::size_t h : left_)
            if (reached[task_.number(goal_[h])] && !still[task_.number(goal_[h])]) return h;
        return std::nullopt;
    }

    std::optional<Operators> search(const TaskValues& state, const TaskFact& fact) {
        if (failing_work_ <= 0) return std::nullopt;
        LazySearchOptions options = options_;
        options.work = std::min(options.work, failing_work_);
        TaskSearchResult search_result = search_lazily(task_, state, with(fact), options);
        add_counts(result_, search_result);
        if (search_result.status == TaskSearchStatus::solved)
            return std::move(search_result.operators);
        if (search_result.status == TaskSearchStatus::interrupted)
            result_.status = TaskSearchStatus::interrupted;
        failing_work_ -= search_result.status == TaskSearchStatus::limit
                             ? options.work
                             : search_result.evaluated * task_.rule_count();
        return std::nullopt;
    }

    TaskValues simulate(TaskValues state, const Operators& operators) const {
        std::int64_t unlimited = 0;
        TaskValues after;
        for (const std::int32_t o : operators) {
            task_.apply(task_.task().operators[o], state.data(), after, unlimited);
            std::swap(state, after);
        }
        return state;
    }

    void advance(const Step& step) {
        state_ = simulate(state_, step.operators);
        result_.operators.insert(result_.operators.end(), step.operators.begin(),
                                 step.operators.end());
        kept_.push_back(goal_[step.goal]);
        std::erase(left_, step.goal);
    }

    TaskFacts with(const TaskFact& fact) const {
        TaskFacts facts = kept_;
        facts.push_back(fact);
        return facts;
    }

    bool is_interrupted() {
        if (*options_.interrupted && (*options_.interrupted)())
            result_.status = TaskSearchStatus::interrupted;
        return result_.status == TaskSearchStatus::interrupted;
    }

    const ConstrainedTask& task_;
    const TaskFacts& goal_;
    const LazySearchOptions& options_;
    Reachability reachability_;
    std::vector<std::vector<char>> before_;
    std::vector<std::size_t> left_;
    std::int64_t failing_work_;  // for searches that find no plan
    TaskFacts kept_;
    TaskValues state_;
    TaskSearchResult result_;
    Operators preferred_, applicable_;
};

}  // namespace

TaskSearchResult plan_by_agenda(const ConstrainedTask& task, const TaskValues& start,
                                const TaskFacts& goal, std::int64_t work,
                                const std::function<bool()>& interrupted) {
    LazySearchOptions options{.work = work, .weight = goal_weight, .interrupted = &interrupted};
    TaskSearchResult result = GoalAgenda(task, goal, options).run(start);
    if (result.status == TaskSearchStatus::limit) {
        options.weight = greedy_weight;
        TaskSearchResult whole = search_lazily(task, start, goal, options);
        add_counts(whole, result);
        result = std::move(whole);
        // This search proves nothing; a proof is left to A*.
        if (result.status == TaskSearchStatus::unsolvable) result.status = TaskSearchStatus::limit;
    }
    result.by_agenda = true;
    return result;
}

}  // namespace tmkit
