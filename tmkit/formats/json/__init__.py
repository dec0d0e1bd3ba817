"""JSON: tmkit's own scene files, written and read without loss."""
