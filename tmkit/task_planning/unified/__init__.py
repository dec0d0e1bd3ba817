"""Task plans by the engines of unified-planning."""
