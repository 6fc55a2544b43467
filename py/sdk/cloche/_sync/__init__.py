# Made by script/sdk-generate: change ../_async/__init__.py instead.
"""All that sends requests."""
