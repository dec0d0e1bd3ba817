"""The names of :mod:`tmkit.files.xml`, which is where they live."""

from tmkit.files.xml import XmlElement, read_xml

__all__ = ["XmlElement", "read_xml"]
