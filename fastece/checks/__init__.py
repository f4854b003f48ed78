"""A caller's arguments, arrays, labels and files, as checked arrays; every message about them."""
