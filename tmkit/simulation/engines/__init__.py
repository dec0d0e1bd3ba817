"""Physics engines, a folder each."""
