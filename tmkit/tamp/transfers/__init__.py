"""Search over transfers: versions of the scene are nodes, and an edge carries one object from one place to another."""
