"""Displays of a scene: its tree as text, as HTML for notebooks, and as a drawing; groups as a graph.

The first three show the same outline of a scene: the top of the tree first, no more frames than
stay readable, and a count of what is omitted. Nothing recurses, and names are shown as what they
are, never as markup.
"""
