"""Checksums of recorded bags, which find any changed bit before a message is replayed.

```text
BAG/
  BAG.mcap        CRC-32 of each chunk, of the data section and of the summary, as the MCAP format defines them
  metadata.yaml   as comments at its end: SHA-256 of the other files, and of the text before the last line
```

The writer of ``rosbags`` sets all checksums of MCAP to 0, which means that there are none; its
reader checks those of chunks. :func:`write_checksums` fills them in, and :func:`check_files` checks
all of them. A bag without checksums, as of another program, is read unchecked.
"""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from pathlib import Path
from typing import BinaryIO

from tmkit._support.limits import read_bytes
from tmkit._support.output import write_files
from tmkit.errors import FileFormatError

METADATA = "metadata.yaml"
"""Name of the file of metadata in the folder of a bag."""

LARGEST_METADATA = 10_000_000
"""Size of the metadata that is read [bytes]."""

_SUM = re.compile(rb"^# sha256 .*(?:\n|\Z)", re.MULTILINE)
_WHOLE_SUM = re.compile(rb"# sha256 ([0-9a-f]{64})  ([^/\0\n]+)\n")
_MAGIC = b"\x89MCAP0\r\n"
_HEAD = struct.Struct("<BQ")  # of a record: kind, length
_CHUNK, _DATA_END, _FOOTER = 0x06, 0x0F, 0x02
# start, end, size, checksum, length of the name of the compression
_CHUNK_FIELDS = struct.Struct("<QQQII")
_CHUNK_CHECKSUM = 24  # offset in these fields
_DATA_END_SIZE = _HEAD.size + 4
_FOOTER_SIZE = _HEAD.size + 20
_CRC = struct.Struct("<I")
_PART = 2**20
"""Bytes that are read at once."""


def write_checksums(folder: Path) -> None:
    """Write the checksums of a closed bag that was recorded to a folder: into its MCAP files, and into its metadata.

    Raises:
        OSError: if a file cannot be read or written.
        FileFormatError: if an MCAP file is not as ``rosbags`` writes them.
    """
    for path in folder.glob("*.mcap"):
        with path.open("r+b") as file:
            _write_mcap_checksums(path, file)
    data = (folder / METADATA).read_bytes()
    for path in sorted(folder.iterdir()):
        if path.name != METADATA:
            data += f"# sha256 {_digest(path)}  {path.name}\n".encode()
    data += f"# sha256 {hashlib.sha256(data).hexdigest()}  {METADATA}\n".encode()
    write_files({folder / METADATA: data})


def check_files(path: Path, files: list[Path], *, is_info: bool = False) -> None:
    """Check the checksums of a bag.

    Args:
        path: the folder of a bag, or one of its data files alone.
        files: the files of the bag.
        is_info: whether the messages are not read: only the metadata and the summary of MCAP are
            checked.

    Raises:
        FileFormatError: if a file differs from its checksum, with the file.
    """
    sums = _checked_sums(path / METADATA) if path / METADATA in files else {}
    for name, digest in sums.items():
        if path / name not in files:
            raise _damage(path, f"'{name}' is missing")
        if not is_info and _digest(path / name) != digest:
            raise _damage(path / name, f"it differs from its checksum in {METADATA}")
    for file in files:
        if file.suffix == ".mcap" and (is_info or file.name not in sums):
            with file.open("rb") as opened:
                _check_mcap(file, opened, is_info=is_info)


def _checked_sums(path: Path) -> dict[str, str]:
    """Return the digests of data files by name that the metadata list, after a check of the metadata."""
    data = read_bytes(path, limit=LARGEST_METADATA)
    lines = [*_SUM.finditer(data)]
    sums = [_WHOLE_SUM.fullmatch(line[0]) for line in lines]
    if not sums:
        return {}
    own = sums[-1]
    if own is None or own[2].decode(errors="replace") != METADATA:
        raise _damage(path, "its checksum is damaged")
    if own[1].decode() != hashlib.sha256(data[: lines[-1].start()]).hexdigest():
        raise _damage(
            path,
            "it differs from its checksum in its last line; remove that line if the change is"
            " meant",
        )
    return {
        found[2].decode(errors="replace"): found[1].decode()
        for found in sums[:-1]
        if found is not None
    }


