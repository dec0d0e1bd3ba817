"""Generators: reproducible and solvable problems, and errors of invalid parameters."""

from __future__ import annotations

from pathlib import Path

import pytest

import tmkit as tk
from tmkit.batch import load_batch
from tmkit.batch.generated_problems import GENERATORS
from tmkit.batch.generators import GeneratorSource, generate
from tmkit.errors import ConfigurationError, FileFormatError, TmkitError

SMALL: dict[str, dict[str, int]] = {
    "clutter": {"side": 3},
    "cook": {"blocks": 1},
    "handover": {"objects": 1},
    "lying": {"cylinders": 1},
    "scattered": {"objects": 5},
    "shelf": {"blocks": 1},
    "swaps": {"blocks": 2},
    "towers": {"blocks": 3},
}


@pytest.mark.parametrize("name", sorted(GENERATORS))
def test_problems_are_reproducible_and_solvable(name: str) -> None:
    """The same seed gives the same scene, and no plan is shorter than the stated optimum."""
    generated, repeated = (generate(name, seed=2, parameters=SMALL.get(name, {})) for _ in range(2))
    assert generated.scene == repeated.scene
    assert (generated.goal, generated.domain) == (repeated.goal, repeated.domain)
    problem, options = GeneratorSource(
        name, SMALL.get(name, {}), tk.PlanningOptions(max_iterations=12)
    ).problem(2)
    result = tk.solve(problem, options)
    assert result.plan is not None
    assert tk.validate_plan(result.plan).is_valid
    assert generated.optimum is None or len(result.plan.steps) >= generated.optimum


def test_hardness_determines_omitted_parameters() -> None:
    """Parameters replace those of the hardness."""
    assert len(generate("swaps", hardness=0.0).scene) < len(generate("swaps", hardness=1.0).scene)
    assert (
        generate("swaps", hardness=1.0, parameters={"blocks": 2}).scene
        == generate("swaps", parameters={"blocks": 2}).scene
    )


@pytest.mark.parametrize(
    ("name", "parameters", "match"),
    [
        ("swap", {}, r"unknown generator 'swap'; did you mean 'swaps'\?"),
        (
            "swaps",
            {"block": 2},
            r"has no parameter 'block'; did you mean 'blocks'\? \(known: blocks\)",
        ),
        (
            "swaps",
            {"blocks": 2.5},
            r"'blocks' of the generator 'swaps' must be of type int, not 2.5",
        ),
        ("swaps", {"blocks": 17}, r"'blocks' of the generator 'swaps' must be 2 to 16, not 17"),
        ("sussman4", {"robot": "pander"}, r"unknown robot 'pander'; did you mean 'panda'\?"),
        (
            "scattered",
            {"objects": 24, "gap": 0.2},
            r"24 objects of 0.05 m with gaps of 0.2 m do not fit on the table",
        ),
    ],
)
def test_invalid_parameters_are_rejected(
    name: str, parameters: dict[str, object], match: str
) -> None:
    """The error names the generator, the parameter and the valid values."""
    with pytest.raises(TmkitError, match=match):
        generate(name, parameters=parameters)


@pytest.mark.parametrize(
    ("name", "hardness", "match"),
    [
        ("swaps", 2.0, r"hardness must be 0 to 1, not 2.0"),
        ("mobile", 0.5, r"the generator 'mobile' has no hardness"),
    ],
)
def test_an_invalid_hardness_is_rejected(name: str, hardness: float, match: str) -> None:
    """A hardness out of range, or of a generator without hardness, raises an error."""
    with pytest.raises(TmkitError, match=match):
        generate(name, hardness=hardness)


def test_batch_files_name_generators(tmp_path: Path) -> None:
    """The grid may contain parameters, and errors of the generator have the line."""
    file = tmp_path / "batch.toml"
    text = (
        '[[problems]]\ngenerator = "swaps"\nseeds = 3\noptions = { max_iterations = 4'
        " }\n[problems.grid]\n"
    )
    file.write_text(text + '"parameters.blocks" = [2, 4]\n', encoding="utf-8")
    batch = load_batch(file)
    assert [job.key for job in batch.jobs()][-1] == "problems[0][parameters.blocks=4]/2"
    problem, options = batch.entries[1].source.problem(2)
    assert problem.scene == generate("swaps", seed=2, parameters={"blocks": 4}).scene
    assert (options.seed, options.max_iterations) == (2, 4)
    assert batch.entries[0].source.digest != batch.entries[1].source.digest
    file.write_text(text + '"parameters.blocks" = [2, 99]\n', encoding="utf-8")
    with pytest.raises(
        FileFormatError,
        match=r"batch\.toml.*'blocks' of the generator 'swaps' must be 2 to 16, not 99",
    ):
        load_batch(file)
    file.write_text('[[problems]]\ngenerator = "swap"\n', encoding="utf-8")
    with pytest.raises(FileFormatError, match=r"batch\.toml:2.*did you mean 'swaps'"):
        load_batch(file)
    with pytest.raises(ConfigurationError):
        generate("swaps", parameters={"blocks": 0})
