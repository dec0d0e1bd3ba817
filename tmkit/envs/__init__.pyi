"""The names that `tmkit.envs` exports."""

from tmkit.envs.physical import PhysicalEnv as PhysicalEnv
from tmkit.envs.symbolic import SymbolicEnv as SymbolicEnv
