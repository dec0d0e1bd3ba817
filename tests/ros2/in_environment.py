"""Runs a module of another environment in that of ROS 2: FOLDERS MODULE ARGUMENTS...

The folders of packages, separated by colons, come after those of ROS 2.
"""

import runpy
import signal
import site
import sys

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    folders, sys.argv[:] = sys.argv[1], sys.argv[2:]
    for folder in folders.split(":"):
        site.addsitedir(folder)
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
