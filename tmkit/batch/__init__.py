"""Batches of planning problems, each solved in a separate process on one or more machines.

:func:`load_batch` reads a batch file, which contains lists and grids of problems.
:func:`run_batch` solves them with `dask.distributed <https://distributed.dask.org>`_ (extra
``learning``), and :func:`open_results` reads the results. An interrupted batch can be resumed.
"""

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
