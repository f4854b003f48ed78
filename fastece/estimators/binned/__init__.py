"""Binned estimators: layouts of bins, ways to add rows up, and the number of bins by a sweep."""
