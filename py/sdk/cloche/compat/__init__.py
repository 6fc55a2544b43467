"""Interfaces of other packages, over this one."""
