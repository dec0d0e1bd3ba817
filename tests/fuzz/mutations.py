"""Broken files made from whole ones.

A :class:`Mutator` holds a pool of inputs and makes new ones: it draws one of the pool, more often
one that is whole than one that is broken already, and changes it a few times, each time in one of
the ways below. Ways with knowledge of texts (tokens, lines, numbers, nesting) get deep into a
reader; ways without it (bytes) find unexpected bugs. A splice joins the head of one input to the
tail of another.

Invariant: the inputs depend on the seed, the pool and the order of the calls only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

__all__ = ["Mutator"]

# bytes of an input; deeper nesting and longer repetitions are for tests of their own
LARGEST = 1 << 21

_TOKEN = re.compile(rb'[A-Za-z_][\w-]*|\d+\.?\d*(?:[eE][+-]?\d+)?|"[^"\n]*"|\s+|.', re.DOTALL)
_NUMBER = re.compile(rb"-?\d+\.?\d*(?:[eE][+-]?\d+)?")

NUMBERS = (
    b"0",
    b"-0",
    b"1",
    b"-1",
    b"2",
    b"3",
    b"1e-320",
    b"1e-9",
    b"1e9",
    b"1e18",
    b"1e150",
    b"1e300",
    b"1e308",
    b"1e309",
    b"-1e999",
    b"nan",
    b"inf",
    b"-inf",
    b"NaN",
    b"Infinity",
    b"1_000",
    b"0x10",
    b"1e",
    b".",
    b"1.",
    b"-.5",
    b"+7",
    b"2147483647",
    b"2147483648",
    b"-2147483649",
    b"4294967295",
    b"18446744073709551616",
    b"9" * 5000,
    b"0." + b"3" * 400,
    "\u0663".encode(),
    b"1,5",
    b"",
)

BYTES = (
    b"\x00",
    b"\xff",
    b"\xfe\xff",
    b"\xef\xbb\xbf",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\r",
    b"\r\n",
    b"\n",
    b"\t",
    b"\x1a",
    b"\x7f",
    b"\x85",
    b"\xe2\x80\xa8",
    b"\xc2\xa0",
    "\u202e".encode(),
    "π".encode(),
    b"'",
    b'"',
    b"\\",
    b"%",
    b"&",
    b"<",
    b">",
    b"]]>",
    b"/*",
    b"*/",
    b"//",
    b"#",
    b"--",
    b"${",
    b"../",
    b"\x1b[31m",
)

Way = Callable[[bytes], bytes]


class Mutator:
    """Makes broken inputs.

    Args:
        seed: of the random numbers.
        pool: whole inputs to begin with; :meth:`keep` adds to them.
        tokens: words of the format, put in where a token stands.
        nestings: openings and ends of structures that can contain themselves.
    """

    def __init__(
        self,
        seed: int,
        *,
        pool: Sequence[bytes],
        tokens: Sequence[bytes],
        nestings: Sequence[tuple[bytes, bytes]],
    ) -> None:
        self._random = Random(seed)
        self._pool = list(pool)
        self._broken: list[bytes] = []
        self._tokens = tuple(tokens) or (b" ",)
        self._nestings = tuple(nestings) or ((b"(", b")"),)
        self._ways: tuple[tuple[Way, int], ...] = (
            (self._flip, 1),
            (self._put_bytes, 2),
            (self._cut, 2),
            (self._copy, 2),
            (self._end, 1),
            (self._splice, 1),
            (self._change_token, 6),
            (self._drop_token, 4),
            (self._swap_tokens, 3),
            (self._put_token, 4),
            (self._change_number, 6),
            (self._drop_line, 2),
            (self._copy_line, 3),
            (self._swap_lines, 2),
            (self._nest, 1),
        )

    def keep(self, data: bytes, *, whole: bool) -> None:
        """Add an input to the pool, one that can be read (``whole``) or not."""
        (self._pool if whole else self._broken).append(data)

    def next(self) -> bytes:
        """Return a new input."""
        data = self._random.choice(
            self._broken if self._broken and self._random.random() < 0.25 else self._pool
        )
        changes, weights = zip(*self._ways, strict=True)
        for change in self._random.choices(
            changes, weights, k=self._random.choice((1, 1, 1, 1, 2, 2, 3, 6))
        ):
            data = change(data)[:LARGEST]
        return data

    def _range(self, length: int, longest: int) -> tuple[int, int]:
        """Return the begin and end of a part of something that has a length."""
        begin = self._random.randint(0, length)
        return begin, min(length, begin + self._random.randint(1, longest))

    def _flip(self, data: bytes) -> bytes:
        changed = bytearray(data or b"\x00")
        for _ in range(self._random.randint(1, 4)):
            changed[self._random.randrange(len(changed))] = self._random.randrange(256)
        return bytes(changed)

    def _put_bytes(self, data: bytes) -> bytes:
        position = self._random.randint(0, len(data))
        return (
            data[:position]
            + self._random.choice(BYTES) * self._random.choice((1, 1, 1, 3))
            + data[position:]
        )

    def _cut(self, data: bytes) -> bytes:
        begin, end = self._range(len(data), self._random.choice((1, 8, 200)))
        return data[:begin] + data[end:]

    def _copy(self, data: bytes) -> bytes:
        begin, end = self._range(len(data), self._random.choice((4, 60, 600)))
        position = self._random.randint(0, len(data))
        return (
            data[:position] + data[begin:end] * self._random.choice((1, 1, 2, 50)) + data[position:]
        )

    def _end(self, data: bytes) -> bytes:
        return data[: self._random.randint(0, len(data))]

    def _splice(self, data: bytes) -> bytes:
        other = self._random.choice(self._pool)
        return (
            data[: self._random.randint(0, len(data))]
            + other[self._random.randint(0, len(other)) :]
        )

    def _with_tokens(self, data: bytes, change: Callable[[list[bytes]], None]) -> bytes:
        """Change tokens in a window of the input, so that long inputs cost no more than short."""
        begin = self._random.randint(0, max(0, len(data) - 4096)) if len(data) > 8192 else 0
        tokens = _TOKEN.findall(data[begin : begin + 8192])
        if tokens:
            change(tokens)
        return data[:begin] + b"".join(tokens) + data[begin + 8192 :]

    def _some(self, tokens: list[bytes]) -> int:
        """Return the index of a token that is not blank, if there is luck."""
        for _ in range(4):
            index = self._random.randrange(len(tokens))
            if tokens[index].strip():
                break
        return index

    def _word(self, tokens: list[bytes]) -> bytes:
        return (
            self._random.choice(self._tokens)
            if self._random.random() < 0.5
            else tokens[self._some(tokens)]
        )

    def _change_token(self, data: bytes) -> bytes:
        def change(tokens: list[bytes]) -> None:
            tokens[self._some(tokens)] = self._word(tokens)

        return self._with_tokens(data, change)

    def _drop_token(self, data: bytes) -> bytes:
        def change(tokens: list[bytes]) -> None:
            del tokens[self._some(tokens)]

        return self._with_tokens(data, change)

    def _swap_tokens(self, data: bytes) -> bytes:
        def change(tokens: list[bytes]) -> None:
            first, second = self._some(tokens), self._some(tokens)
            tokens[first], tokens[second] = tokens[second], tokens[first]

        return self._with_tokens(data, change)

    def _put_token(self, data: bytes) -> bytes:
        def change(tokens: list[bytes]) -> None:
            tokens.insert(self._some(tokens), self._word(tokens))

        return self._with_tokens(data, change)

    def _change_number(self, data: bytes) -> bytes:
        matches = list(_NUMBER.finditer(data[:65536]))
        if not matches:
            return data
        match = self._random.choice(matches)
        return data[: match.start()] + self._random.choice(NUMBERS) + data[match.end() :]

    def _drop_line(self, data: bytes) -> bytes:
        lines = data.split(b"\n")
        begin, end = self._range(len(lines), 3)
        return b"\n".join(lines[:begin] + lines[end:])

    def _copy_line(self, data: bytes) -> bytes:
        lines = data.split(b"\n")
        begin, end = self._range(len(lines), 3)
        position = self._random.randint(0, len(lines))
        return b"\n".join(lines[:position] + lines[begin:end] + lines[position:])

    def _swap_lines(self, data: bytes) -> bytes:
        lines = data.split(b"\n")
        first, second = self._random.randrange(len(lines)), self._random.randrange(len(lines))
        lines[first], lines[second] = lines[second], lines[first]
        return b"\n".join(lines)

    def _nest(self, data: bytes) -> bytes:
        begin, end = self._random.choice(self._nestings)
        times = self._random.choice((1, 2, 70, 300, 3000, 100_000))
        first, last = self._range(len(data), 40)
        return data[:first] + begin * times + data[first:last] + end * times + data[last:]
