"""Search settings: validated at construction, complete, and in Python only."""

from __future__ import annotations

import pickle
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from support.blocks import blocks_scene
from support.gantry import GANTRY

import tmkit as tk
from tmkit._support.options import option_kinds
from tmkit.errors import ArgumentError, ConfigurationError, TmkitError
from tmkit.tamp import PlanningOptions, SearchSettings

SETTINGS = fields(SearchSettings)


@pytest.mark.parametrize("entry", SETTINGS, ids=lambda entry: entry.name)
@pytest.mark.parametrize("bad", [0, -1, True, "3", None, float("nan"), float("inf"), 10**400])
def test_values_outside_the_range_are_rejected(entry: Any, bad: object) -> None:
    """A single value and an item of a sequence are checked; the error has name and value."""
    values: list[Any] = [bad, (bad,), (1, bad)]
    for value in values:
        with pytest.raises(
            ConfigurationError, match=f"^search setting {entry.name} must be .*positive"
        ) as caught:
            SearchSettings(**{entry.name: value})
        assert caught.value.data["option"] == entry.name


@pytest.mark.parametrize("entry", SETTINGS, ids=lambda entry: entry.name)
def test_settings_are_used_described_and_plain(entry: Any) -> None:
    """The search reads each setting, which has a description and a number of its kind."""
    package = Path(tk.__file__).parent / "tamp"
    sources = "".join(path.read_text() for path in sorted(package.glob("search/*.py")))
    assert (
        re.search(rf"settings\.{entry.name}\b|search\.{entry.name}\b", sources)
        or entry.name == "all_objects_after"
    )
    assert f"        {entry.name}: " in (SearchSettings.__doc__ or "")
    values: dict[str, Any] = {entry.name: (1,) if isinstance(entry.default, tuple) else 1}
    changed = SearchSettings(**values)
    assert repr(changed).startswith(f"SearchSettings({entry.name}=")
    assert pickle.loads(pickle.dumps(changed)) == changed


def test_the_documentation_has_every_setting_in_order_with_units() -> None:
    """The docstring lists the settings in the order of the fields; lengths have a unit."""
    attributes = (SearchSettings.__doc__ or "").partition("Attributes:")[2].partition("Raises:")[0]
    entries = re.findall(r"^        (\w+): ((?:.*\n)(?: {12}.*\n)*)", attributes, re.MULTILINE)
    assert [name for name, _ in entries] == [each.name for each in SETTINGS]
    assert [name for name, meaning in entries if "[m]" in meaning] == [
        "place_spacing",
        "finger_openings",
    ]


def test_an_unknown_setting_has_the_nearest_name() -> None:
    """The message is that of any option."""
    with pytest.raises(ArgumentError, match="unknown option 'patiense'; did you mean 'patience'"):
        SearchSettings(patiense=3)  # type: ignore[call-arg]


@pytest.mark.parametrize("bad", [3, None, SearchSettings, {"patience": 3}])
def test_the_option_takes_settings_only(bad: Any) -> None:
    """Options reject other values, also the class itself."""
    with pytest.raises(ConfigurationError, match="search must be a SearchSettings, not"):
        PlanningOptions(search=bad)


def test_options_show_changed_settings_only() -> None:
    """Default settings are omitted, also after pickling."""
    assert repr(PlanningOptions(seed=1, search=SearchSettings())) == "PlanningOptions(seed=1)"
    options = PlanningOptions(search=SearchSettings(patience=3))
    assert (
        repr(pickle.loads(pickle.dumps(options)))
        == "PlanningOptions(search=SearchSettings(patience=3))"
    )


def test_files_and_flags_have_no_settings(tmp_path: Path) -> None:
    """The error of a problem file names the option; the command line has no flag."""
    assert "search" not in option_kinds(PlanningOptions)
    file = tmp_path / "problem.toml"
    for text in ("[options]\nsearch = 3\n", "[options.search]\npatience = 3\n"):
        file.write_text(f'scene = ["panda_table", "blocks2"]\ngoal = "(on a b)"\n{text}')
        with pytest.raises(
            TmkitError, match=r"options\.search: is an object, which only Python can give"
        ):
            tk.load_planning_problem(file)


@pytest.mark.parametrize("value", [1, 1_000_000])
def test_extreme_settings_give_a_plan(value: int) -> None:
    """A valid plan is found with every setting at either end of its range."""
    values: dict[str, Any] = {
        entry.name: (value,) * len(entry.default) if isinstance(entry.default, tuple) else value
        for entry in SETTINGS
    }
    scene = blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4)
    options = PlanningOptions(search=SearchSettings(**values), max_iterations=4)
    result = tk.solve(tk.PlanningProblem(scene, goal="(on a b)", robots=GANTRY), options)
    assert result.plan is not None
    assert tk.validate_plan(result.plan).is_valid
