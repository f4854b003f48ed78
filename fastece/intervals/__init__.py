"""What one wants to know: the error, an interval that holds it, and which model is better."""
