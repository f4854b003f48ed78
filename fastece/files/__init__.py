"""Predictions from files: tables whose column names show how to read them."""

from fastece.files.formats import STANDARD_INPUT as STANDARD_INPUT
from fastece.files.formats import expand_paths as expand_paths
from fastece.files.formats import identity as identity
from fastece.files.formats import is_piped as is_piped
from fastece.files.formats import unique_keys as unique_keys
from fastece.files.guess import suggest_options as suggest_options
from fastece.files.predictions import LAYOUTS as LAYOUTS
from fastece.files.predictions import FileCount as FileCount
from fastece.files.predictions import FileSum as FileSum
from fastece.files.predictions import NoColumnError as NoColumnError
from fastece.files.predictions import Predictions as Predictions
from fastece.files.predictions import Reader as Reader
from fastece.files.predictions import read_logs as read_logs
from fastece.files.predictions import read_predictions as read_predictions
from fastece.files.predictions import read_whole as read_whole
from fastece.files.writing import check_output as check_output
from fastece.files.writing import write_file as write_file
from fastece.files.writing import write_predictions as write_predictions
