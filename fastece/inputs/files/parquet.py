"""Apache Parquet, read and written by pyarrow."""

from collections.abc import Sequence
from typing import IO, Any

from numpy.typing import NDArray

from fastece.inputs.files.columns import Column, Columns, by_column


class Parquet(Columns):
    """The columns of a Parquet file; `y_prob` may be lists, or objects."""

    endings: tuple[str, ...] = (".parquet",)

    def __init__(self, file: IO[bytes]) -> None:
        try:
            from pyarrow import parquet
        except ImportError as error:
            raise ValueError("Parquet needs pyarrow: pip install pyarrow") from error
        self.table = parquet.read_table(file)
        super().__init__(self.table.column_names, self.cells)

    def cells(self, name: str) -> Column:
        """A column as an array, or a list of cells."""
        from pyarrow import types

        found = self.table.column(name)
        is_plain = found.null_count == 0 and not types.is_nested(found.type)
        return found.to_numpy() if is_plain else found.to_pylist()  # type: ignore[no-any-return]

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
