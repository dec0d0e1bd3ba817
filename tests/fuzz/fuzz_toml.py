"""Fuzz the reader of robot descriptions: ``fuzz_toml.py --seconds 600 --seed 1``."""

from __future__ import annotations

from engine import Target, main

from tmkit._support.data import data_path
from tmkit.robots import load_manipulator


def target() -> Target:
    """Return the reader of robot descriptions with one of ours to begin with."""
    return Target(
        "toml",
        "main.toml",
        load_manipulator,
        [data_path("scenes/robots/panda.toml").read_bytes()],
        tokens=(
            b'[gripper] [a] [[a]] = { } """ true 1979-05-27 inf nan 0x10 kind suction joints open'
            b" closed".split()
        ),
        nestings=[(b"[", b"]"), (b"{a=", b"}"), (b"a.", b"")],
    )


if __name__ == "__main__":
    main([target()], description=__doc__ or "")
