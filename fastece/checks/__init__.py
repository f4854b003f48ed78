"""Checks of a caller's arguments, arrays, labels and files.

All error messages about them are written here.
"""
