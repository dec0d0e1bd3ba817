"""Domain parts: fragments of PDDL with their semantics, combined by :func:`compose_domain`.

Each part is a class derived from :class:`DomainPart`. docs/howto/domains.md combines
five parts into a domain.
"""

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
