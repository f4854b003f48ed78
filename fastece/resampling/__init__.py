"""Draws, the engine that evaluates them, and what comes of it: intervals and tests."""
