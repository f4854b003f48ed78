"""Benchmarks of fastece, for asv."""
