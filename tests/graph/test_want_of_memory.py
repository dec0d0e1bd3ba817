"""When memory runs out: an error that Python knows, and scenes that are as they were."""

from __future__ import annotations

import sys

import pytest
from support.processes import run_process

from tmkit.errors import CapacityError
from tmkit.graph import SceneArrays, SceneGraph

_PROGRAM = """
import resource
from tmkit.graph import Free, SceneArrays, SceneGraph
from tmkit.spatial import Pose

scene = SceneGraph().add_frame("cup", "world", joint=Free())
scene = scene.add_stamped_pose("cup", Pose(), stamp=1.0)
digest = scene.digest()
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + 128 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for room in ({"stamps": 2**28}, {"twists": 2**28}, {"frames": 2**24}, {"name_bytes": 2**28}):
    try:
        SceneArrays(scene, capacity=room)
    except MemoryError:
        continue
    raise SystemExit(f"there was room for {room}")
try:
    with scene.edit() as edit:
        for number in range(10**9):
            edit.add_frame(f"frame {number}", "cup")
except MemoryError:
    del edit
assert scene.digest() == digest and scene._defects() == ""
assert len(scene.add_frame("lid", "cup")) == 3
print("lived")
"""


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="limits of memory are set as Linux does"
)
def test_want_of_memory_is_an_error_and_leaves_scenes_alone() -> None:
    """Arrays beyond memory raise MemoryError, and the scene remains usable."""
    done = run_process(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stdout) == (0, "lived\n"), done.stderr


def test_room_beyond_numbers_is_rejected() -> None:
    """More than 2^32 slots raise CapacityError before any allocation."""
    with pytest.raises(
        CapacityError, match="capacity is 2147483648, but at most 1073741824 can be kept"
    ):
        SceneArrays(SceneGraph(), capacity=2**31)
    with pytest.raises(
        CapacityError, match="stamps is 2147483648, but at most 1073741824 can be kept"
    ):
        SceneArrays(SceneGraph(), capacity={"stamps": 2**31})
