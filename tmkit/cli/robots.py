"""Commands about robots: ``tmkit robot ...``, shown as soon as there is one (``@app.command()``)."""

from __future__ import annotations

import typer

__all__ = ["app"]

app = typer.Typer(help="Look at robots.", no_args_is_help=True)
