"""Independence of the core: it names no Python module, and calls only registered functions."""

from __future__ import annotations

import pickle
import re
import sys
from pathlib import Path

from support.processes import run_process

import tmkit as tk

_CORE = Path(__file__).parent.parent / "tmkit" / "core"


def _output(program: str, *arguments: str) -> str:
    done = run_process(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout


def test_the_core_names_no_python_module_of_the_package() -> None:
    """No source, header or binding contains ``tmkit.`` and the name of a module above the core."""
    sources = [path for path in _CORE.rglob("*") if path.suffix in (".cpp", ".hpp")]
    assert len(sources) > 100
    named = re.compile(r"(?<![\w:/])tmkit\.(?!_core\b)[a-z_]\w*")
    assert [
        f"{path.name}: {name}"
        for path in sources
        for name in named.findall(path.read_text("utf-8"))
    ] == []


def test_what_is_registered_is_called_without_imports() -> None:
    """Errors, attributes and notebook displays work without any import by the caller."""
    program = """if True:
        import sys
        import tmkit as tk
        from tmkit.errors import UnknownNameError

        class Refuse:
            def find_spec(self, name, *rest):
                raise ImportError(name)

        scene = tk.SceneGraph().add_frame("cup", "world").set_attributes("cup", {"class": "cup"})
        seen = []
        for blocked in (False, True):
            if blocked:
                sys.meta_path.insert(0, Refuse())
                for name in [name for name in sys.modules if name.split(".")[0] == "tmkit"]:
                    del sys.modules[name]
            try:
                scene.pose("cup", relative_to="nowhere")
            except UnknownNameError as error:
                seen.append((type(error).__name__, error.name))
            seen.append((scene._repr_html_().count("cup") > 0, dict(scene.attributes("cup"))))
        print(seen[:2] == seen[2:], *seen[0], seen[1])
    """
    expected = "True UnknownNameError nowhere (True, {'class': 'cup'})\n"
    assert _output(program) == expected


def test_values_unpickle_where_nothing_was_imported() -> None:
    """A fresh process that reads a pickled scene raises the errors of the package."""
    scene = tk.SceneGraph().add_frame("cup", "world")
    program = """if True:
        import pickle, sys
        scene = pickle.loads(bytes.fromhex(sys.argv[1]))
        for reference in ("nowhere", 3):
            try:
                scene.pose("cup", relative_to=reference)
            except Exception as error:
                print(type(error).__module__, type(error).__name__)
    """
    expected = "tmkit.errors UnknownNameError\ntmkit.errors ArgumentError\n"
    assert _output(program, pickle.dumps(scene).hex()) == expected


def test_the_registered_objects_are_released_at_exit() -> None:
    """A destructor that meets a core error at interpreter exit raises, and nothing leaks."""
    program = """if True:
        import gc
        import tmkit as tk
        from tmkit import _core
        _core._set_leak_warnings(True)
        scene = tk.SceneGraph()

        class Last:
            def __init__(self):
                self.scene, self.print = scene, print
            def __del__(self):
                for call in (self.scene.pose, self.scene.parent):
                    try:
                        call("nowhere")
                    except Exception as error:
                        self.print(isinstance(error, Exception))

        last = Last()
        last.itself = last
        gc.disable()
    """
    assert _output(program) == "True\nTrue\n"


def test_without_what_is_registered_there_is_still_an_error() -> None:
    """Without the registration, errors of the core are RuntimeErrors with the same message."""
    program = """if True:
        import tmkit as tk
        from tmkit import _core
        scene = tk.SceneGraph()
        del _core._registered
        for call in (lambda: scene.parent("cup"), lambda: scene.parent(3), scene._repr_html_):
            try:
                call()
            except Exception as error:
                print(type(error).__name__, str(error).splitlines()[0])
    """
    lines = _output(program).splitlines()
    assert lines[0] == "RuntimeError unknown frame 'cup' (known: world)"
    assert lines[1].startswith("TypeError parent(): incompatible function arguments")
    assert (
        lines[2]
        == "RuntimeError the Python part of tmkit is not imported, or the interpreter is ending"
    )
