"""``python -m tmkit`` is the ``tmkit`` command."""

from __future__ import annotations

from tmkit.cli import main

if __name__ == "__main__":
    main()
