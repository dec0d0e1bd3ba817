"""Semantics of a domain whose actions take their values from streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar

from tmkit.errors import TaskError, UnknownNameError
from tmkit.manipulation.actions.basic_motions import ActionMotion
from tmkit.manipulation.actions.candidates import ActionContext, Candidate
from tmkit.manipulation.actions.pick_place import ArmMotionPlanner
from tmkit.pddl import Domain, GroundAction
from tmkit.plans.failures import MotionFailure
from tmkit.tamp.domains.semantics import DomainSemantics, pddl_name
from tmkit.tamp.streams.declaration import Stream, StreamAction
from tmkit.tamp.streams.join import Binding, Join
from tmkit.tamp.streams.join_plan import JoinPlan, JoinPlanner
from tmkit.tamp.streams.records import TrialOutcome
from tmkit.tamp.streams.samples import SampleTable, shorten
from tmkit.tamp.streams.scene_view import SceneView

_REFUSALS_PER_ATTEMPT = 256
"""Number of rejected combinations of values that count as one attempt at an action.

A search with infinitely many placements would otherwise never return from an action whose values
are all rejected.
"""


class StreamSemantics(DomainSemantics):
    """Base class of semantics whose actions take their values from streams.

    A subclass defines :meth:`objects` and :meth:`state`, and the class attributes below. An action
    of the domain without a :class:`StreamAction` needs :meth:`candidates` of the subclass, which
    passes the other actions on to this class.

    Attributes:
        domain: PDDL domain, with the ``action`` of each stream action.
        streams: streams of the domain.
        stream_actions: actions with values.
        value_types: classes of further types of values, by name. The types ``configuration``,
            ``grasp``, ``motion``, ``path``, ``placement`` and ``pose`` exist in every domain.

    Raises:
        TaskError: if a declaration does not match the domain, when the class is defined.
    """

    domain: ClassVar[Domain]
    streams: ClassVar[tuple[Stream, ...]] = ()
    stream_actions: ClassVar[tuple[StreamAction, ...]] = ()
    value_types: ClassVar[Mapping[str, type]] = MappingProxyType({})
    _plans: ClassVar[Mapping[str, JoinPlan]] = MappingProxyType({})

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not isinstance(getattr(cls, "domain", None), Domain):
            reason = "expected a class attribute 'domain' from tmkit.pddl.make_domain"
            raise TaskError.at(f"class '{cls.__name__}'", reason)
        planner = JoinPlanner(cls.domain, cls.streams, cls.value_types)
        names = [action.name for action in cls.domain.actions]
        plans: dict[str, JoinPlan] = {}
        for action in cls.stream_actions:
            if action.action.name not in names:
                unknown = UnknownNameError.of("action of the domain", action.action.name, names)
                raise TaskError.at(f"class '{cls.__name__}'", unknown.message)
            plans[action.action.name] = planner.plan(action)
        if cls.candidates is StreamSemantics.candidates:
            for name in names:
                if name not in plans:
                    reason = f"action '{name}' has neither a stream action nor candidates"
                    raise TaskError.at(f"class '{cls.__name__}'", reason)
        cls._plans = MappingProxyType(plans)

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield the candidates of the values that satisfy the facts of an action.

        Args:
            action: ground action.
            context: scene and configuration before the action, samplers and arms.

        Raises:
            SamplerError: if a stream fails or gives a value of a wrong type.
            TaskError: if the function of the action returns no candidate.
        """
        plan, table = self._plans[action.name], sample_table(context)
        objects = self._bind_objects(plan, action, context, table)
        # The context of a later visit reuses the list of requested placements.
        version = replace(context, placement_requests=[])
        join = Join(plan, table, version, dict(self.value_types))
        view = SceneView(version, context.rng)
        n_refused = n_accepted = 0
        for binding in join.bindings(objects):
            if binding is None:
                n_refused += 1
                if n_refused % _REFUSALS_PER_ATTEMPT == 0:
                    yield RefusedValues(join.failure())
                continue
            n_accepted += 1
            yield _make_candidate(join, binding, view)
        if not n_accepted:
            yield RefusedValues(join.failure())

    def _bind_objects(
        self, plan: JoinPlan, action: GroundAction, context: ActionContext, table: SampleTable
    ) -> Binding:
        """Return the frames of an action's objects by variable, and those of the constants."""
        parameters = plan.action.action.parameters
        names = dict(zip((p.name for p in parameters), action.arguments, strict=True))
        names.update((constant.name, constant.name) for constant in self.domain.constants)
        return {
            variable: table.object_value(_find_frame(name, context))
            for variable, name in names.items()
        }


