"""Offline pages: a scene or plan in 3D in a single HTML file, without server and requests.

The page contains viser's client with the meshes, as viser saves them, and tmkit's panel
(``viewer.js``) with a document of frames, actions, segments and facts. The recordings of viser
itself are not used: they repeat all messages up to a time whenever the time line goes back. The
panel computes each time from the moving joints alone.

A time line has samples of the motion with the scene version of each, segments, actions and facts.
The samples contain the pose of each moving frame *relative to its parent*. A thousand frames on a
moving arm thus cost no more than the arm. A permanent change (a new parent or pose) is an *event*
at a sample. The page reads the document of :func:`timeline_document`: integers in units of
:data:`UNIT`.
"""

from __future__ import annotations

import base64
import html
import json
import logging
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.argument_errors import check_argument, plan_hint, with_keyword_hints
from tmkit._support.extras import importing
from tmkit._support.limits import GREATEST_PORT
from tmkit._support.output import check_writable, write_text
from tmkit.errors import ConfigurationError, OutputError, TmkitError
from tmkit.graph import SceneGraph, diff
from tmkit.plans import Plan, PlanStep, Schedule, Segment, SegmentKind, execute
from tmkit.plans.execution import TimedMotion
from tmkit.robots import Manipulator
from tmkit.spatial import Pose
from tmkit.tamp.domains.loading import DomainSource, load_plan_domain
from tmkit.visualization.scene_model import add_nodes, model_document, scene_model, set_view

if TYPE_CHECKING:
    import viser

_logger = logging.getLogger(__name__)

RATE = 15.0
"""Samples of a time line for each second. Pages interpolate between them [Hz]."""

UNIT = 1e-6
"""Resolution of times, positions and quaternions in a document [s or m]."""

CELL = 1.5e-3
"""Size of the cubes in which vertices of large meshes are merged [m]."""

_HAND_DURATION = 0.4
"""Duration of the closing or opening of a hand [s]."""

_PAUSE_DURATION = 0.25
"""Duration of an action without motion [s]."""


@dataclass(eq=False, repr=False)
class PlanTimeline:
    """A plan as samples of configurations in versions of the scene.

    Attributes:
        plan: the plan.
        times: (m,) times of the samples [s].
        q: (m, n_joints) configurations of the samples.
        scenes: scene version of each sample.
        steps: last sample of each action, in order of their ends.
        segments: for each segment the index of its action, its kind, the handled object or an empty
            name, and its first and last sample.
        facts: PDDL facts at the start and after each action, or empty if the domain is unavailable.
        order: actions in order of their ends, as indices of the plan's steps. It differs from the
            plan if arms act concurrently.
    """

    plan: Plan
    times: NDArray[np.float64]
    q: NDArray[np.float64]
    scenes: list[SceneGraph]
    steps: list[int]
    segments: list[tuple[int, str, str, int, int]]
    facts: list[list[str]]
    order: list[int]

    def __repr__(self) -> str:
        return (
            f"PlanTimeline({len(self.steps)} steps, {len(self.times)} samples,"
            f" {self.times[-1]:.1f} s)"
        )


def plan_timeline(
    plan: Plan, *, rate: float = RATE, domain: DomainSource | None = None
) -> PlanTimeline:
    """Return the time line of a plan.

    Args:
        plan: the plan.
        rate: samples for each second [Hz].
        domain: domain of the facts. Defaults to the plan's domain.
    """
    recorder = _Recorder(plan, rate)
    execute(plan, recorder, rate=rate)
    return PlanTimeline(
        plan,
        np.array(recorder.times),
        np.array(recorder.q),
        recorder.scenes,
        recorder.steps,
        recorder.segments,
        _facts(plan, domain),
        recorder.order or list(range(len(plan.steps))),
    )


def _facts(plan: Plan, given_domain: DomainSource | None) -> list[list[str]]:
    """Return the facts at the start and after each action, or none without a domain."""
    try:
        domain = load_plan_domain(plan, given_domain)
        objects = domain.objects(plan.scene)
        versions = [(plan.scene, plan.q), *((step.scene, step.q) for step in plan.steps)]
        return [
            [str(fact) for fact in domain.state(scene, q, objects=objects)] for scene, q in versions
        ]
    except TmkitError as error:
        if given_domain is not None:
            raise
        _logger.warning("the facts of the plan are not shown: %s", error)
        return []


