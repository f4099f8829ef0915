"""What a training script imports to record itself: it stands alone, and loads nothing else of HOPS."""
