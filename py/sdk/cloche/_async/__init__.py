"""All that sends requests."""
