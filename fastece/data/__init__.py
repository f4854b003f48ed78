"""A caller's labels, probabilities and weights, checked and read as weighted binary problems.

::

    containers, labels  ->  scores                  ->  sources, samples
    numpy arrays of         scores and outcomes         `Problems`, and each of them
    any accepted kind       of a setting, checked       as a `Sample`

What is accepted changes here, in `containers` and `labels`, and so does the wording of a refusal;
what is computed from the rows does not. Begin with `reading.read_source`, which every function of
the package calls: it tries `plain`, which skips the conversions of numpy arrays, and otherwise goes
from top to bottom. `parameters` and `errors` serve all rooms, and `threads` splits work.
"""
