"""Benchmarks: they print what they measure; nothing here is a test."""
