"""The names that `tmkit.formats.srdf` exports."""

from tmkit.formats.srdf.files import read_srdf as read_srdf, write_srdf as write_srdf
