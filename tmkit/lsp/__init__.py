"""A language server for scene files and PDDL: what is wrong, what may stand here, what a name is.

:func:`language_server` makes one; ``tmkit lsp`` and ``python -m tmkit.lsp`` start it for an editor,
which talks to it by the Language Server Protocol over the standard streams. The Pygments lexers of
the scene languages are here, too.
"""

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
