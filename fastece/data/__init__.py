"""Data: labels and probabilities as weighted binary problems."""
