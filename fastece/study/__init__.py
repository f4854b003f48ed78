"""The study of estimators on synthetic problems with known calibration error.

Posocco and Bonnefoy (2021, "Estimating expected calibration errors", section 4), at full size; with
an estimator of one's own in the same arena. Needs the extra "study".
"""

from fastece.study.design import PRESETS, Design, preset
from fastece.study.study import StudyResult, run_study

__all__ = ["PRESETS", "Design", "StudyResult", "preset", "run_study"]
