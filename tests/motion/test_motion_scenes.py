"""Queries of the motion benchmarks: paths are valid and reproducible."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.motion_scenes import ARM, TIP, Query, cubby_query, wall_query

from tmkit.motion import PathSettings, PathStatus, recheck_path, search_path


@pytest.mark.parametrize("make_query", [wall_query, cubby_query])
def test_queries_have_valid_paths(make_query: Callable[[], Query]) -> None:
    """All seeds find a path with a detour that passes the fine check, bitwise reproducible."""
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
        assert all(result.status is PathStatus.SOLVED for result in paths)
        assert len({result.path.tobytes() for result in paths}) == 1
        assert recheck_path(plain, paths[0].path, resolution=0.003, tool_frame=TIP).is_ok
        np.testing.assert_array_equal(paths[0].path[[0, -1]], [query.start, query.goal])
