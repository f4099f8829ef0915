"""Many runs: the points of a sweep, their store, processes and clusters that work on them, and samples of one spec."""
