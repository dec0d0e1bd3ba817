"""The names that `tmkit.pddl` exports."""

from tmkit.pddl.building import (
    make_action as make_action,
    make_domain as make_domain,
    make_predicate as make_predicate,
)
from tmkit.pddl.formulas import (
    Action as Action,
    And as And,
    Fact as Fact,
    GroundAction as GroundAction,
    Not as Not,
)
from tmkit.pddl.model import Domain as Domain, Problem as Problem
from tmkit.pddl.parsing.parser import (
    load_domain as load_domain,
    load_problem as load_problem,
    parse_domain as parse_domain,
    parse_goal as parse_goal,
    parse_problem as parse_problem,
)
from tmkit.pddl.state import State as State
from tmkit.pddl.validation import (
    schedule_fault as schedule_fault,
    validate_task_plan as validate_task_plan,
)
from tmkit.pddl.vocabulary import Predicate as Predicate, Type as Type
from tmkit.pddl.writer import domain_to_pddl as domain_to_pddl, problem_to_pddl as problem_to_pddl
