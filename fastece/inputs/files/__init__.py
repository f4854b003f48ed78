"""Predictions from files, one module a format: a file is a table of named columns, whose names say
how to read it."""

from fastece.inputs.files.batches import expand_paths as expand_paths
from fastece.inputs.files.batches import read_batches as read_batches
from fastece.inputs.files.predictions import LAYOUTS as LAYOUTS
from fastece.inputs.files.predictions import Predictions as Predictions
from fastece.inputs.files.predictions import read_predictions as read_predictions
from fastece.inputs.files.source import STANDARD_INPUT as STANDARD_INPUT
from fastece.inputs.files.writing import check_rewrite as check_rewrite
from fastece.inputs.files.writing import whole_file as whole_file
from fastece.inputs.files.writing import write_predictions as write_predictions
