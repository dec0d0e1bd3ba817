"""Specifications: scenes as they stand in a file, not yet checked, and what builds a scene from them."""
