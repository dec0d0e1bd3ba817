"""Speed of PDDL states: derived in full, and from the version before, beside an edit of the scene.

Run by hand: ``pytest tests/benchmarks/bench_states.py --benchmark-enable --benchmark-only``. What
counts is the ratio to the edit in the same run. On one core of a shared machine, for 18 frames and
120 objects of the blocks domain, a state in full costs 270 edits, and one after a pick 22.
"""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import tmkit as tk
from tmkit.tamp import load_planning_domain
from tmkit.tamp.domains.state_derivation import StateDeriver

ROBOT = tk.load_manipulator("panda")
SCENE = tk.load_scene("panda_table", "blocks3")
Q = ROBOT.ready_configuration(SCENE)
HELD = SCENE.reparent("a", "panda_hand", q=Q)


@pytest.mark.parametrize("what", ["edit", "full", "from the version before"])
def test_state(benchmark: BenchmarkFixture, what: str) -> None:
    """Pick up a block; derive the state after it in full; derive it from that before."""
    domain = load_planning_domain("blocks", robot=ROBOT)
    deriver = StateDeriver(domain, domain.semantics.objects(SCENE))
    before = deriver.derive(SCENE, Q)
    if what == "edit":
        assert benchmark(SCENE.reparent, "a", "panda_hand", q=Q) == HELD
    elif what == "full":
        assert benchmark(deriver.derive, HELD, Q).state != before.state
    else:
        assert benchmark(deriver.derive, HELD, Q, before).state == deriver.derive(HELD, Q).state
