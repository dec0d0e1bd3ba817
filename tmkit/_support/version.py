"""The version of the installed distribution; reading it takes some 20 ms, and ``import tmkit`` does not."""

from importlib.metadata import version

__version__ = version("tmkit-robotics")
