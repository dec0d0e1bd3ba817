"""The names that `tmkit.batch` exports."""

from tmkit.batch.batch_files import load_batch as load_batch
from tmkit.batch.dataset import Dataset as Dataset
from tmkit.batch.problems import ProblemSource as ProblemSource
from tmkit.batch.results import open_results as open_results
from tmkit.batch.running import run_batch as run_batch
