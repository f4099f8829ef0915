"""HOPS predicts, plans and explains pipeline-parallel LLM training on mixed GPUs."""

__version__ = "0.1.0"
