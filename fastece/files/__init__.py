"""Predictions and logs of evaluations, read from files and written to them.

A new format is a class of `tables`, or of `arrow_tables` if pyarrow reads it, and a case in
`formats`; a writer is a row of `writing`. `columns` decides which columns are read, and `cells`
which of their cells are bad. Nothing here knows about calibration. Begin with `predictions.Reader`.
"""

from fastece.files.columns import LAYOUTS as LAYOUTS
from fastece.files.file_sums import FileCount as FileCount
from fastece.files.file_sums import FileSum as FileSum
from fastece.files.paths import STANDARD_INPUT as STANDARD_INPUT
from fastece.files.paths import expand_paths as expand_paths
from fastece.files.paths import file_identity as file_identity
from fastece.files.paths import find_number_out_of_order as find_number_out_of_order
from fastece.files.paths import is_piped as is_piped
from fastece.files.predictions import FilePredictions as FilePredictions
from fastece.files.predictions import Reader as Reader
from fastece.files.predictions import iter_batches as iter_batches
from fastece.files.predictions import read_logs as read_logs
from fastece.files.predictions import read_predictions as read_predictions
from fastece.files.predictions import read_whole as read_whole
from fastece.files.replacing import is_device as is_device
from fastece.files.replacing import write_file as write_file
from fastece.files.writing import check_output as check_output
from fastece.files.writing import write_predictions as write_predictions
