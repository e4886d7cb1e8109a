"""Universal operator fusion: mapping types, the fusion table and the fusion plan."""
