"""Offline pages: a scene or a plan in three dimensions as one HTML file that opens without a server or a request.

The page holds viser's client with the meshes, as viser saves them, and tmkit's panel
(``viewer.js``) with a document of frames, actions, segments and facts. The recording of viser
itself would repeat all messages up to a moment whenever the time line goes back. The panel computes
each moment from the moving joints alone instead.

A plan is a time line: samples of the motion with the scene version of each, segments, actions and
facts. The samples hold the pose of each moving frame *in its parent*: a thousand frames on a moving
arm cost no more than the arm. What changes for good (a new parent, another place on the table) is
an *event* at a sample. The document of :func:`timeline_document` is what the page reads: integers,
in units of :data:`UNIT`.
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

from tmkit._support.argument_errors import check_argument, plan_hint
from tmkit._support.extras import importing
from tmkit._support.limits import GREATEST_PORT
from tmkit._support.output import check_writable, write_text
from tmkit.errors import ConfigurationError, OutputError, TmkitError
from tmkit.graph import SceneGraph, diff
from tmkit.plans import Plan, PlanStep, Schedule, Segment, SegmentKind, execute
from tmkit.plans.execution import TimedMotion
from tmkit.robots import Manipulator
from tmkit.spatial import Pose
from tmkit.tamp import PythonDomain
from tmkit.tamp.domains.loading import load_plan_domain
from tmkit.visualization.scene_model import add_nodes, bounds, model_document, scene_model, set_view

if TYPE_CHECKING:
    import viser

_logger = logging.getLogger(__name__)

RATE = 15.0  # samples a second; pages interpolate between them
UNIT = 1e-6  # metres, seconds, components of quaternions
_HAND_SECONDS = 0.4  # in which fingers are shown to close or open
_PAUSE_SECONDS = 0.25  # of an action without motion


@dataclass(eq=False, repr=False)
class PlanTimeline:
    """A plan as samples of configurations in versions of the scene.

    Attributes:
        times, q: (m,) seconds of the samples, (m, n_joints) configurations.
        steps: the last sample of each action, in order.
        order: the actions in that order, as indices of the plan's steps; others where arms act at
            once.
        segments: of each segment the index of its action, what the arm does, the object that is
            handled (empty if none) and its first and last sample.
        facts: the facts that hold at the start and after each action, in PDDL; empty if the domain
            is unavailable.
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
    plan: Plan, *, rate: float = RATE, domain: str | Path | PythonDomain | None = None
) -> PlanTimeline:
    """Return the samples of a plan, ``rate`` a second, within its limits, with the facts of its domain."""
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


def _facts(plan: Plan, own: str | Path | PythonDomain | None) -> list[list[str]]:
    """Return the facts at the start and after each action; none if the domain is neither given nor built in."""
    try:
        domain = load_plan_domain(plan, own)
        objects = domain.semantics.objects(plan.scene)
        versions = [(plan.scene, plan.q), *((step.scene, step.q) for step in plan.steps)]
        return [[str(fact) for fact in domain.state(scene, objects, q)] for scene, q in versions]
    except TmkitError as error:
        if own is not None:
            raise
        _logger.warning("the facts of the plan are not shown: %s", error)
        return []


@dataclass(eq=False)
class _Recorder:
    """An executor that records instead of moving anything."""

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
            self._add(self.scenes[-1], self.q[-1], _PAUSE_SECONDS)

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
            self._end(motion.segment, first)
            # which need not be at rest where the segment ends
            self.q[-1][columns] = motion.timed.positions[-1]

    def grasp(self, arm: Manipulator, segment: Segment) -> None:
        del arm
        first, before = len(self.times) - 1, self.q[-1]
        after = self.scenes[-1].configuration(dict(segment.gripper), base=before)
        count = max(2, round(_HAND_SECONDS * self.rate))
        for share in np.arange(1, count + 1) / count:
            self._add(self.scenes[-1], before + share * (after - before), 1.0 / self.rate)
        self._end(segment, first)

    release = grasp

    def follow_schedule(self, schedule: Schedule) -> None:
        moments, scene = list(schedule.moments()), self.plan.final_scene
        times = np.arange(1, int(np.ceil(schedule.makespan * self.rate)) + 1) / self.rate
        for time, q in zip(times, schedule.q(times), strict=True):
            self._add(
                next((moment.scene for moment in moments if time <= moment.end), scene),
                q,
                1.0 / self.rate,
            )
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
        """Nothing is left to do."""

    def _end(self, segment: Segment, first: int) -> None:
        self.scenes[-1], q = segment.end(self.scenes[-1], self.q[-1])
        self.q[-1] = np.array(q)
        kind, held = segment.kind.value, segment.held or ""
        self.segments.append((len(self.steps), kind, held, first, len(self.times) - 1))

    def _add(self, scene: SceneGraph, q: NDArray[np.float64], seconds: float) -> None:
        self.times.append((self.times[-1] if self.times else 0.0) + seconds)
        self.q.append(np.array(q, dtype=float))
        self.scenes.append(scene)


