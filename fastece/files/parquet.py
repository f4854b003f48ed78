"""Apache Parquet, read and written by pyarrow."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastece.files.columns import Column, Columns, by_column

if TYPE_CHECKING:
    import pyarrow

# So many bytes of a column are read at once.
BUFFER = 2**20


def read_parquet(file: IO[bytes]) -> "Parquet":
    """Read a whole file."""
    return Parquet(load_parquet().read_table(file))


def load_parquet() -> Any:
    """The module that reads and writes such files, or an error says where it comes from."""
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise ValueError("Parquet needs pyarrow: pip install pyarrow") from error
    return parquet


def parquet_tables(
    path: str, choose: Callable[["Parquet"], list[str]], rows_of: Callable[[float], int]
) -> "Iterator[tuple[pyarrow.Table, int]]":
    """The rows of a file, some at a time, and how many there are in all.

    Parameters
    ----------
    choose
        Gives the columns that are wanted of a table without rows.
    rows_of
        How many rows to read at once, if a row has so many numbers.
    """
    parquet, before = load_parquet(), 0
    from pyarrow import Table

    with readable("cannot be read as parquet"):
        # Without the buffer a column of a row group is read at once, however long it is.
        file = parquet.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER)
    with file:
        schema, total = file.schema_arrow, file.metadata.num_rows
        names = choose(Parquet(Table.from_batches([], schema)))
        batches = file.iter_batches(rows_of(numbers_of(file.metadata, names)), columns=names)
        while before < total:
            with readable(f"after row {before} of {total} it cannot be read as parquet"):
                table = Table.from_batches([next(batches)])
            before += table.num_rows
            if table.num_rows:
                yield table, total


def numbers_of(metadata: Any, names: Sequence[str]) -> float:
    """How many numbers the columns have in a row, in the mean of the first row group."""
    if not metadata.num_row_groups or not metadata.row_group(0).num_rows:
        return 1.0
    group = metadata.row_group(0)
    columns = [group.column(k) for k in range(group.num_columns)]
    wanted = [x for x in columns if {x.path_in_schema, x.path_in_schema.split(".")[0]} & {*names}]
    return float(sum(column.num_values for column in wanted) / group.num_rows)


@contextmanager
def readable(what: str) -> Iterator[None]:
    """While the block runs, whatever pyarrow raises for a broken file is an error that says so."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:  # of the disk
            raise
        raise ValueError(f"{what}: {error}") from error
    except Exception as error:
        raise ValueError(f"{what}: {error}") from error


class Parquet(Columns):
    """The columns of a Parquet file, or of some of its rows; `y_prob` may be lists, or objects."""

    endings: tuple[str, ...] = (".parquet",)

    def __init__(self, table: "pyarrow.Table") -> None:
        self.table = table
        # No method of its own, as tables of batches must not wait for the garbage collector.
        super().__init__(table.column_names, partial(cells_of, table))

    def write(self, file: IO[bytes], names: Sequence[str], values: NDArray[Any]) -> None:
        """Write the table, as `Table` says; types of floats stay, others become float64."""
        from pyarrow import array, parquet, types

        table = self.table
        for name, column in by_column(names, values).items():
            place, kind = self.names.index(name), table.schema.field(name).type
            cells: list[Any] = column.tolist()
            inner = [kind]
            if types.is_struct(kind):
                fields = [field.name for field in kind]
                cells = [dict(zip(fields, row, strict=True)) for row in cells]
                inner = [field.type for field in kind]
            elif types.is_nested(kind):
                inner = [kind.value_type]
            keeps = all(types.is_float32(one) or types.is_float64(one) for one in inner)
            table = table.set_column(place, name, array(cells, kind if keeps else None))
        parquet.write_table(table, file)


def cells_of(table: "pyarrow.Table", name: str) -> Column:
    """A column as an array, or a list of cells."""
    from pyarrow import types

    found = table.column(name)
    if found.null_count or types.is_nested(found.type):
        return found.to_pylist()  # type: ignore[no-any-return]
    is_number = types.is_integer(found.type) or types.is_floating(found.type)
    if is_number and found.num_chunks == 1:  # as it is; to_numpy would import pandas first
        return np.from_dlpack(found.chunk(0))
    return found.to_numpy()  # type: ignore[no-any-return]
