"""Unchecked specifications of scenes, and the builder that makes scenes from them."""
