"""Language server for scene files and PDDL: diagnostics, completion, hover and definitions.

:func:`language_server` creates one. ``tmkit lsp`` and ``python -m tmkit.lsp`` run it on the
standard streams, by the Language Server Protocol. The package also has the Pygments lexers of the
scene languages.
"""

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
