"""How fast the package is, the numpy code it is compared with, and compiling ahead."""
