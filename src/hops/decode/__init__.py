"""Text to typed data: every file that comes in is read here, all errors at once, with places."""
