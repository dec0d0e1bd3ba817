"""Atomic output: files are complete or absent, and remains of killed processes are removed."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support.processes import Process, run_process

from tmkit._support import output
from tmkit._support.output import check_writable, write_files, write_text
from tmkit.errors import OutputError

WRITER = """
import os, signal, sys
from pathlib import Path
from tmkit._support import output

def replace(first, second):
    print("ready", flush=True)
    sys.stdin.read()

output.os.replace = replace
output.write_text(Path(sys.argv[1]), "half")
"""


def writer(path: Path) -> Process:
    """Start a process that has written a file beside its place, and waits."""
    process = Process(
        [sys.executable, "-c", WRITER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_a_file_takes_the_place_of_another(tmp_path: Path) -> None:
    """A written file has its contents, and no other file remains."""
    path = tmp_path / "x.json"
    write_text(path, "one")
    write_files({path: b"two"})
    assert path.read_text(encoding="utf-8") == "two"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interruption_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is raised while writing, the old file stays, and nothing beside it."""
    path = tmp_path / "x.json"
    write_text(path, "old")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(output.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_text(path, "new")
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_process_left_goes_and_what_others_write_stays(tmp_path: Path) -> None:
    """The next writer of a file removes the remains of a dead process, and nothing else."""
    path = tmp_path / "x.json"
    write_text(path, "old")
    dead, living, other = writer(path), writer(path), writer(tmp_path / "y.json")
    foreign = tmp_path / ".x.json.mine"
    foreign.write_text("mine", encoding="utf-8")
    assert len(list(tmp_path.iterdir())) == 5
    for process in (dead, other):
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert path.read_text(encoding="utf-8") == "old"
    write_text(path, "new")
    assert path.read_text(encoding="utf-8") == "new"
    left = {
        entry.name.rpartition(".")[0]
        for entry in tmp_path.iterdir()
        if entry not in (path, foreign)
    }
    assert left == {".x.json", ".y.json"}
    assert len(list(tmp_path.iterdir())) == 4
    living.communicate("")
    write_text(path, "last")
    write_text(tmp_path / "y.json", "last")
    assert set(tmp_path.iterdir()) == {path, foreign, tmp_path / "y.json"}


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The error names the file."""
    with pytest.raises(OutputError, match=r"cannot write '.*x.json': No such file"):
        write_text(tmp_path / "nowhere" / "x.json", "text")


def test_a_device_is_written_and_stays_a_device(tmp_path: Path) -> None:
    """A file that is not regular is written in place, named directly or by a link."""
    device, link = tmp_path / "null", tmp_path / "link"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        device.write_bytes(b"works")
    except PermissionError:
        pytest.skip("only root makes devices")
    link.symlink_to("null")
    for path in (device, link):
        check_writable(path)
        write_text(path, "text")
        assert stat.S_ISCHR(os.stat(device).st_mode)
    assert link.is_symlink()
    assert sorted(tmp_path.iterdir()) == [link, device]


def test_a_full_device_is_an_error(tmp_path: Path) -> None:
    """A device that takes nothing is an output that cannot be written."""
    (tmp_path / "full").symlink_to("/dev/full")
    with pytest.raises(OutputError, match=r"cannot write '.*full': No space left on device"):
        write_text(tmp_path / "full", "text")


def test_a_pipe_hands_the_output_on(tmp_path: Path) -> None:
    """A named pipe stays one, and its reader gets all of it."""
    pipe, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    check_writable(pipe)
    write_files({pipe: b"x" * 300_000})
    reader.join()
    assert read == [b"x" * 300_000]
    assert stat.S_ISFIFO(os.stat(pipe).st_mode)


@pytest.mark.parametrize("descriptor", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
@pytest.mark.parametrize("through", ["file", "pipe"])
def test_the_standard_output_by_its_path(descriptor: str, through: str, tmp_path: Path) -> None:
    """Standard output receives the text in print order, for any target."""
    program = (
        "import sys; from pathlib import Path; from tmkit._support.output import write_text;"
        f" print('one');write_text(Path({descriptor!r}), 'two\\n'); print('three')"
    )
    path = tmp_path / "out"
    with path.open("wb") as file:
        command = [sys.executable, "-c", program]
        ran = run_process(
            command, stdout=file if through == "file" else subprocess.PIPE, check=True
        )
    assert (path.read_bytes() if through == "file" else ran.stdout) == b"one\ntwo\nthree\n"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("exists", [True, False])
def test_links_are_followed(exists: bool, tmp_path: Path) -> None:
    """A chain of links is kept, and its target is written, even if it does not exist."""
    (tmp_path / "there").mkdir()
    real = tmp_path / "there" / "real.json"
    if exists:
        write_text(real, "old")
    (tmp_path / "there" / "second").symlink_to("real.json")
    first = tmp_path / "first"
    first.symlink_to("there/second")
    check_writable(first)
    write_text(first, "new")
    assert first.is_symlink()
    assert real.read_text(encoding="utf-8") == "new"
    assert not real.is_symlink()
    assert {path.name for path in tmp_path.rglob("*")} == {"first", "there", "second", "real.json"}


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    """A circle of links is an error that names the file."""
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for refused in (check_writable, lambda path: write_text(path, "text")):
        with pytest.raises(OutputError, match=r"a.*: Too many levels of symbolic links"):
            refused(tmp_path / "a")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755, 0o666])
def test_a_file_keeps_its_mode_and_owner(mode: int, tmp_path: Path) -> None:
    """A rewritten file keeps mode and owner; a new one has the mode of the user's mask."""
    path, new = tmp_path / "x.json", tmp_path / "new.json"
    path.write_text("old", encoding="utf-8")
    if os.geteuid() == 0:
        os.chown(path, 1234, 4321)
    path.chmod(mode)
    before = os.stat(path)
    mask = os.umask(0o027)
    try:
        write_text(path, "new")
        write_text(new, "new")
    finally:
        os.umask(mask)
    after = os.stat(path)
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )
    assert stat.S_IMODE(os.stat(new).st_mode) == 0o640


