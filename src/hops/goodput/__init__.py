"""Goodput: what weeks of training on hardware that breaks really deliver."""
