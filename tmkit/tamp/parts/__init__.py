"""Domains from parts: importable fragments of PDDL with their semantics, which :func:`compose_domain` combines.

Each part is a class derived from :class:`DomainPart`; docs/howto/domains_from_parts.md makes a
domain of five.
"""

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
