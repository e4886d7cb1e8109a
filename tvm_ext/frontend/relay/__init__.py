"""Relay modules, as TVM 0.8 to 0.19 saved them, read without an old TVM."""
