"""Serves Fast Downward's translator: a program that has it loaded, and forks for each task.

It is run by its path, without the rest of tmkit, and imports the translator, which is under the GPL; tmkit imports
neither. It reads a line of JSON for each task: the folder with ``domain.pddl`` and ``problem.pddl``, the translator's
arguments, and limits of processor time and memory. The new process does there what the translator does as a program,
and writes what it says to ``output.log``; its exit code is the answer.

Invariants: a task is translated as by a new program: what one leaves behind, the next does not see.
"""

import ctypes
import gc
import json
import os
import resource
import runpy
import signal
import sys
from typing import Any

_MODULE = "fast_downward.translate"


def main() -> None:
    """Serve until the standard input ends."""
    __import__(f"{_MODULE}.main")
    gc.freeze()
    for line in sys.stdin:
        task = json.loads(line)
        server = os.getpid()
        child = os.fork()
        if child == 0:
            _translate(task, server)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        sys.stdout.write(f"{code}\n")
        sys.stdout.flush()


def _translate(task: dict[str, Any], server: int) -> None:
    code = 1
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: end with the server
        if os.getppid() != server:
            os._exit(1)
        os.chdir(task["folder"])
        log = os.open("output.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for number in (1, 2):
            os.dup2(log, number)
        for kind, wanted in ((resource.RLIMIT_CPU, task["seconds"]), (resource.RLIMIT_AS, task["memory"])):
            hard = resource.getrlimit(kind)[1]
            resource.setrlimit(kind, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))
        sys.argv = [_MODULE, *task["arguments"]]
        runpy.run_module(_MODULE, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
