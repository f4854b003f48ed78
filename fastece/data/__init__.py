"""Settings: how labels and predicted probabilities become weighted binary problems."""
