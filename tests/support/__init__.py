"""Shared parts of the tests: plain models, oracles and generators of random values."""