def _damage(path: Path, reason: str) -> FileFormatError:
    return FileFormatError.at(path, f"is no bag that can be read: {reason}")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_mcap_checksums(path: Path, file: BinaryIO) -> None:
    sections = _sections(path, file)
    if sections is None:
        raise _damage(path, "its footer is broken")
    data_end, summary, footer = sections
    file.seek(len(_MAGIC))
    while (at := file.tell()) < data_end:
        kind, length = _HEAD.unpack(file.read(_HEAD.size))
        fields = at + _HEAD.size
        if kind == _CHUNK:
            _, _, size, _, name_length = _CHUNK_FIELDS.unpack(file.read(_CHUNK_FIELDS.size))
            if name_length or _CHUNK_FIELDS.size + 8 + size != length:
                raise _damage(path, f"the chunk at byte {at} is compressed, or broken")
            begin = fields + _CHUNK_FIELDS.size + 8
            _write_crc(file, begin, begin + size, fields + _CHUNK_CHECKSUM)
        file.seek(fields + length)
    _write_crc(file, 0, data_end, data_end + _HEAD.size)
    _write_crc(file, summary, footer + _FOOTER_SIZE - 4, footer + _FOOTER_SIZE - 4)


def _check_mcap(path: Path, file: BinaryIO, *, is_info: bool) -> None:
    sections = _sections(path, file)
    if sections is None:
        return  # what is wrong with it, its reader tells
    data_end, summary, footer = sections
    checked = [("summary", summary, footer + _FOOTER_SIZE - 4, footer + _FOOTER_SIZE - 4)]
    if not is_info:
        checked.append(("data section", 0, data_end, data_end + _HEAD.size))
    for name, begin, end, place in checked:
        file.seek(place)
        (expected,) = _CRC.unpack(file.read(_CRC.size))
        if expected and _crc(file, begin, end) != expected:
            raise _damage(path, f"its {name} differs from its checksum")


def _sections(path: Path, file: BinaryIO) -> tuple[int, int, int] | None:
    """Return where the record at the end of the data, the summary and the footer begin; None for no MCAP at all.

    Without a summary, the footer is all of it.
    """
    footer = file.seek(0, 2) - len(_MAGIC) - _FOOTER_SIZE
    if footer < len(_MAGIC) + _DATA_END_SIZE:
        return None
    file.seek(footer)
    kind, length, summary, _, _ = struct.unpack("<BQQQI", file.read(_FOOTER_SIZE))
    if (kind, length) != (_FOOTER, _FOOTER_SIZE - _HEAD.size) or file.read(len(_MAGIC)) != _MAGIC:
        return None
    summary = summary or footer
    data_end = summary - _DATA_END_SIZE
    if not len(_MAGIC) <= data_end <= footer - _DATA_END_SIZE:
        raise _damage(path, f"its summary would begin at byte {summary}")
    file.seek(data_end)
    if _HEAD.unpack(file.read(_HEAD.size)) != (_DATA_END, 4):
        raise _damage(path, f"expected the end of its data section at byte {data_end}")
    return data_end, summary, footer


def _write_crc(file: BinaryIO, begin: int, end: int, place: int) -> None:
    """Write the CRC-32 of some bytes of a file to a place in it."""
    checksum = _crc(file, begin, end)
    file.seek(place)
    file.write(_CRC.pack(checksum))


def _crc(file: BinaryIO, begin: int, end: int) -> int:
    """Return the CRC-32 of some bytes of a file."""
    file.seek(begin)
    checksum = 0
    while (left := end - file.tell()) > 0:
        part = file.read(min(left, _PART))
        if not part:
            break
        checksum = zlib.crc32(part, checksum)
    return checksum
