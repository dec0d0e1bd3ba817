"""Many planning problems: lists and grids of them, solved on one machine or many, each in a process of its own.

:func:`load_batch` reads a batch file, :func:`run_batch` solves its problems over `dask.distributed
<https://distributed.dask.org>`_ (extra ``learning``), and :func:`open_results` reads what was
found. A batch that was stopped goes on where it was.
"""

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
