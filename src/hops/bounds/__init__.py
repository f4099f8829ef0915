"""What no order of actions can beat."""
