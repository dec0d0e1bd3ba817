"""What readers and writers of files need: places in files, XML read with care, writing completely or not at all.

This room knows no format and nothing of scenes; the rooms that do (``srdf``, ``formats``, ``planner``) build on it.
"""

from tmkit.files.output import write_text
from tmkit.files.places import Place, did_you_mean
from tmkit.files.xml import XmlElement, read_xml

__all__ = ["Place", "XmlElement", "did_you_mean", "read_xml", "write_text"]
