"""Benchmarks against other inference engines, and the models they run on."""