def test_a_long_name_can_be_written(tmp_path: Path) -> None:
    """A name of maximal length in two-byte letters leaves room for the temporary name."""
    path = tmp_path / ("\N{GREEK SMALL LETTER PI}" * 127)
    write_text(path, "one")
    write_text(path, "two")
    assert list(tmp_path.iterdir()) == [path]


def test_file_and_folder_are_synchronised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is on the disk before it takes its place, and the folder after."""
    done: list[str] = []
    fsync, replace = os.fsync, os.replace

    def note_fsync(number: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(number).st_mode) else "file")
        fsync(number)

    def note_replace(first: Path, second: Path) -> None:
        done.append("replace")
        replace(first, second)

    monkeypatch.setattr(output.os, "fsync", note_fsync)
    monkeypatch.setattr(output.os, "replace", note_replace)
    write_text(tmp_path / "x.json", "text")
    assert done == ["file", "replace", "folder"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG])
def test_files_that_belong_together_stay_together(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the second of three files cannot be written, all three stay old without remains."""
    paths = [tmp_path / name for name in ("a.obj", "b.obj", "scene.urdf")]
    write_files(dict.fromkeys(paths, "old"))
    calls: list[int] = []

    def second_fails(number: int) -> None:
        calls.append(number)
        if len(calls) == 2:
            raise OSError(code, os.strerror(code))

    monkeypatch.setattr(output.os, "fsync", second_fails)
    with pytest.raises(OutputError, match=rf"cannot write '.*b.obj': {os.strerror(code)}"):
        write_files(dict.fromkeys(paths, "new"))
    assert [path.read_text(encoding="utf-8") for path in paths] == ["old"] * 3
    assert sorted(tmp_path.iterdir()) == sorted(paths)


def test_text_that_is_none_is_refused(tmp_path: Path) -> None:
    """A lone surrogate and a name with NUL are errors with the file, and nothing is written."""
    with pytest.raises(OutputError, match=r"cannot write '.*x.json': .*surrogates not allowed"):
        write_text(tmp_path / "x.json", "\udcff")
    with pytest.raises(OutputError, match="cannot write 'a\0b': embedded null byte"):
        write_text(Path("a\0b"), "text")
    assert not list(tmp_path.iterdir())


def test_what_was_left_behind_under_a_pipe_is_no_trap(tmp_path: Path) -> None:
    """A pipe or a link whose name is that of a temporary file is neither waited for nor removed."""
    path, other = tmp_path / "x.json", tmp_path / "other"
    other.write_text("mine", encoding="utf-8")
    os.mkfifo(tmp_path / ".x.json.0123456789abcdef")
    (tmp_path / ".x.json.0123456789abcdee").symlink_to(other)
    write_text(path, "text")
    assert len(list(tmp_path.iterdir())) == 4


def test_many_writers_of_one_file(tmp_path: Path) -> None:
    """Threads that write one file at once all succeed, and only the last content remains."""
    path, failed = tmp_path / "x.json", list[BaseException]()

    def write(letter: str) -> None:
        try:
            for _ in range(20):
                write_text(path, letter * 10_000)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert list(tmp_path.iterdir()) == [path]
    assert len(set(path.read_text(encoding="utf-8"))) == 1


def test_no_file_stays_open(tmp_path: Path) -> None:
    """Files, folders, deletions and open files by path leave no descriptor open."""
    path, before = tmp_path / "x.json", set(os.listdir("/proc/self/fd"))
    for _ in range(3):
        (tmp_path / ".x.json.0123456789abcdef").write_text("half", encoding="utf-8")
        write_text(path, "text")
    with path.open("wb") as file:
        write_text(Path(f"/dev/fd/{file.fileno()}"), "through")
        write_text(Path(f"/proc/{os.getpid()}/fd/{file.fileno()}"), " a descriptor")
    assert path.read_bytes() == b"through a descriptor"
    assert set(os.listdir("/proc/self/fd")) == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_without_permission_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file in a read-only folder is rejected before the work; root may write everywhere."""
    monkeypatch.setattr(output.os, "access", lambda path, mode: (path, mode) != (tmp_path, os.W_OK))
    with pytest.raises(OutputError, match=r"x.json: cannot be written: permission denied"):
        check_writable(tmp_path / "x.json")
    check_writable(tmp_path / ".." / "x.json")
