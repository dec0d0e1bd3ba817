"""Renderers of scenes without a screen."""
