#include "tmkit/task_search.hpp"

#include "motion.hpp"

namespace tmkit::bindings {
namespace {

// Python types: facts, effects with conditions, operators with needs, effects and cost, and
// constraints with facts, limit and operators.
using Fact = std::pair<std::int32_t, std::int32_t>;
using Facts = std::vector<Fact>;
using Effect = std::pair<Facts, Fact>;
using Operator = std::tuple<Facts, std::vector<Effect>, std::int64_t>;
using Constraint = std::tuple<Facts, std::int32_t, std::vector<std::int32_t>>;
using Values = TupleOf<nb::int_>;

// Reader of facts, whose variables and values must exist.
struct Reader {
    const std::vector<std::int32_t>& domains;

    TaskFact fact(const Fact& f) const {
        if (f.first < 0 || static_cast<std::size_t>(f.first) >= domains.size() || f.second < 0 ||
            f.second >= domains[f.first])
            throw Error(ErrorKind::configuration, "variable {} has no value {}", f.first, f.second);
        return {f.first, f.second};
    }
    TaskFacts facts(const Facts& source) const {
        TaskFacts result;
        for (const Fact& f : source) result.push_back(fact(f));
        return result;
    }
    std::vector<TaskEffect> effects(const std::vector<Effect>& source) const {
        std::vector<TaskEffect> result;
        for (const auto& [conditions, f] : source) result.push_back({facts(conditions), fact(f)});
        return result;
    }
};

void construct(TaskSearch* self, std::vector<std::int32_t> domains,
               std::vector<std::int32_t> layers, std::vector<std::int32_t> defaults,
               const std::vector<Facts>& mutexes, const std::vector<Operator>& operators,
               const std::vector<Effect>& axioms) {
    if (layers.size() != domains.size() || defaults.size() != domains.size())
        throw Error(ErrorKind::configuration,
                    "each variable has one layer and one default: {}, {} and {}", domains.size(),
                    layers.size(), defaults.size());
    Task task{std::move(domains), std::move(layers), std::move(defaults), {}, {}, {}};
    const Reader read{task.domains};
    for (std::size_t v = 0; v < task.domains.size(); ++v)
        if (task.layers[v] >= 0) read.fact({static_cast<std::int32_t>(v), task.defaults[v]});
    for (const Facts& group : mutexes) task.mutexes.push_back(read.facts(group));
    for (const auto& [needs, effects, cost] : operators) {
        if (cost < 1)
            throw Error(ErrorKind::configuration, "an operator costs at least 1, not {}", cost);
        task.operators.push_back({read.facts(needs), read.effects(effects), cost});
    }
    task.axioms = read.effects(axioms);
    for (const TaskEffect& axiom : task.axioms)
        if (task.layers[axiom.fact.variable] < 0)
            throw Error(ErrorKind::configuration, "variable {} is not derived",
                        axiom.fact.variable);
    new (self) TaskSearch(std::move(task));
}

const TaskValues& check(const TaskSearch& search, const TaskValues& values) {
    const std::vector<std::int32_t>& domains = search.task().domains;
    if (values.size() != domains.size())
        throw Error(ErrorKind::configuration, "the task has {} variables, not {}", domains.size(),
                    values.size());
    for (std::size_t v = 0; v < values.size(); ++v)
        if (values[v] < -1 || values[v] >= domains[v])
            throw Error(ErrorKind::configuration, "variable {} has no value {}", v, values[v]);
    return values;
}

std::int32_t check(const TaskSearch& search, std::int64_t number) {
    const std::size_t count = search.task().operators.size();
    if (number < 0 || static_cast<std::size_t>(number) >= count)
        throw Error(ErrorKind::configuration, "there is no operator {} of {}", number, count);
    return static_cast<std::int32_t>(number);
}

std::vector<TaskConstraint> read_constraints(const TaskSearch& search,
                                             const std::vector<Constraint>& source) {
    const Reader read{search.task().domains};
    std::vector<TaskConstraint> constraints;
    for (const auto& [facts, limit, operators] : source) {
        TaskConstraint constraint{read.facts(facts), limit, operators};
        for (const TaskFact& f : constraint.facts)
            if (search.task().layers[f.variable] >= 0)
                throw Error(ErrorKind::configuration,
                            "a constraint counts facts of derived variable {}", f.variable);
        for (const std::int32_t number : operators) check(search, std::int64_t{number});
        constraints.push_back(std::move(constraint));
    }
    return constraints;
}

Values as_tuple(const TaskValues& values) { return Values(nb::tuple(nb::cast(values))); }

using Found =
    std::tuple<std::optional<std::vector<std::int32_t>>, bool, std::int64_t, std::int64_t>;

Found plan(const TaskSearch& search, const TaskValues& values, const Facts& goal, std::int64_t work,
           std::int64_t improvement_work, std::int64_t agenda_work) {
    check(search, values);
    const TaskFacts goal_facts = Reader{search.task().domains}.facts(goal);
    const TaskSearchWork limits{work, improvement_work, agenda_work};
    TaskSearchResult r = without_gil([&](const auto& interrupted) {
        return search.plan(values, goal_facts, limits, interrupted);
    });
    std::optional<std::vector<std::int32_t>> operators;
    if (r.status == TaskSearchStatus::solved) operators = std::move(r.operators);
    return {std::move(operators), r.status == TaskSearchStatus::unsolvable, r.expanded,
            r.evaluated};
}

using Path = std::tuple<std::vector<std::int32_t>, std::vector<Values>>;

std::optional<Path> follow(const TaskSearch& search, const TaskValues& values, const Facts& goal,
                           const std::vector<std::int32_t>& operators, bool omits) {
    for (const std::int32_t number : operators) check(search, std::int64_t{number});
    const TaskFacts goal_facts = Reader{search.task().domains}.facts(goal);
    std::optional<TaskPath> path =
        search.follow(check(search, values), goal_facts, operators, omits);
    if (!path) return std::nullopt;
    std::vector<Values> states;
    for (const TaskValues& state : path->states) states.push_back(as_tuple(state));
    return Path{std::move(path->operators), std::move(states)};
}

void bind_states(nb::class_<TaskSearch>& cls) {
    cls.def("derive",
            [](const TaskSearch& search, const TaskValues& values) {
        return as_tuple(search.derive(check(search, values)));
    }, "values"_a,
            R"(Return the values with those of the derived variables computed from the others.

Raises:
    ConfigurationError: if a value is out of range.)")
        .def("apply",
             [](const TaskSearch& search, std::int64_t number, const TaskValues& values) {
        return as_tuple(search.apply(check(search, number), check(search, values)));
    }, "operator"_a, "values"_a,
             R"(Return the values after an operator, without checking that it applies.

Args:
    operator: its number.
    values: the state before.

Raises:
    ConfigurationError: if the operator or a value does not exist.)")
        .def("is_applicable",
             [](const TaskSearch& search, std::int64_t number, const TaskValues& values) {
        return search.is_applicable(check(search, number), check(search, values));
    }, "operator"_a, "values"_a, R"(Return whether an operator is applicable.

Args:
    operator: its number.
    values: the state before.

Raises:
    ConfigurationError: if the operator or a value does not exist.)")
        .def("applicable", [](const TaskSearch& search, const TaskValues& values) {
        return search.applicable(check(search, values));
    }, "values"_a, R"(Return the numbers of the applicable operators, in order.

Raises:
    ConfigurationError: if a value is out of range.)");
}

void bind_plans(nb::class_<TaskSearch>& cls) {
    cls.def("with_constraints",
            [](const TaskSearch& search, const std::vector<Constraint>& constraints) {
        return search.with_constraints(read_constraints(search, constraints));
    }, "constraints"_a, R"(Return the same task with only these constraints.

Args:
    constraints: each as facts of variables that are not derived, a limit, and operators that apply
        only while at most this many of the facts hold; with a limit of -1, never.

Raises:
    ConfigurationError: if a variable, value or operator does not exist, or a constraint counts
        derived facts.)")
        .def("follow", &follow, "values"_a, "goal"_a, "operators"_a, "omits"_a = false,
             "Return the operators applied until the goal holds, and the states, one more than "
             "these."
             R"(

Args:
    values: the initial state.
    goal: facts of the goal.
    operators: numbers, in order.
    omits: whether to omit operators that are not applicable.

Returns:
    None if the goal does not hold at the end, or without ``omits`` an operator is not applicable.

Raises:
    ConfigurationError: if a variable, value or operator does not exist.)")
        .def("plan", &plan, "values"_a, "goal"_a, "work"_a, "improvement_work"_a,
             "agenda_work"_a = 0,
             R"(Search for a plan: lazy A* with FF's heuristic, then a goal agenda.

Args:
    values: the initial state.
    goal: facts of the goal.
    work: number of evaluations of rules, effects and axioms by A* until the first plan; each takes
        some 10 ns.
    improvement_work: number after the first plan, for cheaper ones.
    agenda_work: number for each goal of the agenda, after A* has given up; 0 for A* alone.

Returns:
    The numbers of the plan's operators or None; whether it is proved that there is no plan; the
    number of states expanded, and evaluated. The same arguments give the same plan.

Raises:
    ConfigurationError: if a variable or value does not exist.)");
}

}  // namespace

void bind_task_search(nb::module_& m) {
    nb::class_<TaskSearch> cls(
        m, "TaskSearch",
        R"(A task in finite-domain variables, compiled once for searches from any state.

Facts are pairs of a variable and its value. States are values of all variables, -1 for none. All
methods are functions of their arguments alone, and may be called by several threads at once.

Args:
    domains: number of values of each variable.
    layers: axiom layer of each variable; -1 if it is not derived.
    defaults: a value for each variable; that of a derived variable holds if no axiom applies.
    mutexes: groups of facts of which at most one holds in a reachable state.
    operators: each as needs, effects (conditions, fact), and cost, at least 1.
    axioms: each as conditions and the fact that they imply.

Raises:
    ConfigurationError: if a variable or value does not exist, an axiom is for a variable that is
        not derived, or an operator costs nothing.)");
    cls.def("__init__", &construct, "domains"_a, "layers"_a, "defaults"_a, "mutexes"_a,
            "operators"_a, "axioms"_a);
    bind_states(cls);
    bind_plans(cls);
}

}  // namespace tmkit::bindings
