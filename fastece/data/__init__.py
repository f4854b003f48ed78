"""A caller's labels, probabilities and weights, checked and read as weighted binary problems.

::

    containers, labels  ->  scores                  ->  table, samples
    numpy arrays of         scores and outcomes         `RowTable`, whose problems
    any accepted kind       of a setting, checked       are `Sample`s

Another container or kind of label is added here, and a refusal gets its words here; nothing is
computed from the rows. Begin with `reading.read_table`, which every function of the package calls:
it tries `plain`, which skips the conversions of numpy arrays, and otherwise goes from top to
bottom. `separate` reads the settings whose problems have rows of their own, "tasks" and
"top-label". Rows of weight 0 and of an ignored label end in `reading.kept_rows`: no other room sees
them, except as part of `RowTable.vectors`. `parameters` and `errors` serve all rooms, `doubts`
finds labels that contradict the predictions, and `threads` splits work.
"""
