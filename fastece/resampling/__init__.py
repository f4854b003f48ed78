"""Draws, the engine that evaluates them, and intervals and tests from replicates."""
