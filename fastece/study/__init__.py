"""The study of estimators on problems with known calibration error.

It simulates the problems of Posocco and Bonnefoy (2021, "Estimating expected calibration errors",
section 4) at full size, or draws from large files of a user's own predictions. One adds estimators
in `candidates.py`, kinds of problems in a `StudyDesign` of their own, columns in `summary.py` and
figures in `run.draw_figures`; `estimation.py` and `folder.py`, on which reproducible results rest,
stay as they are. Begin to read in `run.py`. The study needs the extra "study".

======================  =========================================================================
file                    contents
======================  =========================================================================
`run.py`                `run_study`: from a design to tables and figures
`design.py`             parameters that all studies have
`simulated.py`          `Design`: simulated models; their problems are in `distributions.py`
`prediction_files.py`   `Predictions`: a user's files
`candidates.py`         estimators under test
`published.py`          estimators as the published code computes them
`estimation.py`         estimates and truth of one distribution; the formulas are in `truth.py`
`summary.py`            tables of distributions, summaries and rankings
`result.py`             `StudyResult`, and its text
`figures.py`            curves of a summary
`folder.py`             the files of a study, and which design and version they are of
======================  =========================================================================
"""

from fastece.study.prediction_files import Predictions
from fastece.study.result import StudyResult
from fastece.study.run import run_study
from fastece.study.simulated import PRESETS, Design, preset

__all__ = ["PRESETS", "Design", "Predictions", "StudyResult", "preset", "run_study"]