@dataclass(eq=False)
class _Recorder:
    """Executor that records the motions."""

    plan: Plan
    rate: float
    times: list[float] = field(default_factory=list)
    q: list[NDArray[np.float64]] = field(default_factory=list)
    scenes: list[SceneGraph] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    segments: list[tuple[int, str, str, int, int]] = field(default_factory=list)
    order: list[int] = field(default_factory=list)

    def begin(self, plan: Plan) -> None:
        self._add(plan.scene, plan.q, 0.0)

    def begin_step(self, number: int, step: PlanStep) -> None:
        del number
        if not step.segments:
            self._add(self.scenes[-1], self.q[-1], _PAUSE_DURATION)

    def follow(self, motion: TimedMotion) -> None:
        columns = [self.plan.scene.joint_names.index(name) for name in motion.joint_names]
        is_hand = motion.segment.kind in (SegmentKind.GRASP, SegmentKind.RELEASE)
        fingers = {} if is_hand else dict(motion.segment.gripper)
        first = len(self.times) - 1
        for row in motion.timed.positions[1:]:
            q = np.array(self.scenes[-1].configuration(fingers, base=self.q[-1]))
            q[columns] = row
            self._add(self.scenes[-1], q, motion.timed.period)
        if not is_hand:
            self._finish_segment(motion.segment, first)
            # An arm that does not stop at the end of a segment leaves the path before its last row.
            self.q[-1][columns] = motion.timed.positions[-1]

    def grasp(self, arm: Manipulator, segment: Segment) -> None:
        del arm
        first, q_start = len(self.times) - 1, self.q[-1]
        q_end = self.scenes[-1].configuration(dict(segment.gripper), base=q_start)
        count = max(2, round(_HAND_DURATION * self.rate))
        for fraction in np.arange(1, count + 1) / count:
            self._add(self.scenes[-1], q_start + fraction * (q_end - q_start), 1.0 / self.rate)
        self._finish_segment(segment, first)

    release = grasp

    def follow_schedule(self, schedule: Schedule, *, rate: float) -> None:  # noqa: ARG002
        moments, final_scene = list(schedule.moments()), self.plan.final_scene
        times = np.arange(1, int(np.ceil(schedule.makespan * self.rate)) + 1) / self.rate
        for time, q in zip(times, schedule.q(times), strict=True):
            scenes = (moment.scene for moment in moments if time <= moment.end)
            self._add(next(scenes, final_scene), q, 1.0 / self.rate)
        ends = [self._sample(end) for _, end in schedule.step_times()]
        self.order = sorted(range(len(ends)), key=lambda number: (ends[number], number))
        self.steps = [ends[number] for number in self.order]
        for start, track in schedule.tracks:
            for phase in track.phases:
                first, last = self._sample(start + phase.begin), self._sample(start + phase.end)
                kind, held = phase.segment.kind.value, phase.segment.held or ""
                self.segments.append((self.order.index(phase.step - 1), kind, held, first, last))
        self.segments.sort(key=lambda segment: segment[3])

    def _sample(self, time: float) -> int:
        """Return the sample nearest to a time."""
        return min(len(self.times) - 1, round(time * self.rate))

    def end_step(self, number: int, step: PlanStep) -> None:
        del number
        self.scenes[-1] = step.scene
        self.steps.append(len(self.times) - 1)

    def finish(self) -> None:
        """Do nothing, because the end is recorded already."""

    def _finish_segment(self, segment: Segment, first: int) -> None:
        """Apply the changes at the end of a segment, and record it."""
        self.scenes[-1], q = segment.end(self.scenes[-1], self.q[-1])
        self.q[-1] = np.array(q)
        kind, held = segment.kind.value, segment.held or ""
        self.segments.append((len(self.steps), kind, held, first, len(self.times) - 1))

    def _add(self, scene: SceneGraph, q: NDArray[np.float64], seconds: float) -> None:
        """Add a sample some time after the last one [s]."""
        self.times.append((self.times[-1] if self.times else 0.0) + seconds)
        self.q.append(np.array(q, dtype=float))
        self.scenes.append(scene)


