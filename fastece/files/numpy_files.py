"""NumPy arrays and archives as tables."""

from collections.abc import Sequence
from typing import IO, Any
from zipfile import ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from fastece.files.columns import Columns, by_column, float_type


def read_npy(file: IO[bytes]) -> "Fields | Matrix":
    """Read a NumPy array: one with named fields, or (n, 1 + K) of labels and probabilities."""
    return array_table(np.load(file, allow_pickle=False))


def array_table(array: NDArray[Any]) -> "Fields | Matrix":
    """An array as a table, if it is one with named fields, or (n, 1 + K)."""
    if array.dtype.names:
        return Fields(array)
    if array.ndim != 2 or array.shape[1] < 2:
        raise ValueError(
            f"holds an array of shape {array.shape}, and must hold named fields, or a matrix whose "
            "first column is y_true, and whose others are y_prob, or p_0, p_1 and so on"
        )
    return Matrix(array)


class Fields(Columns):
    """An array with named fields."""

    endings: tuple[str, ...] = (".npy",)

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array
        super().__init__(list(array.dtype.names or ()), array.__getitem__)

    def write(self, file: IO[bytes], names: Sequence[str], values: NDArray[Any]) -> None:
        """Write the table, as `Table` says."""
        new, kinds = by_column(names, values), self.array.dtype
        fields: list[Any] = [
            (name, float_type(kinds[name].base), kinds[name].shape) if name in new
            else (name, kinds[name]) for name in self.names
        ]  # fmt: skip
        array = np.empty(self.array.shape, fields)
        for name in self.names:
            array[name] = new.get(name, self.array[name])
        np.save(file, array)


class Matrix(Columns):
    """A matrix: the labels, then the probabilities."""

    endings: tuple[str, ...] = (".npy",)

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array
        names = ["y_true", *([f"p_{k}" for k in range(array.shape[1] - 1)])]
        names = names if len(names) > 2 else ["y_true", "y_prob"]
        super().__init__(names, lambda name: array[:, names.index(name)])

    def write(self, file: IO[bytes], names: Sequence[str], values: NDArray[Any]) -> None:
        """Write the table, as `Table` says."""
        array = self.array.astype(float_type(self.array.dtype))
        for name, column in by_column(names, values).items():
            array[:, self.names.index(name)] = column
        np.save(file, array)


class Archive(Columns):
    """An archive of arrays; `y_prob` may be a matrix."""

    endings: tuple[str, ...] = (".npz",)

    def __init__(self, file: IO[bytes]) -> None:
        with np.load(file, allow_pickle=False) as archive:
            self.arrays = dict(archive)
            self.compression = archive.zip.infolist()[0].compress_type if self.arrays else 0
        super().__init__([*self.arrays], self.arrays.__getitem__)

    def write(self, file: IO[bytes], names: Sequence[str], values: NDArray[Any]) -> None:
        """Write the table, as `Table` says. `numpy.savez` has no array of the name "file"."""
        new = by_column(names, values)
        with ZipFile(file, "w") as archive:
            for name, array in self.arrays.items():
                if name in new:
                    array = new[name].reshape(array.shape).astype(float_type(array.dtype))
                member = ZipInfo(f"{name}.npy")
                member.compress_type = self.compression
                with archive.open(member, "w", force_zip64=True) as part:
                    np.lib.format.write_array(part, array, allow_pickle=False)
