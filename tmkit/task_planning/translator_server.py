"""Server program for Fast Downward's translator, which loads it once and forks for each task.

The program is run by its path, without the rest of tmkit, and imports the translator, which is
under the GPL. tmkit imports neither of them. The arguments are those of the translator. The program
reads one line of JSON per task: the folder with the input files, and limits of processor time and
memory. The forked process runs the translator in that folder and writes its output to
``output.log``. The server replies with the exit code.

At the start, a small task is translated once, to load and compile modules before the first fork.
Its files are in memory, since the server may be killed at any time and would not delete them.

Guarantee: each translation equals that of a new program, since it runs in its own process.
"""

import contextlib
import ctypes
import gc
import importlib
import json
import os
import resource
import signal
import sys
from typing import Any

_PACKAGE = "fast_downward.translate"
"""Package of the translator."""

_OUT_OF_MEMORY_CODE = 20
"""Exit code of the translator without memory."""

_INPUT_ERROR_CODE = 31
"""Exit code of the translator for invalid input."""

_FIRST_DOMAIN = """(define (domain first) (:requirements :adl :derived-predicates) (:types t)
  (:predicates (p ?x - t) (q ?x - t))
  (:derived (q ?x - t) (exists (?y - t) (and (p ?y) (not (p ?x)))))
  (:action a :parameters (?x - t) :precondition (not (p ?x))
    :effect (and (p ?x) (forall (?y - t) (when (and (p ?y) (not (= ?x ?y))) (not (p ?y)))))))"""
_FIRST_PROBLEM = """(define (problem first) (:domain first) (:objects u v - t) (:init (p u))
  (:goal (and (p v) (q u))))"""


def main() -> None:
    """Serve until the standard input ends."""
    translate = importlib.import_module(f"{_PACKAGE}.main").main
    set_options = importlib.import_module(f"{_PACKAGE}.options").set_options
    with contextlib.suppress(Exception, SystemExit):
        _translate_first(translate, set_options)
    set_options()
    gc.freeze()
    for line in sys.stdin:
        task = json.loads(line)
        server = os.getpid()
        child = os.fork()
        if child == 0:
            _translate(translate, task, server)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        sys.stdout.write(f"{code}\n")
        sys.stdout.flush()


def _translate_first(translate: Any, set_options: Any) -> None:
    with contextlib.ExitStack() as open_files:
        paths = []
        for text in (_FIRST_DOMAIN, _FIRST_PROBLEM):
            file = open_files.enter_context(open(os.memfd_create("task"), "w", encoding="utf-8"))
            file.write(text)
            file.flush()
            paths.append(f"/proc/self/fd/{file.fileno()}")
        set_options(["--keep-unimportant-variables", "--sas-file", os.devnull, *paths])
        null_device = open_files.enter_context(open(os.devnull, "w", encoding="utf-8"))
        with contextlib.redirect_stdout(null_device):
            translate()


def _translate(translate: Any, task: dict[str, Any], server: int) -> None:
    code = 1
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: end with the server
        if os.getppid() != server:
            os._exit(1)
        os.chdir(task["folder"])
        log = os.open("output.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for number in (1, 2):
            os.dup2(log, number)
        for kind, requested_limit in (
            (resource.RLIMIT_CPU, task["seconds"]),
            (resource.RLIMIT_AS, task["memory"]),
        ):
            hard_limit = resource.getrlimit(kind)[1]
            resource.setrlimit(
                kind,
                (
                    requested_limit
                    if hard_limit == resource.RLIM_INFINITY
                    else min(requested_limit, hard_limit),
                    hard_limit,
                ),
            )
        translate()
        code = 0
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except MemoryError:
        code = _OUT_OF_MEMORY_CODE
    except BaseException as error:
        if type(error).__name__ == "ParseError":
            sys.stdout.write(f"{error}\n")
            code = _INPUT_ERROR_CODE
        else:
            import traceback

            traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
