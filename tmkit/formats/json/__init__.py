"""Lossless JSON files of scenes."""
