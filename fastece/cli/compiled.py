"""Lists of compiled kernels: those that are kept on disk, and those that came with the package."""

from pathlib import Path


def kept_kernels() -> list[str]:
    """List the kernel of each compiled signature that is kept on disk.

    The folder has a file for each, those that other kernels call among them, whichever process
    compiled it.

    Raises
    ------
    OSError
        If no kernels can be kept.
    """
    from fastece.kernels import cache

    if cache.FAILURES:
        raise OSError(cache.FAILURES[-1])
    if cache.CACHE_DIRECTORY is None:
        raise OSError("NUMBA_DISABLE_JIT is set, so nothing is compiled")
    return [path.name.partition("-")[0] for path in Path(cache.CACHE_DIRECTORY).glob("*.nbc")]


def shipped_kernels() -> list[str]:
    """List the kernel of each compiled signature that the package came with."""
    from fastece.kernels import archive

    names = frozenset() if archive.ARCHIVE is None else archive.ARCHIVE.names
    return [name.partition("-")[0] for name in names]


def close_archive() -> None:
    """Leave the kernels alone that the package came with, and compile them instead."""
    from fastece.kernels import archive

    if archive.ARCHIVE is not None:
        archive.ARCHIVE.close()
