"""Offline pages: a scene or a plan in three dimensions as one HTML file that opens without a server or a request.

The page holds viser's client with the meshes, as viser saves them, and tmkit's panel (``viewer.js``) with a document of
frames, actions, segments and facts. viser's own recording would repeat all messages up to a moment whenever the time
line goes back; the panel computes each moment from the moving joints alone instead.
"""

from __future__ import annotations

import base64
import html
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from tmkit._support.argument_errors import check_argument, plan_hint
from tmkit._support.output import check_writable, write_text
from tmkit.errors import MissingExtraError, OutputError
from tmkit.graph import SceneGraph
from tmkit.plans import Plan
from tmkit.tamp import PythonDomain
from tmkit.visualization.plan_timeline import plan_timeline, rest_document, timeline_document
from tmkit.visualization.scene_model import add_nodes, bounds, model_document, scene_model, set_view

if TYPE_CHECKING:
    import viser

CELL = 1.5e-3  # metres within which vertices of large meshes are joined


def save_html(
    shown: Plan | SceneGraph, path: str | Path, *, q: ArrayLike | None = None, autoplay: bool = True,
    domain: str | Path | PythonDomain | None = None,
) -> Path:  # fmt: skip
    """Write a plan or a scene as one HTML file that opens without a server or a request, and return its path.

    A plan has a time line with its actions and segments, captions, and the facts that hold and that the last action
    changed; facts need a built-in domain, or ``domain``. Space plays and pauses, the arrow keys go to the next and
    previous action.

    Args:
        shown: the plan or the scene.
        path: the file, which ends in ``.html``.
        q: (n_joints,) configuration of a scene, radians or metres; zero by default.
        autoplay: whether a plan is played when the page opens.
        domain: the domain of a plan that is not built in; by path its semantics are run.

    Raises:
        ArgumentError: it is neither a plan nor a scene.
        OutputError: the file cannot be written, or its name does not end in ``.html``.
        MissingFileError: the domain is not there.
        MissingExtraError: viser is not installed.
    """
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        reason = "a page must end in .html"
        raise OutputError(f"{target}: cannot be written: {reason}", path=str(target), reason=reason)
    check_writable(target)
    write_text(target, page_html(shown, q=q, autoplay=autoplay, domain=domain))
    return target


def page_html(
    shown: Plan | SceneGraph, *, q: ArrayLike | None = None, autoplay: bool = True,
    domain: str | Path | PythonDomain | None = None,
) -> str:  # fmt: skip
    """Return the page that :func:`save_html` writes."""
    if not isinstance(shown, SceneGraph):
        check_argument(shown, Plan, "shown", function="save_html", hint=plan_hint(shown))
    scene = shown.scene if isinstance(shown, Plan) else shown
    model = scene_model(scene, cell=CELL)
    at = scene.at(shown.q if isinstance(shown, Plan) else scene.zero_configuration() if q is None else q)
    document = {**rest_document(scene, at.q), **model_document(model)}
    title = f"{len(scene)} frames"
    if isinstance(shown, Plan):
        document |= {"timeline": timeline_document(plan_timeline(shown, domain=domain)), "autoplay": autoplay}
        title = shown.goal
    server = start_server("127.0.0.1", 0)
    try:
        add_nodes(server.scene, model, at.poses)
        set_view(server, *bounds(model, at.poses))
        page = server.scene.as_html()
    finally:
        stop_server(server)
    packed = base64.b64encode(zlib.compress(json.dumps(document, separators=(",", ":")).encode(), 9)).decode()
    script = f"<script>{script_text()}</script><script>tmkit.unpack({json.dumps(packed)})</script>"
    hidden = "<style>.mantine-Notifications-root{display:none}</style>"  # what viser says of software rendering
    page = page.replace("<title>Viser</title>", f"<title>tmkit: {html.escape(title, quote=False)}</title>{hidden}", 1)
    end = page.rindex("</body>")
    return page[:end] + script + page[end:]


def script_text() -> str:
    """Return the page's script."""
    return (Path(__file__).with_name("viewer.js")).read_text(encoding="utf-8")


def start_server(host: str, port: int) -> viser.ViserServer:
    """Start a server of viser at a port, 0 for any free one; OutputError where it is in use."""
    import socket

    try:
        import viser
    except ImportError as error:
        raise MissingExtraError("the viewer needs viser: pip install 'viser>=1.1'", module="viser") from error
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            reason = f"the port {port} of {host} cannot be used ({error.strerror}); choose another with --port"
            raise OutputError(reason, path=f"{host}:{port}", reason=reason) from None
        port = probe.getsockname()[1]
    with _quiet():
        return viser.ViserServer(host=host, port=port, verbose=False)


def stop_server(server: viser.ViserServer) -> None:
    """Stop a server of viser."""
    with _quiet():
        server.stop()


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep viser from printing its address and its end on the standard output, which belongs to the caller."""
    import rich

    console = rich.get_console()
    was, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = was
