#include "tmkit/task_search.hpp"

#include "bindings.hpp"

namespace tmkit::bindings {
namespace {

// As Python has them: facts, effects under conditions, and operators that need facts, have effects and cost something.
using Fact = std::pair<std::int32_t, std::int32_t>;
using Facts = std::vector<Fact>;
using Effect = std::pair<Facts, Fact>;
using Operator = std::tuple<Facts, std::vector<Effect>, std::int64_t>;

// Reads what names variables and their values; a wrong number is an error.
struct Reader {
    const std::vector<std::int32_t>& domains;

    TaskFact fact(const Fact& f) const {
        if (f.first < 0 || static_cast<std::size_t>(f.first) >= domains.size() || f.second < 0 ||
            f.second >= domains[f.first])
            throw Error(ErrorKind::configuration, "variable {} has no value {}", f.first, f.second);
        return {f.first, f.second};
    }
    TaskFacts facts(const Facts& given) const {
        TaskFacts found;
        for (const Fact& f : given) found.push_back(fact(f));
        return found;
    }
    std::vector<TaskEffect> effects(const std::vector<Effect>& given) const {
        std::vector<TaskEffect> found;
        for (const auto& [conditions, f] : given) found.push_back({facts(conditions), fact(f)});
        return found;
    }
};

using Found = std::tuple<std::optional<std::vector<std::int32_t>>, bool, std::int64_t, std::int64_t>;

Found search(const std::vector<std::int32_t>& domains, std::vector<std::int32_t> layers, const Facts& init,
             const Facts& goal, const std::vector<Operator>& operators, const std::vector<Effect>& axioms,
             std::int64_t work, std::int64_t improvement_work) {
    const Reader read{domains};
    if (layers.size() != domains.size() || init.size() != domains.size())
        throw Error(ErrorKind::configuration, "each variable has one layer and one initial value");
    Task task{domains, std::move(layers), std::vector<std::int32_t>(domains.size()), read.facts(goal), {}, {}};
    for (const TaskFact& f : read.facts(init)) task.init[f.variable] = f.value;
    for (const auto& [needs, effects, cost] : operators)
        task.operators.push_back({read.facts(needs), read.effects(effects), cost});
    task.axioms = read.effects(axioms);
    for (const TaskEffect& axiom : task.axioms)
        if (task.layers[axiom.fact.variable] < 0)
            throw Error(ErrorKind::configuration, "variable {} is not derived", axiom.fact.variable);
    nb::gil_scoped_release released;
    TaskSearchResult r = search_task(task, work, improvement_work);
    std::optional<std::vector<std::int32_t>> plan;
    if (r.status == TaskSearchStatus::solved) plan = std::move(r.operators);
    return {std::move(plan), r.status == TaskSearchStatus::unsolvable, r.expanded, r.evaluated};
}

}  // namespace

void bind_task_search(nb::module_& m) {
    m.def("search_task", &search, "domains"_a, "layers"_a, "init"_a, "goal"_a, "operators"_a, "axioms"_a, "work"_a,
          "improvement_work"_a,
          R"(Search for a plan of a task in finite-domain variables: lazy A* with FF's heuristic.

Args:
    domains: how many values each variable has.
    layers: of axioms, for each variable; -1 when it is not derived.
    init: a fact (variable, value) for each variable; for a derived one the value that it has when no axiom applies.
    goal: facts.
    operators: each as what it needs, its effects (conditions, fact), and its cost, at least 1.
    axioms: each as conditions and the fact that they make true.
    work: how often it may look at a rule, an effect or an axiom, until there is a plan; a look takes some 10 ns.
    improvement_work: the same after the first plan, for cheaper ones.

Returns:
    The numbers of the plan's operators or None; whether it is proved that there is no plan; the number of states
    expanded, and evaluated. The same arguments give the same plan.

Raises:
    ConfigurationError: a variable or value that does not exist.)");
}

}  // namespace tmkit::bindings
