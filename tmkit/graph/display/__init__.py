"""Displays of a scene: its tree as text, HTML for notebooks and SVG, and its groups as a graph.

The first three show the same outline of a scene: the upper levels of the tree first, a readable
number of frames, and the number of omitted frames. No function recurses. Names are escaped, so they
are never read as markup.
"""
