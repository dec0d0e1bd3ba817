"""Batch files: grids, seeds, limits and errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tmkit.batch import load_batch
from tmkit.errors import FileFormatError, MissingFileError

TABLE = '[[problems]]\nname = "tower"\nscene = ["panda_table", "blocks2"]\ngoal = "(on a b)"\n'


def _write_file(folder: Path, text: str) -> Path:
    file = folder / "batch.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_grid_makes_an_entry_for_each_combination_and_a_problem_for_each_seed(
    tmp_path: Path,
) -> None:
    """Seeds vary fastest, then the last key of the grid."""
    grid = (
        '[problems.grid]\nrobots = ["panda"]\n"options.max_iterations" = [1, 4]\ngoal = ["(on a'
        ' b)", "(on b a)"]\n'
    )
    batch = load_batch(_write_file(tmp_path, f"tries = 2\n{TABLE}seeds = 3\n{grid}"))
    assert batch.options.tries == 2
    assert len(batch) == 2 * 2 * 3
    keys = [job.key for job in batch.jobs()]
    assert len({*keys}) == len(keys)
    assert keys[0] == "tower[robots=panda,options.max_iterations=1,goal=(on a b)]/0"
    tasks = [job.entry.source.problem(job.seed) for job in batch.jobs()]
    assert [
        (task.goals[0], options.max_iterations, options.seed) for task, options in tasks[:4]
    ] == [("(on a b)", 1, 0), ("(on a b)", 1, 1), ("(on a b)", 1, 2), ("(on b a)", 1, 0)]


def test_a_problem_file_is_the_base_of_an_entry(tmp_path: Path) -> None:
    """Keys of the entry replace those of the file."""
    (tmp_path / "tower.toml").write_text(
        'scene = ["panda_table", "blocks2"]\ngoal = "(on a b)"\n', encoding="utf-8"
    )
    batch = load_batch(
        _write_file(
            tmp_path, '[[problems]]\nproblem = "tower.toml"\nseeds = [7]\ngoal = "(on b a)"\n'
        )
    )
    (job,) = batch.jobs()
    task, options = job.entry.source.problem(job.seed)
    assert (job.key, task.goals, options.seed) == ("problems[0]/7", ("(on b a)",), 7)


def test_digests_of_different_problems_differ(tmp_path: Path) -> None:
    """Digests do not depend on the seeds."""

    def digest(text: str) -> str:
        return load_batch(_write_file(tmp_path, text)).entries[0].source.digest

    assert digest(TABLE) == digest(TABLE + "seeds = 5\n")
    variants = [
        TABLE.replace("(on a b)", "(on b a)"),
        TABLE.replace("blocks2", "blocks3"),
        TABLE + "options.improve = 1",
    ]
    assert len({digest(TABLE), *map(digest, variants)}) == 4


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", r"needs the key 'problems'"),
        ("problems = []\n", r"problems: the batch has no problem"),
        ("retries = 2\n" + TABLE, r"unknown key 'retries'; did you mean 'tries'\?"),
        ("tries = 0\n" + TABLE, r"batch.toml:1.*tries must be at least 1, not 0"),
        (
            TABLE + "seeds = 0\n",
            r"batch.toml:5.*expected 1 to 10000000 seeds or a list of them, received 0",
        ),
        (TABLE + "seeds = [3, 3]\n", r"the entry 'tower' has a seed twice"),
        (TABLE + "seeds = [-1]\n", r"batch.toml:5.*expected seeds of at least 0"),
        (TABLE + TABLE, r"two entries of the batch have the name 'tower'"),
        (TABLE + "[problems.grid]\nrobots = []\n", r"batch.toml:6.*expected at least one value"),
        (
            TABLE + '[problems.grid]\n"goal.x" = [1]\n',
            r"batch.toml:6.*'goal' must be a table with the key 'x'",
        ),
        (TABLE + "gaol = 2\n", r"batch.toml:5.*unknown key; did you mean 'goal'\?"),
        (TABLE + 'domain = "mine.py"\n', r"batch.toml:5.*is not a built-in domain"),
        (
            TABLE + '[problems.grid]\nscene = ["../../../etc/passwd"]\n',
            r"batch.toml.*lies outside the folders",
        ),
    ],
)
def test_errors_have_the_line(tmp_path: Path, text: str, match: str) -> None:
    """The error of an invalid value has the file, the line and the reason."""
    with pytest.raises(FileFormatError, match=match):
        load_batch(_write_file(tmp_path, text))


def test_a_missing_file_has_the_nearest_name_in_the_error(tmp_path: Path) -> None:
    """The message has the file and the nearest name."""
    _write_file(tmp_path, TABLE)
    with pytest.raises(MissingFileError, match=r"batsh\.toml.*did you mean.*batch\.toml"):
        load_batch(tmp_path / "batsh.toml")