def sample_table(context: ActionContext) -> SampleTable:
    """Return the samples of the planning run that a context belongs to."""
    sampling = context.require_sampling()
    key = SampleTable, sampling.seed
    table = sampling.shared_value(key, lambda: SampleTable(sampling.seed))
    assert isinstance(table, SampleTable)
    return table


def _find_frame(name: str, context: ActionContext) -> str:
    """Return the frame with a PDDL name; the name itself if no frame has it."""
    if name in context.scene:
        return name
    frames = (frame for frame in context.scene.frame_names if pddl_name(frame) == name)
    return next(frames, name)


def _make_candidate(join: Join, binding: Binding, view: SceneView) -> StreamCandidate:
    """Return the candidate that the function of an action makes of a binding.

    Raises:
        TaskError: if it returns no candidate.
    """
    action = join.plan.action
    arguments = {name: binding[variable].content for name, variable in action.arguments.items()}
    candidate = action.function(view, **arguments)
    if not callable(getattr(candidate, "refine", None)):
        raise TaskError.at(
            f"action '{action.action.name}'",
            f"its function returns {shorten(candidate)}, which is not a Candidate",
        )
    return StreamCandidate(candidate, join, binding)


@dataclass(frozen=True, eq=False)
class StreamCandidate:
    """Candidate with the values of streams that it is made of.

    Attributes:
        candidate: candidate of the action's function.
        join: join that gave the values.
        binding: values by variable.
    """

    candidate: Candidate
    join: Join
    binding: Binding

    def refine(
        self, arm: ArmMotionPlanner, context: ActionContext, *, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        """Yield motions with the cost of the values, and failures with the frames they depend on.

        Args:
            arm: motion planner of the first arm.
            context: scene and configuration before the action, samplers, and all arms.
            seed: seed of all searches.
        """
        table, join = self.join.table, self.join
        variables = [name for name in self.binding if name in join.plan.types]
        samples = list(dict.fromkeys(self.binding[name].sample for name in variables))
        is_path_dependent = join.reads_configuration()
        has_motion = has_failure = False
        for attempt in self.candidate.refine(arm, context, seed=seed):
            if isinstance(attempt, ActionMotion):
                cost = join.cost(self.binding)
                if not has_motion:
                    for sample in samples:
                        table.use(sample, context)
                has_motion = True
                yield replace(attempt, value_cost=cost) if join.plan.costs else attempt
            elif isinstance(attempt, MotionFailure):
                if not (has_motion or has_failure):
                    for sample in samples:
                        table.record(sample, context, TrialOutcome.FAILED, str(attempt))
                has_failure = True
                yield replace(attempt, is_path_dependent=True) if is_path_dependent else attempt
            else:
                yield attempt  # the search rejects it and names the candidate


@dataclass(frozen=True)
class RefusedValues:
    """Candidate that stands for combinations of values that the streams reject.

    Attributes:
        failure: the failure.
    """

    failure: MotionFailure

    def refine(
        self, arm: ArmMotionPlanner, context: ActionContext, *, seed: int
    ) -> Iterator[MotionFailure]:
        """Yield the failure."""
        del arm, context, seed
        yield self.failure
