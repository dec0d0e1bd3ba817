"""Files of pictures and films, written completely or not at all.

A film is a GIF, WebP or MP4 file, by the extra ``pictures``. It has twice the speed of the
simulated world, and eight frames for each simulated second. All frames of a GIF share one palette
without dithering, so that static parts need almost no space. :func:`check_output` checks the output
before the simulation starts.
"""

from __future__ import annotations

import importlib
import io
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmkit._support.extras import importing, require
from tmkit._support.output import check_writable, write_files
from tmkit._support.signals import temporary_folder
from tmkit.errors import OutputError

FRAMES_PER_SECOND = 8.0
"""Frames of a film for each simulated second."""

SPEED = 2.0
"""Simulated time that a film shows in one second [s]."""

_PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg")
"""Suffixes of pictures."""

_FILM_SUFFIXES = (".gif", ".webp", ".mp4")
"""Suffixes of films."""

_PALETTE_SAMPLES = 6
"""Number of frames that determine the palette of a GIF."""

_WEBP_QUALITY = 60
"""Quality of a WebP film, in [0, 100]."""


def check_output(path: str | Path, *, film: bool) -> Path:
    """Check that a picture or film can be written, without writing it.

    Args:
        path: path of the file.
        film: whether the file is a film, else a picture.

    Raises:
        OutputError: if the suffix is not supported, or the folder is missing or not writable.
        MissingExtraError: if the extra ``pictures`` is not installed.
    """
    target = Path(path)
    suffixes = _FILM_SUFFIXES if film else _PICTURE_SUFFIXES
    kind = "film" if film else "picture"
    if target.suffix.lower() not in suffixes:
        raise _failure(target, f"a {kind} must end in {' or '.join(suffixes)}")
    require("PIL", "pictures", f"{target}: writing a {kind} needs")
    for module in ("imageio", "imageio_ffmpeg") if target.suffix.lower() == ".mp4" else ():
        require(module, "pictures", f"{target}: writing MP4 needs", hint=" (or record a .gif)")
    if not os.path.isdir(target.parent):
        raise _failure(target, f"the folder '{target.parent}' does not exist")
    check_writable(target)
    return target


def _failure(target: Path, reason: str) -> OutputError:
    return OutputError(f"{target}: cannot be written: {reason}", path=str(target), reason=reason)


def write_picture(path: str | Path, pixels: NDArray[np.uint8]) -> Path:
    """Write a picture, and return its path.

    Args:
        path: path of the file.
        pixels: (height, width, 3) picture.

    Raises:
        OutputError: if the file cannot be written, as for :func:`check_output`.
    """
    target = check_output(path, film=False)
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, format="PNG" if target.suffix.lower() == ".png" else "JPEG")
    write_files({target: file.getvalue()})
    return target


def add_caption(pixels: NDArray[np.uint8], text: str) -> NDArray[np.uint8]:
    """Return a picture (height, width, 3) with a line of text, if any, at its lower edge."""
    if not text:
        return pixels
    with importing("PIL", "pictures", "captions need"):
        from PIL import Image, ImageDraw, ImageFont
    image = Image.fromarray(pixels)
    size = max(10, round(0.033 * image.width))
    font, draw = ImageFont.load_default(size), ImageDraw.Draw(image, "RGBA")
    text_box = draw.textbbox((0, 0), text, font=font)
    top, width = text_box[1], text_box[2]
    height = text_box[3] - top
    left, pad = size * 0.6, size * 0.35
    low = image.height - size * 0.6
    box = (left - pad, low - height - 2 * pad, left + width + pad, low)
    draw.rounded_rectangle(box, radius=pad, fill=(255, 255, 255, 190))
    draw.text((left, box[1] + pad - top), text, fill=(30, 30, 35), font=font)
    return np.asarray(image, dtype=np.uint8)


class Film:
    """Frames of a ``.gif``, ``.webp`` or ``.mp4`` file, written together.

    Args:
        path: path of the file.
    """

    def __init__(self, path: str | Path) -> None:
        self._target = check_output(path, film=True)
        self._frames: list[Any] = []

    def __len__(self) -> int:
        return len(self._frames)

    def add(self, pixels: NDArray[np.uint8]) -> None:
        """Append a frame (height, width, 3). All frames have the same size."""
        from PIL import Image

        self._frames.append(Image.fromarray(pixels))

    def write(self) -> Path:
        """Write the film and return its path.

        Raises:
            OutputError: if there is no frame, or the file has become unwritable.
        """
        if not self._frames:
            raise _failure(self._target, "there are no frames")
        suffix = self._target.suffix.lower()
        encode = {".gif": self._encode_gif, ".webp": self._encode_webp, ".mp4": self._encode_mp4}
        write_files({self._target: encode[suffix]()})
        return self._target

    def _durations(self) -> list[int]:
        """Return the duration of each frame [ms], rounded to 10 ms as a GIF needs."""
        return [10 * round(100.0 / (FRAMES_PER_SECOND * SPEED))] * (len(self._frames) - 1) + [2000]

    def _encode_webp(self) -> bytes:
        file = io.BytesIO()
        self._frames[0].save(
            file,
            format="WEBP",
            save_all=True,
            append_images=self._frames[1:],
            duration=self._durations(),
            loop=0,
            quality=_WEBP_QUALITY,
            method=4,
        )
        return file.getvalue()

    def _encode_gif(self) -> bytes:
        file = io.BytesIO()
        palette = self._palette()
        reduced = [frame.quantize(palette=palette, dither=0) for frame in self._frames]
        reduced[0].save(
            file,
            format="GIF",
            save_all=True,
            append_images=reduced[1:],
            duration=self._durations(),
            loop=0,
            disposal=1,
            optimize=False,
        )
        return file.getvalue()

    def _palette(self) -> Any:
        """Return one palette for the colours of a few frames spread over the film.

        Each cell of 16 levels a channel counts by the square root of its area, so that small
        objects keep their colours.
        """
        from PIL import Image

        count = min(_PALETTE_SAMPLES, len(self._frames))
        samples = [self._frames[round(i)] for i in np.linspace(0, len(self._frames) - 1, count)]
        pixels = np.concatenate([np.asarray(frame).reshape(-1, 3) for frame in samples])
        cells = (pixels // 16).astype(np.int64) @ np.array([256, 16, 1])
        order = np.argsort(cells, kind="stable")
        _, first, areas = np.unique(cells[order], return_index=True, return_counts=True)
        rank = np.arange(len(order)) - np.repeat(first, areas)
        is_sample = rank % np.repeat(np.ceil(np.sqrt(areas)).astype(int), areas) == 0
        sheet = Image.fromarray(pixels[order[is_sample]][None])
        return sheet.quantize(colors=255, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)

    def _encode_mp4(self) -> bytes:
        imageio = importlib.import_module("imageio.v2")  # an extra, which may be absent

        # The encoder is a separate program, which writes to a file.
        with temporary_folder("film") as folder:
            path = folder / "film.mp4"
            rate = FRAMES_PER_SECOND * SPEED
            with imageio.get_writer(path, format="FFMPEG", fps=rate, macro_block_size=2) as writer:
                for frame in self._frames:
                    pixels = np.asarray(frame)
                    # The codec needs even sizes.
                    height, width = (max(2, size - size % 2) for size in pixels.shape[:2])
                    writer.append_data(pixels[:height, :width])
            return path.read_bytes()
