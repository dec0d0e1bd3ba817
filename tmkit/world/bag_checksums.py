"""Checksums of recorded bags, which detect any changed bit before a message is replayed.

```text
BAG/
  BAG.mcap        CRC-32 of each chunk, of the data section and of the summary, as in MCAP
  metadata.yaml   comments at its end: SHA-256 of the other files, and of the text before the
                  last line
```

The writer of ``rosbags`` sets all checksums of MCAP to 0, which means that there are none. Its
reader checks those of chunks. :func:`write_checksums` fills them in, and :func:`check_files` checks
all of them. A bag without checksums, such as that of another program, is read unchecked.
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
"""Maximum size of the metadata [bytes]."""

_DIGEST_LINE = re.compile(rb"^# sha256 .*(?:\n|\Z)", re.MULTILINE)
"""Line of a digest in the metadata, complete or damaged."""

_COMPLETE_DIGEST_LINE = re.compile(rb"# sha256 ([0-9a-f]{64})  ([^/\0\n]+)\n")
"""Complete line of a digest, with the digest and the file name as groups."""

_MAGIC = b"\x89MCAP0\r\n"
"""First and last bytes of an MCAP file."""

_RECORD_HEADER = struct.Struct("<BQ")
"""Header of an MCAP record: opcode and length."""

_CHUNK_OPCODE = 0x06
"""Opcode of a chunk."""

_DATA_END_OPCODE = 0x0F
"""Opcode of the record at the end of the data section."""

_FOOTER_OPCODE = 0x02
"""Opcode of the footer."""

_CHUNK_FIELDS = struct.Struct("<QQQII")
"""First fields of a chunk: start, end, size, checksum and length of the compression's name."""

_CHUNK_CHECKSUM_OFFSET = 24
"""Offset of the checksum in the fields of a chunk [bytes]."""

_DATA_END_SIZE = _RECORD_HEADER.size + 4
"""Size of the record at the end of the data section [bytes]."""

_FOOTER_SIZE = _RECORD_HEADER.size + 20
"""Size of the footer [bytes]."""

_CRC = struct.Struct("<I")
"""Layout of a CRC-32."""

_READ_SIZE = 2**20
"""Number of bytes that are read at once."""


def write_checksums(folder: Path) -> None:
    """Write the checksums of a closed bag into its MCAP files and its metadata.

    Raises:
        OSError: if a file cannot be read or written.
        FileFormatError: if an MCAP file does not have the structure that ``rosbags`` writes.
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
        path: folder of a bag, or one of its data files alone.
        files: files of the bag.
        is_info: whether the messages are not read. If true, only the metadata and the summary of
            MCAP are checked.

    Raises:
        FileFormatError: if a file differs from its checksum.
    """
    digests = _read_digests(path / METADATA) if path / METADATA in files else {}
    for name, digest in digests.items():
        if path / name not in files:
            raise _damage_error(path, f"'{name}' is missing")
        if not is_info and _digest(path / name) != digest:
            raise _damage_error(path / name, f"it differs from its checksum in {METADATA}")
    for file in files:
        if file.suffix == ".mcap" and (is_info or file.name not in digests):
            with file.open("rb") as stream:
                _check_mcap(file, stream, is_info=is_info)


def _read_digests(path: Path) -> dict[str, str]:
    """Check the metadata, and return the digests of the data files by name."""
    data = read_bytes(path, limit=LARGEST_METADATA)
    lines = [*_DIGEST_LINE.finditer(data)]
    matches = [_COMPLETE_DIGEST_LINE.fullmatch(line[0]) for line in lines]
    if not matches:
        return {}
    own = matches[-1]
    if own is None or own[2].decode(errors="replace") != METADATA:
        raise _damage_error(path, "its checksum is damaged")
    if own[1].decode() != hashlib.sha256(data[: lines[-1].start()]).hexdigest():
        raise _damage_error(
            path,
            "it differs from the checksum in its last line; remove that line if the change is"
            " intended",
        )
    return {
        match[2].decode(errors="replace"): match[1].decode()
        for match in matches[:-1]
        if match is not None
    }


