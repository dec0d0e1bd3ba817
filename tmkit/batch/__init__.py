"""Many planning problems: lists and grids of them, solved on one machine or many, each in a process of its own.

:func:`load_batch` reads a batch file, :func:`run_batch` solves its problems over `dask.distributed
<https://distributed.dask.org>`_ (extra ``batch``), and :func:`open_results` reads what was found. A batch that was
stopped goes on where it was.
"""

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit.batch.arena import (
        ArenaRow as ArenaRow,
        Planner as Planner,
        arena_table as arena_table,
        load_suite as load_suite,
        run_arena as run_arena,
    )
    from tmkit.batch.batch_files import load_batch as load_batch
    from tmkit.batch.dataset import Dataset as Dataset, write_dataset as write_dataset
    from tmkit.batch.generated_problems import GeneratedProblem as GeneratedProblem
    from tmkit.batch.generators import GeneratorSource as GeneratorSource, generate as generate
    from tmkit.batch.problems import (
        Batch as Batch,
        BatchEntry as BatchEntry,
        BatchOptions as BatchOptions,
        FixedProblem as FixedProblem,
        ProblemSource as ProblemSource,
    )
    from tmkit.batch.results import BatchTable as BatchTable, open_results as open_results
    from tmkit.batch.running import BatchProgress as BatchProgress, BatchSummary as BatchSummary, run_batch as run_batch
else:
    __getattr__, __dir__ = lazy_names(__name__)
