#include "tmkit/task_search.hpp"

#include "goal_agenda.hpp"

namespace tmkit {

TaskSearch::TaskSearch(Task task)
    : task_(std::move(task)), free_(std::make_shared<ConstrainedTask>(task_, std::vector<TaskConstraint>{})) {}

TaskSearch::~TaskSearch() = default;

TaskValues TaskSearch::derive(TaskValues values) const {
    std::int64_t work = 0;
    free_->derive(values.data(), work);
    return values;
}

TaskValues TaskSearch::apply(std::int32_t number, const TaskValues& values) const {
    std::int64_t work = 0;
    TaskValues after;
    free_->apply(task_.operators[number], values.data(), after, work);
    return after;
}

bool TaskSearch::is_applicable(std::int32_t number, const TaskValues& values) const {
    return hold(task_.operators[number].needs, values.data());
}

std::vector<std::int32_t> TaskSearch::applicable(const TaskValues& values) const {
    std::vector<std::int32_t> numbers;
    for (std::size_t i = 0; i < task_.operators.size(); ++i)
        if (hold(task_.operators[i].needs, values.data())) numbers.push_back(static_cast<std::int32_t>(i));
    return numbers;
}

TaskSearchResult TaskSearch::plan(const TaskValues& values, const TaskFacts& goal,
                                  const std::vector<TaskConstraint>& constraints, const TaskSearchWork& work,
                                  const std::function<bool()>& interrupted) const {
    const std::shared_ptr<const ConstrainedTask> task = constrained(constraints);
    const TaskValues start = derive(values);
    const LazySearchOptions options{
        .work = work.search, .improvement_work = work.improvement, .interrupted = &interrupted};
    TaskSearchResult result = search_lazily(*task, start, goal, options);
    if (result.status != TaskSearchStatus::limit || work.agenda <= 0) return result;

    TaskSearchResult large = plan_by_agenda(*task, start, goal, work.agenda, interrupted);
    large.expanded += result.expanded;
    large.evaluated += result.evaluated;
    if (large.status != TaskSearchStatus::solved) return large;
    large.operators = eliminate_actions(*task, start, goal, std::move(large.operators), interrupted);
    large.operators = improve_windows(*task, start, goal, std::move(large.operators), work.improvement, interrupted);
    if (interrupted && interrupted()) large.status = TaskSearchStatus::interrupted;
    return large;
}

std::shared_ptr<const ConstrainedTask> TaskSearch::constrained(const std::vector<TaskConstraint>& constraints) const {
    if (constraints.empty()) return free_;
    {
        const std::scoped_lock lock(mutex_);
        if (constrained_ && constraints_ == constraints) return constrained_;
    }
    auto compiled = std::make_shared<const ConstrainedTask>(task_, constraints);
    const std::scoped_lock lock(mutex_);
    constraints_ = constraints;
    constrained_ = compiled;
    return compiled;
}

}  // namespace tmkit
