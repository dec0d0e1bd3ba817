"""The queries that the benchmarks time, solved: each path is valid, and a seed gives one path."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.motion_scenes import ARM, TIP, Query, cubby_query, wall_query

from tmkit.motion import PathSettings, PathStatus, recheck_path, search_path


@pytest.mark.parametrize("make_query", [wall_query, cubby_query])
def test_queries_are_answered_by_valid_paths(make_query: Callable[[], Query]) -> None:
    """All seeds find a path that passes the fine check and needs a detour; a seed finds the same one, bit for bit."""
    query = make_query()
    world, plain = query.world(0.001), query.world(0.0)
    assert not world.is_edge_free(query.start, query.goal)
    for seed in range(5):
        paths = [
            search_path(
                searched, ARM, start=query.start, goals=query.goal, settings=PathSettings(seed=seed)
            )
            for searched in (
                world,
                world.moved_to(query.scene),
                query.world(0.0).moved_to(query.scene, margin=0.001),
            )
        ]
        assert all(found.status is PathStatus.SOLVED for found in paths)
        assert len({found.path.tobytes() for found in paths}) == 1
        assert recheck_path(plain, paths[0].path, resolution=0.003, tool_frame=TIP).is_ok
        np.testing.assert_array_equal(paths[0].path[[0, -1]], [query.start, query.goal])
