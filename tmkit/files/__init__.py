"""What readers and writers of files need: places in files, remarks, XML read with care, writing all or nothing.

This room knows no format and nothing of scenes; the rooms that do (``srdf``, ``formats``, ``planner``) build on it.
"""

import logging

from tmkit.files.output import write_text
from tmkit.files.places import Place, did_you_mean
from tmkit.files.remarks import Note, Remark, RemarkLog
from tmkit.files.xml import XmlElement, read_xml

__all__ = ["Note", "Place", "Remark", "RemarkLog", "XmlElement", "did_you_mean", "read_xml", "write_text"]

logging.getLogger(__name__).addHandler(logging.NullHandler())  # silent unless the user configures logging