def _damage_error(path: Path, reason: str) -> FileFormatError:
    return FileFormatError.at(path, f"is not a readable bag: {reason}")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_mcap_checksums(path: Path, file: BinaryIO) -> None:
    sections = _sections(path, file)
    if sections is None:
        raise _damage_error(path, "its footer is invalid")
    data_end, summary, footer = sections
    file.seek(len(_MAGIC))
    while (offset := file.tell()) < data_end:
        kind, length = _RECORD_HEADER.unpack(file.read(_RECORD_HEADER.size))
        fields = offset + _RECORD_HEADER.size
        if kind == _CHUNK_OPCODE:
            _, _, size, _, name_length = _CHUNK_FIELDS.unpack(file.read(_CHUNK_FIELDS.size))
            if name_length or _CHUNK_FIELDS.size + 8 + size != length:
                raise _damage_error(path, f"the chunk at byte {offset} is compressed or invalid")
            begin = fields + _CHUNK_FIELDS.size + 8
            _write_crc(file, begin, begin + size, fields + _CHUNK_CHECKSUM_OFFSET)
        file.seek(fields + length)
    _write_crc(file, 0, data_end, data_end + _RECORD_HEADER.size)
    _write_crc(file, summary, footer + _FOOTER_SIZE - 4, footer + _FOOTER_SIZE - 4)


def _check_mcap(path: Path, file: BinaryIO, *, is_info: bool) -> None:
    sections = _sections(path, file)
    if sections is None:
        return  # the reader of the file reports the fault
    data_end, summary, footer = sections
    ranges = [("summary", summary, footer + _FOOTER_SIZE - 4, footer + _FOOTER_SIZE - 4)]
    if not is_info:
        ranges.append(("data section", 0, data_end, data_end + _RECORD_HEADER.size))
    for name, begin, end, checksum_offset in ranges:
        file.seek(checksum_offset)
        (expected,) = _CRC.unpack(file.read(_CRC.size))
        if expected and _crc(file, begin, end) != expected:
            raise _damage_error(path, f"its {name} differs from its checksum")


def _sections(path: Path, file: BinaryIO) -> tuple[int, int, int] | None:
    """Return the offsets of the record at the end of the data, the summary and the footer.

    None if the file is not MCAP. Without a summary, its offset is that of the footer.
    """
    footer = file.seek(0, 2) - len(_MAGIC) - _FOOTER_SIZE
    if footer < len(_MAGIC) + _DATA_END_SIZE:
        return None
    file.seek(footer)
    kind, length, summary, _, _ = struct.unpack("<BQQQI", file.read(_FOOTER_SIZE))
    if (kind, length) != (_FOOTER_OPCODE, _FOOTER_SIZE - _RECORD_HEADER.size) or file.read(
        len(_MAGIC)
    ) != _MAGIC:
        return None
    summary = summary or footer
    data_end = summary - _DATA_END_SIZE
    if not len(_MAGIC) <= data_end <= footer - _DATA_END_SIZE:
        raise _damage_error(path, f"its summary begins at byte {summary}, outside of the file")
    file.seek(data_end)
    if _RECORD_HEADER.unpack(file.read(_RECORD_HEADER.size)) != (_DATA_END_OPCODE, 4):
        raise _damage_error(path, f"expected the end of its data section at byte {data_end}")
    return data_end, summary, footer


def _write_crc(file: BinaryIO, begin: int, end: int, offset: int) -> None:
    """Write the CRC-32 of a range of a file at an offset."""
    checksum = _crc(file, begin, end)
    file.seek(offset)
    file.write(_CRC.pack(checksum))


def _crc(file: BinaryIO, begin: int, end: int) -> int:
    """Return the CRC-32 of a range of a file."""
    file.seek(begin)
    checksum = 0
    while (remaining := end - file.tell()) > 0:
        part = file.read(min(remaining, _READ_SIZE))
        if not part:
            break
        checksum = zlib.crc32(part, checksum)
    return checksum
