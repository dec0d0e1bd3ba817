"""Equal plans byte for byte on every CPU, independent of C library, BLAS and numpy."""

from __future__ import annotations

import ast
import json
import os
import platform
import shutil
import sys
from functools import cache
from pathlib import Path

import pytest
from support.golden_plans import GOLDEN, versions
from support.processes import run_process

import tmkit

SUPPORT = Path(__file__).resolve().parents[1] / "support"
ROOT = Path(__file__).resolve().parents[2]

OLDER_CPU = {
    "GLIBC_TUNABLES": (
        "glibc.cpu.hwcaps=-AVX512F,-AVX2,-FMA,-FMA4,-AVX2_Usable,-FMA_Usable,-FMA4_Usable"
    ),
    "OPENBLAS_CORETYPE": "Nehalem",
    "NPY_DISABLE_CPU_FEATURES": (
        "X86_V3 X86_V4 AVX512_ICL AVX512_SPR AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX2 FMA3"
    ),
}
"""Environment without fused products and wide registers; libraries ignore unknown values."""


@cache
def digests(*environment: tuple[str, str]) -> dict[str, str]:
    """Return the digests of the plans of a process with an environment."""
    command = [sys.executable, "-W", "ignore", str(SUPPORT / "golden_plans.py")]
    done = run_process(
        command,
        env={**os.environ, **dict(environment)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results: dict[str, str] = json.loads(done.stdout)
    return results


@pytest.fixture(scope="module")
def last_bits(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a library that changes the last bits of libm, BLAS and LAPACK."""
    if sys.platform != "linux" or shutil.which("g++") is None:
        pytest.skip("needs Linux and g++, to turn over what the C library answers")
    library = tmp_path_factory.mktemp("last_bits") / "last_bits.so"
    options = ["-O2", "-std=c++20", "-shared", "-fPIC", "-fno-builtin", "-o", str(library)]
    run_process(["g++", *options, str(SUPPORT / "last_bits.cpp"), "-ldl"], check=True)
    return str(library)


def test_plans_are_the_recorded_ones() -> None:
    """Plan files have the digests in tests/data, for these versions of the libraries."""
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    results = digests()
    changed_plans = sorted(
        name for name in golden["plans"] if results.get(name) != golden["plans"][name]
    )
    now = versions()
    changed = [
        f"{name} {then} to {now[name]}"
        for name, then in golden["versions"].items()
        if now[name] != then
    ]
    if changed_plans and changed:
        pytest.skip(
            f"plans were recorded with other libraries ({', '.join(changed)}), and"
            f" {', '.join(changed_plans)} differ"
        )
    assert not changed_plans, (
        f"other plans: {', '.join(changed_plans)}; if the change is intended: python"
        " tests/support/golden_plans.py --renew"
    )
    assert sorted(results) == sorted(golden["plans"])


def test_an_older_cpu_and_other_last_bits_make_the_same_plans(last_bits: str) -> None:
    """Plans are equal without AVX2 and with other last bits of libm, BLAS and LAPACK.

    Both changes are tested together to save time, since either would change a digest. The names of
    :data:`OLDER_CPU` are those of x86-64.
    """
    older = OLDER_CPU.items() if platform.machine() == "x86_64" else ()
    assert digests(*older, ("LD_PRELOAD", last_bits)) == digests()


def test_last_bits_are_changed(last_bits: str) -> None:
    """Sines, products and eigenvalues differ by rounding; exact results are equal."""
    code = (
        "import math, numpy as np; a = np.array([[1.1, 2.3], [2.3, 4.7]]);print(*map(float,"
        " (math.sin(1.0), math.exp(0.3), math.atan2(1.0, 3.0), a[0] @ a[1], (a @ a)[0, 1],(a @"
        " a[0])[1], np.linalg.inv(a)[0, 1], np.linalg.eigh(a)[1][0, 1],"
        " np.linalg.svd(a)[1][0],math.cos(0.0), 1.5**2)))"
    )
    runs = [
        run_process(
            [sys.executable, "-c", code],
            env={**os.environ, **more},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for more in ({}, {"LD_PRELOAD": last_bits})
    ]
    plain, turned = ([float(word) for word in words] for words in runs)
    assert plain[-2:] == turned[-2:] == [1.0, 2.25]
    assert all(a != b for a, b in zip(plain[:-2], turned[:-2], strict=True))
    assert plain == pytest.approx(turned, rel=1e-14)


NOT_HARMLESS = {
    "math": (
        "acos asin atan atan2 cos cosh erf erfc exp expm1 gamma lgamma log log10 log1p log2 pow sin"
        " sinh tan tanh"
    ),
    "np": (
        "arccos arcsin arctan arctan2 cos dot exp expm1 hypot inner linalg log log10 log1p log2"
        " matmul power sin tan tensordot vdot vecdot"
    ),
}
MAY = {
    ("tmkit/formats/mesh/meshes.py", "np.linalg"): "the sign of a determinant",
    (
        "tmkit/formats/convex_pieces.py",
        "np.linalg",
    ): "axes along which pieces of another library are cut again",
    (
        "tmkit/formats/convex_pieces.py",
        "np.arctan2",
    ): "whether a point is inside by more than half a turn",
    ("tmkit/formats/gltf/scene.py", "np.linalg"): "the sign of a determinant",
    ("tmkit/formats/usd/reader.py", "np.linalg"): "the sign of a determinant",
    ("tmkit/formats/usd/writer.py", "np.linalg"): "the sign of a determinant",
}


def test_planning_uses_no_library_for_rounded_numbers() -> None:
    """Planning uses tmkit._support.elementary, not libm, BLAS or LAPACK, with known exceptions."""
    package = Path(tmkit.__file__).parent
    names = ("_support", "formats", "manipulation", "motion", "plans", "robots", "tamp")
    folders = [*(package / name for name in names), ROOT / "domains"]
    results = set()
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                words = ast.unparse(node).split(".") if isinstance(node, ast.Attribute) else []
                if len(words) == 2 and words[1] in NOT_HARMLESS.get(words[0], "").split():
                    name = path.relative_to(
                        package.parent if package in path.parents else ROOT
                    ).as_posix()
                    results.add((name, ".".join(words)))
    assert results == set(MAY)
