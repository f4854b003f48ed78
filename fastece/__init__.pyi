__version__: str

from .metrics import (
    accuracy as accuracy,
    ace as ace,
    brier_score as brier_score,
    canonical_error as canonical_error,
    ece as ece,
    entropy as entropy,
    kernel_calibration_error as kernel_calibration_error,
    log_loss as log_loss,
    mce as mce,
    ranked_probability_score as ranked_probability_score,
    sce as sce,
    sharpness as sharpness,
    tace as tace,
)
from .data.errors import InputError as InputError, InputTypeError as InputTypeError
from .data.predictions import Predictions as Predictions
from .reliability.decomposition import (
    brier_decomposition as brier_decomposition,
    score_decomposition as score_decomposition,
)
from .estimators.bayes.estimator import BayesCurve as BayesCurve
from .estimators.binned import Binned as Binned, Sweep as Sweep
from .estimators.canonical import SKCE as SKCE, DirichletKDE as DirichletKDE
from .estimators.cumulative import CumulativeError as CumulativeError
from .estimators.density.estimator import KDE as KDE
from .estimators.faults import EstimatorError as EstimatorError, check_estimator as check_estimator
from .estimators.losses import (
    Accuracy as Accuracy,
    BrierScore as BrierScore,
    Entropy as Entropy,
    LogLoss as LogLoss,
    RankedProbabilityScore as RankedProbabilityScore,
    Sharpness as Sharpness,
)
from .estimators.risk import NetBenefit as NetBenefit, RiskStatistic as RiskStatistic
from .estimators.selective import SelectiveRisk as SelectiveRisk
from .estimators.smooth import MMCE as MMCE, SmoothECE as SmoothECE
from .estimators.table import ESTIMATORS as ESTIMATORS
from .reliability.plot import reliability_plot as reliability_plot
from .decisions.gate import check as check
from .inference.compare import compare as compare
from .inference.direction import direction as direction
from .inference.estimate import estimate as estimate
from .inference.rows_needed import rows_needed as rows_needed
from .inference.slices import slices as slices
from .risk.validation import validate as validate
from .decisions.monitor import Monitor as Monitor
from .reliability.cumulative import cumulative_plot as cumulative_plot
from .reliability.curve import reliability_curve as reliability_curve
from .reliability.diagram import reliability_diagram as reliability_diagram
from .report.report import calibration_report as calibration_report
from .resampling.bootstrap import bootstrap as bootstrap
from .resampling.calibration_test import calibration_test as calibration_test
from .streams.accumulator import Accumulator as Accumulator
