#include "tmkit/task_search.hpp"

#include "goal_agenda.hpp"
#include "plan_improvement.hpp"

namespace tmkit {

TaskSearch::TaskSearch(std::shared_ptr<const Task> task,
                       const std::vector<TaskConstraint>& constraints)
    : task_(std::move(task)),
      compiled_(std::make_shared<const ConstrainedTask>(*task_, constraints)) {}

TaskSearch::TaskSearch(Task task) : TaskSearch(std::make_shared<const Task>(std::move(task)), {}) {}

TaskSearch TaskSearch::with_constraints(const std::vector<TaskConstraint>& constraints) const {
    return {task_, constraints};
}

TaskValues TaskSearch::derive(TaskValues values) const {
    std::int64_t work = 0;
    compiled_->derive(values.data(), work);
    return values;
}

TaskValues TaskSearch::apply(std::int32_t number, const TaskValues& values) const {
    std::int64_t work = 0;
    TaskValues after;
    compiled_->apply(task_->operators[number], values.data(), after, work);
    return after;
}

bool TaskSearch::is_applicable(std::int32_t number, const TaskValues& values) const {
    return compiled_->is_applicable(number, values.data());
}

std::vector<std::int32_t> TaskSearch::applicable(const TaskValues& values) const {
    std::vector<std::int32_t> numbers;
    for (std::size_t i = 0; i < task_->operators.size(); ++i)
        if (is_applicable(static_cast<std::int32_t>(i), values))
            numbers.push_back(static_cast<std::int32_t>(i));
    return numbers;
}

std::optional<TaskPath> TaskSearch::follow(const TaskValues& values, const TaskFacts& goal,
                                           const std::vector<std::int32_t>& operators,
                                           bool omits) const {
    TaskPath path{{}, {derive(values)}};
    for (const std::int32_t number : operators) {
        const TaskValues& state = path.states.back();
        if (hold(goal, state.data())) break;
        if (is_applicable(number, state)) {
            path.operators.push_back(number);
            path.states.push_back(apply(number, state));
        } else if (!omits) {
            return std::nullopt;
        }
    }
    if (!hold(goal, path.states.back().data())) return std::nullopt;
    return path;
}

TaskSearchResult TaskSearch::plan(const TaskValues& values, const TaskFacts& goal,
                                  const TaskSearchWork& work,
                                  const std::function<bool()>& interrupted) const {
    const ConstrainedTask& task = *compiled_;
    const TaskValues start = derive(values);
    TaskSearchResult result;
    if (task.exceeds_limits(goal, start.data())) {
        result.status = TaskSearchStatus::unsolvable;
        return result;
    }
    const LazySearchOptions options{
        .work = work.search, .improvement_work = work.improvement, .interrupted = &interrupted};
    result = search_lazily(task, start, goal, options);
    if (result.status != TaskSearchStatus::limit || work.agenda <= 0) return result;

    TaskSearchResult large = plan_by_agenda(task, start, goal, work.agenda, interrupted);
    large.expanded += result.expanded;
    large.evaluated += result.evaluated;
    if (large.status != TaskSearchStatus::solved) return large;
    large.operators = eliminate_actions(task, start, goal, std::move(large.operators), interrupted);
    large.operators =
        improve_plan(task, start, goal, large.operators, work.improvement, interrupted);
    large.operators = eliminate_actions(task, start, goal, std::move(large.operators), interrupted);
    if (interrupted && interrupted()) large.status = TaskSearchStatus::interrupted;
    return large;
}

}  // namespace tmkit