def timeline_document(timeline: PlanTimeline) -> dict[str, Any]:
    """Return a time line as plain values: poses x, y, z, qx, qy, qz, qw in :data:`UNIT`, tracks as differences."""
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
        steps.append(
            {
                "action": str(step.action),
                "choice": step.choice,
                "end": timeline.steps[place],
                "added": sorted(after - before),
                "removed": sorted(before - after),
            }
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
    """Return frames, parents and poses in the parent as plain values for a page."""
    at = scene.at(q)
    index = {name: i for i, name in enumerate(scene.frame_names)}
    return {
        "frames": list(scene.frame_names),
        "parents": [
            -1 if (p := scene.parent(name)) is None else index[p] for name in scene.frame_names
        ],
        "poses": [
            _numbers(at.pose(name, relative_to=scene.parent(name) or name))
            for name in scene.frame_names
        ],
    }


def _numbers(pose: Pose) -> list[int]:
    return [round(float(value) / UNIT) for value in (*pose.translation, *pose.quat_xyzw)]


def _changes(before: SceneGraph, after: SceneGraph, index: dict[str, int]) -> Iterator[list[int]]:
    """Yield frame, parent and pose of each frame that is at another place in the tree of a later version."""
    for frame in diff(before, after).frames:
        later = frame.after
        if later is not None and later.name in index and {"parent", "pose"} & set(frame.fields):
            parent = -1 if later.parent is None else index[later.parent]
            yield [index[later.name], parent, *_numbers(after.local_pose(later.name))]


def _tracks(timeline: PlanTimeline) -> Iterator[tuple[str, list[int]]]:
    """Yield each frame whose joint moves with its poses in its parent, differences in units of :data:`UNIT`."""
    scene = timeline.plan.scene
    for frame in scene.frame_names:
        joint = scene.joint(frame)
        parent = scene.parent(frame)
        if parent is None or joint.type in ("fixed", "free"):
            continue
        rows = np.array(scene.pose_batch(frame, relative_to=parent, q=timeline.q))
        flips = np.cumprod(np.where(np.sum(rows[1:, 3:] * rows[:-1, 3:], axis=1) < 0.0, -1.0, 1.0))
        # neighbours in one half of the sphere, so that the page may interpolate
        rows[1:, 3:] *= flips[:, None]
        numbers = np.rint(rows / UNIT).astype(int)
        if np.any(numbers != numbers[0]):
            yield (
                frame,
                np.diff(numbers, axis=0, prepend=np.zeros((1, 7), dtype=int))
                .T.reshape(-1)
                .tolist(),
            )


CELL = 1.5e-3  # metres within which vertices of large meshes are joined


def save_html(
    shown: Plan | SceneGraph,
    path: str | Path,
    *,
    q: ArrayLike | None = None,
    autoplay: bool = True,
    domain: str | Path | PythonDomain | None = None,
) -> Path:
    """Write a plan or a scene as one HTML file that opens without a server or a request, and return its path.

    A plan has a time line with its actions and segments, captions, and the facts that hold and that
    the last action changed; facts need a built-in domain, or ``domain``. Space plays and pauses,
    the arrow keys go by action.

    Args:
        shown: the plan or the scene.
        path: the file, which ends in ``.html``.
        q: (n_joints,) configuration of a scene, radians or metres; zero by default.
        autoplay: whether a plan is played when the page opens.
        domain: the domain of a plan that is not built in; by path its semantics are run.

    Raises:
        ArgumentError: it is neither a plan nor a scene.
        OutputError: the file cannot be written, or its name does not end in ``.html``.
        MissingFileError: the domain is not there.
        MissingExtraError: viser is not installed.
    """
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        reason = "a page must end in .html"
        raise OutputError(f"{target}: cannot be written: {reason}", path=str(target), reason=reason)
    check_writable(target)
    write_text(target, page_html(shown, q=q, autoplay=autoplay, domain=domain))
    return target


def page_html(
    shown: Plan | SceneGraph,
    *,
    q: ArrayLike | None = None,
    autoplay: bool = True,
    domain: str | Path | PythonDomain | None = None,
) -> str:
    """Return the page that :func:`save_html` writes."""
    if not isinstance(shown, SceneGraph):
        check_argument(shown, Plan, "shown", function="save_html", hint=plan_hint(shown))
    scene = shown.scene if isinstance(shown, Plan) else shown
    model = scene_model(scene, cell=CELL)
    at = scene.at(
        shown.q if isinstance(shown, Plan) else scene.zero_configuration() if q is None else q
    )
    document = {**rest_document(scene, at.q), **model_document(model)}
    title = f"{len(scene)} frames"
    if isinstance(shown, Plan):
        document |= {
            "timeline": timeline_document(plan_timeline(shown, domain=domain)),
            "autoplay": autoplay,
        }
        title = shown.goal
    server = start_server("127.0.0.1", 0)
    try:
        add_nodes(server.scene, model, at.poses)
        set_view(server, *bounds(model, at.poses))
        page = server.scene.as_html()
    finally:
        stop_server(server)
    packed = base64.b64encode(
        zlib.compress(json.dumps(document, separators=(",", ":")).encode(), 9)
    ).decode()
    script = f"<script>{script_text()}</script><script>tmkit.unpack({json.dumps(packed)})</script>"
    # what viser says of software rendering
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
        host: the address to listen at.
        port: the port, from 0 (any free one) to 65535.

    Raises:
        ConfigurationError: if the port is outside this range, or the host is no name.
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
    """Keep viser from printing its address and its end on the standard output, which belongs to the caller."""
    import rich

    console = rich.get_console()
    was, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = was
