"""The study of estimators where the calibration error is known. Needs the extra "study".

On simulated problems, as Posocco and Bonnefoy (2021, "Estimating expected calibration errors",
section 4), at full size; or on large files of a user's own predictions. A user's own estimator
takes part by its name.
"""

from fastece.study.design import PRESETS, Design, preset
from fastece.study.predictions import Predictions
from fastece.study.study import StudyResult, run_study

__all__ = ["PRESETS", "Design", "Predictions", "StudyResult", "preset", "run_study"]
