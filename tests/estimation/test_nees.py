"""Consistency of a scene's errors after looking, picking, carrying, placing and grasping."""

from __future__ import annotations

import os

import numpy as np
import pytest
from support.nees_runs import as_independent, compute_squared_distances, keep_all

from tmkit import Measurement, Pose, Revolute, SceneGraph
from tmkit.spatial import GaussianPose, chi_square_quantile

RUNS = int(os.environ.get("TMKIT_NEES_RUNS", "200"))


@pytest.mark.parametrize("reference", ["world", "camera"])
def test_errors_are_as_large_as_claimed_at_every_stage(reference: str) -> None:
    """The mean squared distance is in its chi-square band, and outside without correlations."""
    low, high = (chi_square_quantile(p, 6 * RUNS) / RUNS for p in (0.0005, 0.9995))
    means = compute_squared_distances(RUNS, forget=keep_all, reference=reference).mean(axis=0)
    assert ((means >= low) & (means <= high)).all(), means
    dropped = compute_squared_distances(RUNS, forget=as_independent, reference=reference).mean(
        axis=0
    )
    assert (dropped < low).all(), dropped


def test_the_whole_distribution_is_right_in_the_end() -> None:
    """Squared distances of single runs are chi-square distributed (Kolmogorov-Smirnov)."""
    from scipy.stats import chi2, kstest

    squared = compute_squared_distances(RUNS, forget=keep_all, reference="world")[:, -1]
    assert kstest(squared, chi2(6).cdf).pvalue > 1e-3
    assert np.isfinite(squared).all()


def test_an_error_behind_a_joint_is_corrected_for_the_configuration_of_the_measurement() -> None:
    """A correction of a joint's edge is valid at q, and behind the joint at any configuration."""
    xi = np.array([2e-3, -1e-3, 3e-3, 2e-3, 4e-3, -1e-3])
    small = 1e-5 * np.eye(6)
    on_joint = SceneGraph().add_frame(
        "elbow", "world", joint=Revolute([0, 0, 1]), pose=GaussianPose(covariance=small)
    )
    behind = (
        SceneGraph()
        .add_frame("turn", "world", joint=Revolute([0, 0, 1]))
        .add_frame("elbow", "turn", pose=GaussianPose(covariance=small))
    )
    true = behind.set_covariance("elbow", None).set_pose("elbow", Pose.exp(xi))
    q_look, q_late = [0.3], [1.8]
    look = Measurement.of_pose(
        "elbow",
        true.pose("elbow", relative_to="world", q=q_look),
        relative_to="world",
        covariance=np.zeros((6, 6)),
    )
    for scene, everywhere in ((on_joint, False), (behind, True)):
        conditioned = scene.condition(look, q=q_look)
        assert conditioned.pose("elbow", relative_to="world", q=q_look).is_close(
            true.pose("elbow", relative_to="world", q=q_look)
        )
        assert (
            conditioned.pose("elbow", relative_to="world", q=q_late).is_close(
                true.pose("elbow", relative_to="world", q=q_late)
            )
            is everywhere
        )
