"""Published measurements: rows of public tables, each turned into a spec, predicted, and held against its figures."""
