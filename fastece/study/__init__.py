"""The study of estimators on problems with known calibration error.

It simulates the problems of Posocco and Bonnefoy (2021, "Estimating expected calibration errors",
section 4) at full size, or draws from large files of a user's own predictions. A user's own
estimator takes part by its name. The study needs the extra "study".
"""

from fastece.study.design import PRESETS, Design, Predictions, preset
from fastece.study.study import StudyResult, run_study

__all__ = ["PRESETS", "Design", "Predictions", "StudyResult", "preset", "run_study"]