def timeline_document(timeline: PlanTimeline) -> dict[str, Any]:
    """Return a time line as plain values.

    Poses are x, y, z, qx, qy, qz, qw in :data:`UNIT`, and tracks are differences of samples.
    """
    plan, facts = timeline.plan, timeline.facts
    index = {name: i for i, name in enumerate(plan.scene.frame_names)}
    events: list[list[int]] = []
    scene = plan.scene
    for sample, later in enumerate(timeline.scenes):
        if later is not scene:
            events += [[sample, *event] for event in _changes(scene, later, index)]
            scene = later
    steps = []
    for place, number in enumerate(timeline.order):
        step = plan.steps[number]
        before, after = (set(facts[number]), set(facts[number + 1])) if facts else (set(), set())
        action, choice = str(step.action), step.choice
        added, removed = sorted(after - before), sorted(before - after)
        end = timeline.steps[place]
        steps.append(
            {"action": action, "choice": choice, "end": end, "added": added, "removed": removed}
        )
    return {
        "goal": plan.goal,
        "domain": plan.domain,
        "times": np.diff(np.rint(timeline.times / UNIT), prepend=0.0).astype(int).tolist(),
        "tracks": {str(index[name]): track for name, track in _tracks(timeline) if name in index},
        "events": events,
        "steps": steps,
        "segments": [list(segment) for segment in timeline.segments],
        "facts": facts[0] if facts else None,
    }


def rest_document(scene: SceneGraph, q: NDArray[np.float64]) -> dict[str, Any]:
    """Return frames, parents and poses relative to the parent as plain values."""
    state = scene.at(q)
    index = {name: i for i, name in enumerate(scene.frame_names)}
    parents = {name: scene.parent(name) for name in scene.frame_names}
    return {
        "frames": list(scene.frame_names),
        "parents": [-1 if parent is None else index[parent] for parent in parents.values()],
        "poses": [
            _pose_numbers(state.pose(name, relative_to=parent or name))
            for name, parent in parents.items()
        ],
    }


def _pose_numbers(pose: Pose) -> list[int]:
    """Return a pose in units of :data:`UNIT`."""
    return [round(float(value) / UNIT) for value in (*pose.translation, *pose.quat_xyzw)]


def _changes(before: SceneGraph, after: SceneGraph, index: dict[str, int]) -> Iterator[list[int]]:
    """Yield frame, parent and pose of each frame with another parent or pose in a later version."""
    for frame in diff(before, after).frames:
        later = frame.after
        if later is not None and later.name in index and {"parent", "pose"} & set(frame.fields):
            parent = -1 if later.parent is None else index[later.parent]
            yield [index[later.name], parent, *_pose_numbers(after.local_pose(later.name))]


def _tracks(timeline: PlanTimeline) -> Iterator[tuple[str, list[int]]]:
    """Yield each moving frame with its poses relative to the parent, as differences of samples."""
    scene = timeline.plan.scene
    for frame in scene.frame_names:
        joint = scene.joint(frame)
        parent = scene.parent(frame)
        if parent is None or joint.type in ("fixed", "free"):
            continue
        rows = np.array(scene.pose_batch(frame, relative_to=parent, q=timeline.q))
        flips = np.cumprod(np.where(np.sum(rows[1:, 3:] * rows[:-1, 3:], axis=1) < 0.0, -1.0, 1.0))
        # Keep neighbours in one half of the sphere, so that the page can interpolate.
        rows[1:, 3:] *= flips[:, None]
        numbers = np.rint(rows / UNIT).astype(int)
        if np.any(numbers != numbers[0]):
            differences = np.diff(numbers, axis=0, prepend=np.zeros((1, 7), dtype=int))
            yield frame, differences.T.reshape(-1).tolist()


