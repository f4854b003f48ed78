"""The protocol of estimators: the sample they receive, and their methods."""

from fastece.data.samples import Sample as Sample
from fastece.data.samples import Vectors as Vectors
from fastece.estimators.base import Estimator as Estimator
from fastece.estimators.base import Parameters as Parameters
from fastece.estimators.base import Plan as Plan
from fastece.estimators.base import Statistic as Statistic
from fastece.estimators.curve import Curve as Curve
from fastece.estimators.curve import curve_near_rows as curve_near_rows
from fastece.estimators.draws import Counts as Counts
from fastece.estimators.draws import Labels as Labels
from fastece.estimators.draws import Rows as Rows
