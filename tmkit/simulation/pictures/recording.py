"""Writing pictures and films of a simulation: whole or not at all.

A film is a GIF, a WebP or an MP4, by the extra ``pictures``, at twice the speed of the simulated
world, with eight frames for each simulated second. All frames of a GIF share one palette and are
not dithered: static parts cost next to nothing. The output is checked before the simulation starts
(:func:`check_output`).
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

FRAMES_PER_SECOND = 8.0  # frames for each simulated second
SPEED = 2.0  # simulated seconds that a film shows in one second

_PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg")
_FILM_SUFFIXES = (".gif", ".webp", ".mp4")
_PALETTE_SAMPLES = 6
_WEBP_QUALITY = 60


def check_output(path: str | Path, *, film: bool) -> Path:
    """Check that a picture or film can be written, without writing it.

    Raises:
        OutputError: a suffix of no kind we write, a folder that is not there, or no right to write.
        MissingExtraError: the extra ``pictures`` is not installed.
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
    """Write a picture; return the path.

    Args:
        path: the file.
        pixels: (height, width, 3).

    Raises:
        OutputError: as :func:`check_output`.
    """
    target = check_output(path, film=False)
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, format="PNG" if target.suffix.lower() == ".png" else "JPEG")
    write_files({target: file.getvalue()})
    return target


def captioned(pixels: NDArray[np.uint8], text: str) -> NDArray[np.uint8]:
    """Return a picture (height, width, 3) with a line of text, if there is any, at its lower edge."""
    if not text:
        return pixels
    with importing("PIL", "pictures", "captions need"):
        from PIL import Image, ImageDraw, ImageFont
    image = Image.fromarray(pixels)
    size = max(10, round(0.033 * image.width))
    font, draw = ImageFont.load_default(size), ImageDraw.Draw(image, "RGBA")
    _, top, width, bottom = draw.textbbox((0, 0), text, font=font)
    left, pad = size * 0.6, size * 0.35
    low = image.height - size * 0.6
    box = (left - pad, low - (bottom - top) - 2 * pad, left + width + pad, low)
    draw.rounded_rectangle(box, radius=pad, fill=(255, 255, 255, 190))
    draw.text((left, box[1] + pad - top), text, fill=(30, 30, 35), font=font)
    return np.asarray(image, dtype=np.uint8)


class Film:
    """Frames that become a ``.gif``, ``.webp`` or ``.mp4`` file when they are all there."""

    def __init__(self, path: str | Path) -> None:
        self._target = check_output(path, film=True)
        self._frames: list[Any] = []

    def __len__(self) -> int:
        return len(self._frames)

    def add(self, pixels: NDArray[np.uint8]) -> None:
        """Append a frame (height, width, 3); all frames are of one size."""
        from PIL import Image

        self._frames.append(Image.fromarray(pixels))

    def write(self) -> Path:
        """Write the film and return its path.

        Raises:
            OutputError: there is no frame, or the file cannot be written any more.
        """
        if not self._frames:
            raise _failure(self._target, "there are no frames")
        write = {".gif": self._gif, ".webp": self._webp, ".mp4": self._mp4}[
            self._target.suffix.lower()
        ]
        write_files({self._target: write()})
        return self._target

    def _durations(self) -> list[int]:
        """Return how long each frame is shown, milliseconds; GIF counts in hundredths of a second."""
        return [10 * round(100.0 / (FRAMES_PER_SECOND * SPEED))] * (len(self._frames) - 1) + [2000]

    def _webp(self) -> bytes:
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

    def _gif(self) -> bytes:
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
        """Return one palette for the colours of a few frames spread over the film."""
        from PIL import Image

        chosen = [
            self._frames[round(i)]
            for i in np.linspace(0, len(self._frames) - 1, min(_PALETTE_SAMPLES, len(self._frames)))
        ]
        width, height = chosen[0].size
        sheet = Image.new("RGB", (width, height * len(chosen)))
        for number, frame in enumerate(chosen):
            sheet.paste(frame, (0, number * height))
        return sheet.quantize(colors=255, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)

    def _mp4(self) -> bytes:
        imageio = importlib.import_module("imageio.v2")  # an extra, which may be absent

        # the encoder is a program, which wants a name to write to
        with temporary_folder("film") as folder:
            path = folder / "film.mp4"
            rate = FRAMES_PER_SECOND * SPEED
            with imageio.get_writer(path, format="FFMPEG", fps=rate, macro_block_size=2) as writer:
                for frame in self._frames:
                    pixels = np.asarray(frame)
                    # the codec wants even sizes
                    height, width = (max(2, size - size % 2) for size in pixels.shape[:2])
                    writer.append_data(pixels[:height, :width])
            return path.read_bytes()
