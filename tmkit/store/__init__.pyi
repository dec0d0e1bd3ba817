"""The names that `tmkit.store` exports."""

from tmkit.store.encoding import merge_scenes as merge_scenes
from tmkit.store.store import Store as Store
