"""Version of the installed distribution; importing this module takes about 20 ms."""

from importlib.metadata import version

__version__ = version("tmkit-robotics")
