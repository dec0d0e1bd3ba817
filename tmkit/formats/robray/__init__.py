"""robray: the scene language of the original, read and written."""
