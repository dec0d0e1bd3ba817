"""Hostile files of commands, which end soon, with bounded memory, a message and exit code 2.

Every case runs in a separate process with bounded address space and time. It is forked from a
process that has imported the modules of the command.
"""

from __future__ import annotations

import gc
import gzip
import importlib
import json
import multiprocessing
import os
import resource
import struct
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

import tmkit as tk
from tmkit import cli
from tmkit._support.data import data_roots
from tmkit._support.limits import ReadingLimits
from tmkit.errors import FileFormatError, TmkitError
from tmkit.formats import ReadingOptions, load_scene
from tmkit.robots.robot_files import find_manipulator
from tmkit.tamp import load_planning_domain

MEGABYTES = 1500
SECONDS = 60.0
LONG = "x" * 1_000_000
DEEP = 100_000
TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
POSITIONS = '<float_array id="f" count="9">0 0 0 1 0 0 0 1 0</float_array>'
DAE = f"""<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<library_images><image id="i"><init_from>picture.png</init_from></image></library_images>
<library_geometries><geometry id="g"><mesh><source id="s">{POSITIONS}<technique_common>
<accessor source="#f" count="3" stride="3"><param name="X" type="float"/>
<param name="Y" type="float"/>
<param name="Z" type="float"/></accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#s"/></vertices>
<triangles count="1"><input semantic="VERTEX" source="#v" offset="0"/><p>0 1 2</p></triangles>
</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="w"><node><instance_geometry url="#g"/></node>
</visual_scene>
</library_visual_scenes><scene><instance_visual_scene url="#w"/></scene></COLLADA>"""
LAUGHS = '<!ENTITY a "ha">' + "".join(
    f'<!ENTITY {new} "{f"&{old};" * 10}">' for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.fixture(scope="module", autouse=True)
def _everything_is_imported(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Read a file of each kind, to import the readers before processes are forked."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "x.obj").write_text(TETRAHEDRON, encoding="ascii")
    (folder / "x.dae").write_text(DAE, encoding="ascii")
    (folder / "x.robray").write_text(
        'frame a { geometry { mesh "x.obj"; } } frame b { geometry { mesh "x.dae"; } }',
        encoding="ascii",
    )
    load_scene(folder / "x.robray")
    scene = load_scene("panda_table", "blocks2")
    load_planning_domain("blocks", robot=find_manipulator("panda", scene))
    importlib.import_module("tmkit.cli.commands")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder that is the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str | Path, megabytes: int = MEGABYTES) -> tuple[int, str]:
    """Run the command in a process with limits, and return its exit code and output."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(
        target=_command, args=(theirs, [str(word) for word in arguments], megabytes)
    )
    process.start()
    theirs.close()
    process.join(SECONDS)
    if process.exitcode is None:
        process.kill()
        pytest.fail(f"tmkit {' '.join(map(str, arguments))[:200]} did not end within {SECONDS:g} s")
    output = Path("said.txt").read_text(encoding="utf-8", errors="replace")
    assert process.exitcode == 0, f"the process ended with {process.exitcode}: {output[-2000:]}"
    return int(ours.recv()), output


def _command(connection: Connection, arguments: list[str], megabytes: int) -> None:
    gc.freeze()  # a collection would copy the memory shared with the tests
    output = os.open("said.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__  # pytest has put its own there
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    resource.setrlimit(
        resource.RLIMIT_AS, (pages * resource.getpagesize() + (megabytes << 20),) * 2
    )
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.argv = ["tmkit", *arguments]
    try:
        cli.main()
    except SystemExit as ended:
        connection.send(ended.code)


def require_rejection(outcome: tuple[int, str], *parts: str) -> None:
    """Require exit code 2 and a short message with these parts, without a traceback."""
    code, output = outcome
    assert code == 2, output[-2000:]
    assert "Traceback" not in output
    assert len(output) < 3000
    for part in parts:
        assert part in " ".join(output.split())


# --- size


def test_too_many_frames_are_rejected_before_they_are_made(folder: Path) -> None:
    """The limit rejects 100,001 links of a robot and as many frames of a JSON scene."""
    links = "".join(f'<link name="{i}"/>' for i in range(100_001))
    (folder / "x.urdf").write_text(f'<robot name="r">{links}</robot>', encoding="ascii")
    document = {
        "format": "tmkit-scene",
        "version": 1,
        "shapes": {},
        "allowed": [],
        "frames": [0] * 100_001,
    }
    (folder / "x.json").write_text(json.dumps(document), encoding="ascii")
    (folder / "x.robray").write_text("frame a {}\n" * 400_000, encoding="ascii")
    for suffix in ("urdf", "json"):
        require_rejection(
            run("scene", "dump", f"./x.{suffix}"), f"x.{suffix}", "more than 100000 frames"
        )
    require_rejection(
        run("scene", "dump", "./x.robray"), "x.robray: is too large: 4.4 MB, expected at most 4 MB"
    )


def test_the_limit_of_frames_counts_all_files(folder: Path) -> None:
    """The limits apply to the frames and bytes of all files together."""
    for name in "abc":
        (folder / f"{name}.robray").write_text(
            f"frame {name}1 {{}} frame {name}2 {{}}\n", encoding="ascii"
        )
    (folder / "all.robray").write_text(
        "".join(f'include "{name}.robray"\n' for name in "abc"), encoding="ascii"
    )
    limits = ReadingLimits(frames=5)
    for files in (["a.robray", "b.robray", "c.robray"], ["all.robray"]):
        assert (
            len(
                load_scene(
                    *(folder / file for file in files),
                    reading=ReadingOptions(limits=ReadingLimits(frames=6)),
                )
            )
            == 7
        )
        with pytest.raises(
            FileFormatError, match=r"c\.robray:1:\d+: the scene has more than 5 frames"
        ):
            load_scene(*(folder / file for file in files), reading=ReadingOptions(limits=limits))
    with pytest.raises(
        FileFormatError,
        match=r"b\.robray: with the files read before it, it has more than 0\.0001 MB",
    ):
        load_scene(
            folder / "all.robray", reading=ReadingOptions(limits=ReadingLimits(robray_bytes=100))
        )


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("x.urdf", f'<robot name="r"><link name="{LONG}"/><link name="{LONG}"/></robot>'),
        ("x.urdf", f'<robot name="r"><link name="a"/><joint name="j" type="{LONG}"/></robot>'),
        ("x.urdf", f'<{LONG} name="r"/>'),
        ("x.robray", f"frame {LONG} {{}} frame {LONG} {{}}"),
        ("x.robray", f"frame a {{ isa {LONG}; }}"),
        ("x.robray", f'include "{LONG}"'),
        ("x.json", f'{{"{LONG}": 1}}'),
        ("x.json", f'{{"format": "{LONG}"}}'),
        ("x.json", f'{{"format": "tmkit-scene", "version": {LONG!r}}}'.replace("'", '"')),
        ("x.srdf", f'<robot><group name="{LONG}"/><joint/><group/></robot>'),
    ],
    ids=[
        "link",
        "joint-type",
        "tag",
        "frame",
        "class",
        "include",
        "key",
        "format",
        "version",
        "group",
    ],
)
def test_names_of_a_megabyte(folder: Path, file: str, text: str) -> None:
    """A message about a name of a megabyte is short."""
    (folder / file).write_text(text, encoding="ascii")
    require_rejection(run("scene", "dump", f"./{file}"), file)


def test_a_long_chain_is_shown_in_few_bytes(folder: Path) -> None:
    """The listing of a chain does not grow with the square of its length."""
    text = "frame f0 {}\n" + "".join(f"frame f{i} {{ parent f{i - 1}; }}\n" for i in range(1, 3000))
    (folder / "x.robray").write_text(text, encoding="ascii")
    code, output = run("scene", "dump", "./x.robray")
    assert code == 0
    assert "(3000 deep) f2999" in output
    assert len(output) < 400_000


def test_a_robot_all_of_whose_links_collide(folder: Path) -> None:
    """Three hundred links in one place are loaded, with a note about the skipped search."""
    box = '<collision><geometry><box size="1 1 1"/></geometry></collision>'
    links = "".join(
        f'<link name="l{i}">{box}</link><joint name="j{i}" type="continuous"><parent'
        f' link="l"/><child link="l{i}"/></joint>'
        for i in range(300)
    )
    (folder / "x.urdf").write_text(
        f'<robot name="r"><link name="l"/>{links}</robot>', encoding="ascii"
    )
    code, output = run("scene", "dump", "./x.urdf")
    assert code == 0, output
    assert "more than 1000 pairs of links collide in one configuration" in " ".join(output.split())


# --- meshes


def mesh(name: str, data: bytes | str) -> tuple[int, str]:
    """Run the command on a scene with one mesh."""
    Path(name).write_bytes(data.encode() if isinstance(data, str) else data)
    Path("x.robray").write_text(f'frame a {{ geometry {{ mesh "{name}"; }} }}', encoding="ascii")
    return run("scene", "dump", "./x.robray")


def test_textures_are_never_opened(folder: Path) -> None:
    """Materials and pictures that are pipes, which would be waited for for ever, are left alone."""
    for name in ("looks.mtl", "picture.png"):
        os.mkfifo(folder / name)
    assert mesh("x.obj", f"mtllib looks.mtl\nusemtl a\n{TETRAHEDRON}")[0] == 0
    assert mesh("x.dae", DAE)[0] == 0
    (folder / "looks.mtl").unlink()
    (folder / "looks.mtl").write_text("newmtl a\nmap_Kd picture.png\n", encoding="ascii")
    assert mesh("y.obj", f"mtllib looks.mtl\nusemtl a\n{TETRAHEDRON}")[0] == 0


def test_packed_meshes_are_not_unpacked(folder: Path) -> None:
    """A gigabyte of zeros compressed to a megabyte is rejected under every suffix."""
    packed = gzip.compress(bytes(50_000_000), compresslevel=1)
    with zipfile.ZipFile(folder / "zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("x.obj", bytes(50_000_000))
    for name in ("x.obj.gz", "x.zip", "x.3mf"):
        require_rejection(mesh(name, packed), "x.robray:1", "a mesh of unknown kind")
    for name in ("x.stl", "x.obj", "x.dae", "x.ply", "x.glb", "x.gltf"):
        require_rejection(mesh(name, packed), "x.robray:1", name)
        require_rejection(mesh(name, (folder / "zip").read_bytes()), "x.robray:1", name)


@pytest.mark.parametrize("coding", ["utf-8", "utf-16"])
@pytest.mark.parametrize(
    "body", ['<COLLADA x="&i;"/>', "<COLLADA><a>&i;</a></COLLADA>", "<COLLADA/>"]
)
def test_entities_in_meshes_are_rejected(folder: Path, coding: str, body: str) -> None:
    """COLLADA with a document type is rejected, so entities are never expanded."""
    text = f'<?xml version="1.0" encoding="{coding}"?><!DOCTYPE a [{LAUGHS}]>{body}'
    require_rejection(mesh("x.dae", text.encode(coding)), "x.robray:1")


def test_meshes_beyond_the_limits(folder: Path) -> None:
    """Files of 300 MB, too many triangles and missing memory are rejected."""
    with (folder / "x.stl").open("wb") as file:
        file.truncate(300_000_000)
    (folder / "x.robray").write_text('frame a { geometry { mesh "x.stl"; } }', encoding="ascii")
    require_rejection(
        run("scene", "dump", "./x.robray"),
        "x.robray:1",
        "is too large: 300 MB, expected at most 200 MB",
    )
    with (folder / "x.stl").open("wb") as file:
        file.write(bytes(80) + struct.pack("<I", 2_000_001))
        file.truncate(84 + 50 * 2_000_001)
    require_rejection(
        run("scene", "dump", "./x.robray", megabytes=150),
        "x.robray:1",
        "the mesh needs more memory than is available",
    )
    require_rejection(
        run("scene", "dump", "./x.robray"),
        "x.robray:1",
        "2000001 triangles, expected at most 2000000",
    )


# --- depth


def test_deep_nesting(folder: Path) -> None:
    """Nesting of depth 100,000 is rejected in every format."""
    for name, text in {
        "a.robray": "frame a { " * DEEP,
        "a.urdf": '<robot name="r">' + "<link>" * DEEP,
        "a.srdf": "<robot>" * DEEP,
        "a.json": "[" * DEEP,
    }.items():
        (folder / name).write_text(text, encoding="ascii")
        require_rejection(run("scene", "dump", f"./{name}"), name)
    require_rejection(mesh("x.dae", "<COLLADA>" * DEEP), "x.robray:1")
    (folder / "plan.json").write_text('{"a":' * DEEP, encoding="ascii")
    require_rejection(run("check", "plan.json"), "plan.json")
    (folder / "a.toml").write_text("a = " + "[" * 20_000, encoding="ascii")
    goal = ("--goal", "(on a b)", "-o", "p.json")
    require_rejection(run("plan", "panda_table", "blocks2", *goal, "--robot", "./a.toml"), "a.toml")
    require_rejection(run("plan", "panda_table", "blocks2", *goal, "--start", "a.json"), "a.json")
    require_rejection(
        run("plan", "panda_table", "blocks2", "--goal", "(and " * 20_000, "-o", "p.json"), "goal"
    )
    (folder / "a.pddl").write_text("(" * DEEP, encoding="ascii")
    require_rejection(
        run("plan", "panda_table", "blocks2", "--problem", "a.pddl", "-o", "p.json"), "a.pddl"
    )


# --- what is no file


def commands(name: str) -> Iterator[tuple[str, ...]]:
    """Yield the command lines that read a file, with the suffix as an option."""
    for suffix in ("robray", "urdf", "json", "srdf"):
        yield "scene", "dump", f"./{name}.{suffix}"
    yield "check", f"./{name}.json"
    yield (
        "check",
        f"./{name}.tmp",
        "--scene",
        "panda_table",
        "--scene",
        "blocks2",
        "--goal",
        "(on a b)",
    )
    plan = ("plan", "panda_table", "blocks2", "-o", "out.json")
    yield *plan, "--goal-scene", f"./{name}.robray"
    yield *plan, "--problem", f"./{name}.pddl"
    goal = (*plan, "--goal", "(on a b)")
    yield *goal, "--robot", f"./{name}.toml"
    yield *goal, "--robot", f"./{name}.srdf:arm"
    yield *goal, "--start", f"./{name}.json"
    yield *goal, "--start", f"./{name}.tmp"
    yield *goal, "--domain", f"./{name}.pddl", "--semantics", "blocks"
    yield *goal, "--semantics", f"./{name}.py"


SUFFIXES = ("robray", "urdf", "json", "srdf", "tmp", "pddl", "toml", "py", "stl")


@pytest.mark.parametrize("kind", ["pipe", "device", "loop", "folder"])
def test_what_is_no_file(folder: Path, kind: str) -> None:
    """Every command rejects pipes, endless devices, cyclic links and folders."""
    for suffix in SUFFIXES:
        path = folder / f"odd.{suffix}"
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "device":
            path.symlink_to("/dev/zero")
        elif kind == "loop":
            path.symlink_to(path.name)
        else:
            path.mkdir()
    for command in commands("odd"):
        require_rejection(run(*command), "odd")
    for text in ('frame a { geometry { mesh "odd.stl"; } }', 'include "odd.robray"'):
        (folder / "x.robray").write_text(text, encoding="ascii")
        require_rejection(run("scene", "dump", "./x.robray"), "x.robray:1", "odd")


@pytest.mark.skipif(
    os.name != "posix" or os.geteuid() != 0, reason="takes another user's rights for a moment"
)
def test_files_that_may_not_be_read() -> None:
    """A file or folder without permission is rejected with the reason."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        closed = folder / "closed"
        closed.mkdir()
        for path in (folder / "x.robray", folder / "m.stl", closed / "m.stl"):
            path.write_text("frame a {}", encoding="ascii")
            path.chmod(0o000)
        closed.chmod(0o000)
        for file, mesh_name in (("y", "m.stl"), ("z", "closed/m.stl")):
            (folder / f"{file}.robray").write_text(
                f'frame a {{ geometry {{ mesh "{mesh_name}"; }} }}'
            )
        roots = data_roots()
        os.seteuid(65534)
        try:
            if not all(os.access(root, os.R_OK, effective_ids=True) for root in roots):
                pytest.skip("the installed package itself may not be read by other users")
            with pytest.raises(
                FileFormatError, match=r"x\.robray: cannot be read: Permission denied"
            ):
                load_scene(folder / "x.robray")
            with pytest.raises(
                FileFormatError,
                match=r"y\.robray:1:\d+: .*m\.stl: cannot be read: Permission denied",
            ):
                load_scene(folder / "y.robray")
            with pytest.raises(
                FileFormatError, match=r"z\.robray:1:\d+: there is no file 'closed/m\.stl'"
            ):
                load_scene(folder / "z.robray")
            with pytest.raises(TmkitError, match=r"closed/x\.robray"):
                load_scene(closed / "x.robray")
        finally:
            os.seteuid(0)
            closed.chmod(0o755)


def test_files_that_change_while_they_are_read(folder: Path) -> None:
    """If other programs change the files, a load ends in a scene or in an error of tmkit."""
    texts = [
        'frame a { geometry { mesh "m.obj"; } }\n',
        "frame a {",
        'frame a {} frame b { parent "c"; }\n' * 50,
        "",
    ]
    done = threading.Event()

    def change() -> None:
        while not done.is_set():
            for index, text in enumerate(texts):
                (folder / "x.robray").write_text(text, encoding="ascii")
                (folder / "m.obj").write_text(
                    TETRAHEDRON[: 10 * index] or TETRAHEDRON, encoding="ascii"
                )
                (folder / "new").write_text(texts[0], encoding="ascii")
                (folder / "new").replace(folder / "x.robray")
                (folder / "m.obj").unlink()

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(150):
            try:
                assert len(load_scene(folder / "x.robray")) >= 1
            except TmkitError as error:
                assert "x.robray" in str(error)  # noqa: PT017 - a value is as good
    finally:
        done.set()
        thread.join()


def test_a_scene_that_needs_more_memory_than_there_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Want of memory is an error of the file, not of tmkit."""

    def exhaust(*arguments: object, **options: object) -> None:
        raise MemoryError

    (folder / "x.robray").write_text("frame a {}", encoding="ascii")
    monkeypatch.setattr("tmkit.formats.reading.build_scene", exhaust)
    with pytest.raises(
        FileFormatError, match=r"x\.robray: reading the scene needs more memory than is available"
    ):
        tk.load_scene(folder / "x.robray")
    require_rejection(run("scene", "dump", "./x.robray"), "more memory than is available")