@with_keyword_hints
def save_html(
    content: Plan | SceneGraph,
    path: str | Path,
    *,
    q: ArrayLike | None = None,
    autoplay: bool = True,
    domain: DomainSource | None = None,
) -> Path:
    """Write a plan or a scene to a single HTML file, and return its path.

    The file opens without a server or a request. A plan has a time line with actions and segments,
    captions, and the facts with the changes of the last action. Facts need a built-in domain, or
    ``domain``. The space key plays and pauses, and the arrow keys move by action.

    Args:
        content: the plan or scene.
        path: path of the file, which ends in ``.html``.
        q: (n_joints,) configuration of a scene [rad or m]. Defaults to zeros.
        autoplay: whether a plan starts when the page opens.
        domain: domain of a plan that is not built in. The semantics of a path are executed.

    Raises:
        ArgumentError: if ``content`` is neither a plan nor a scene.
        OutputError: if the file cannot be written, or its suffix is not ``.html``.
        MissingFileError: if the file of the domain is missing.
        MissingExtraError: if viser is not installed.
    """
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        reason = "a page must end in .html"
        raise OutputError(f"{target}: cannot be written: {reason}", path=str(target), reason=reason)
    check_writable(target)
    write_text(target, page_html(content, q=q, autoplay=autoplay, domain=domain))
    return target


def page_html(
    content: Plan | SceneGraph,
    *,
    q: ArrayLike | None = None,
    autoplay: bool = True,
    domain: DomainSource | None = None,
) -> str:
    """Return the page that :func:`save_html` writes."""
    if not isinstance(content, SceneGraph):
        check_argument(content, Plan, "content", function="save_html", hint=plan_hint(content))
    scene = content.scene if isinstance(content, Plan) else content
    model = scene_model(scene, cell=CELL)
    if isinstance(content, Plan):
        q = content.q
    state = scene.at(scene.zero_configuration() if q is None else q)
    document = {**rest_document(scene, state.q), **model_document(model)}
    title = f"{len(scene)} frames"
    if isinstance(content, Plan):
        document |= {
            "timeline": timeline_document(plan_timeline(content, domain=domain)),
            "autoplay": autoplay,
        }
        title = content.goal
    server = start_server("127.0.0.1", 0)
    try:
        add_nodes(server.scene, model, state.poses)
        set_view(server, model, state.poses)
        page = server.scene.as_html()
    finally:
        stop_server(server)
    text = json.dumps(document, separators=(",", ":"))
    packed = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    script = f"<script>{script_text()}</script><script>tmkit.unpack({json.dumps(packed)})</script>"
    # Hide viser's note about software rendering.
    hidden = "<style>.mantine-Notifications-root{display:none}</style>"
    page = page.replace(
        "<title>Viser</title>",
        f"<title>tmkit: {html.escape(title, quote=False)}</title>{hidden}",
        1,
    )
    end = page.rindex("</body>")
    return page[:end] + script + page[end:]


def script_text() -> str:
    """Return the page's script."""
    return (Path(__file__).with_name("viewer.js")).read_text(encoding="utf-8")


def start_server(host: str, port: int) -> viser.ViserServer:
    """Start a server of viser.

    Args:
        host: address of the server.
        port: port from 0 (any free one) to 65535.

    Raises:
        ConfigurationError: if the port is outside this range, or the host is unknown.
        OutputError: if the port is in use.
    """
    import socket

    if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port <= GREATEST_PORT:
        raise ConfigurationError(
            f"port={port!r}: expected an integer from 0 (any free port) to {GREATEST_PORT}"
        )
    with importing("viser", "viewer", "the viewer needs"):
        import viser
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            reason = (
                f"the port {port} of {host} cannot be used ({error.strerror}); choose another with"
                " --port"
            )
            raise OutputError(reason, path=f"{host}:{port}", reason=reason) from None
        except (UnicodeError, ValueError, TypeError) as error:
            raise ConfigurationError(
                f"host={host!r}: expected a name or address of this machine ({error})"
            ) from None
        port = probe.getsockname()[1]
    with _quiet():
        return viser.ViserServer(host=host, port=port, verbose=False)


def stop_server(server: viser.ViserServer) -> None:
    """Stop a server of viser."""
    with _quiet():
        server.stop()


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress viser's messages on the standard output, which belongs to the caller."""
    import rich

    console = rich.get_console()
    is_quiet, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = is_quiet
