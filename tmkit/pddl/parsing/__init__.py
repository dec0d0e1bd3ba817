"""Parsing: PDDL text to domains and problems, with positions in every error."""
