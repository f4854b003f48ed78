"""Memory and time of the report's sums of a Parquet file that is read as a stream.

Makes a file of float32 scores and int8 labels in a temporary folder, row groups of a million rows,
and reads it in processes of their own, in turn: only with pyarrow (`pre_buffer=False`), and into a
`fastece.Accumulator`. Prints the median time of each, their ratio and the largest peak of memory.

    python scripts/evidence/stream_parquet.py [ROWS] [ROUNDS]
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np

GROUP = 10**6
READ = """
import json, resource, sys, time
import pyarrow.parquet
import fastece

def only_read(path):
    file = pyarrow.parquet.ParquetFile(path, pre_buffer=False)
    return sum(batch.num_rows for batch in file.iter_batches(2**18)), None

def add_up(path):
    from fastece.files import Reader
    rows = fastece.Accumulator()
    reader = Reader(path)
    for batch in reader.batches():
        found = reader.read_batch(batch)
        rows.update(found.y_true, found.y_prob)
    return rows.n, fastece.ece(rows)

fastece.ece(fastece.Accumulator().update([0, 1], [0.5, 0.5]))  # loads the kernels
start = time.perf_counter()
rows, value = globals()[sys.argv[1]](sys.argv[2])
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"rows": rows, "ece": value, "seconds": seconds, "peak": peak}))
"""


def make_file(path: Path, n_rows: int) -> None:
    """Write rows of uniform scores and labels that come a little less often than these say."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    schema = pa.schema([("y_true", pa.int8()), ("y_prob", pa.float32())])
    with parquet.ParquetWriter(path, schema) as writer:
        for start in range(0, n_rows, GROUP):
            score = rng.random(min(GROUP, n_rows - start), dtype=np.float32)
            label = (rng.random(score.size, dtype=np.float32) < score**1.2).astype(np.int8)
            writer.write_table(pa.table({"y_true": label, "y_prob": score}, schema))


def measure(what: str, path: Path) -> dict[str, float]:
    """Seconds and peak (MB) of one way to read, in a new process."""
    done = subprocess.run(
        [sys.executable, "-c", READ, what, str(path)], capture_output=True, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main(n_rows: int = 10**8, rounds: int = 3) -> None:
    """Make the file, measure, and print what was found."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "predictions.parquet"
        make_file(path, n_rows)
        print(f"{n_rows} rows, {path.stat().st_size / 1e6:.0f} MB")
        runs: dict[str, list[dict[str, float]]] = {"only_read": [], "add_up": []}
        for _ in range(rounds):  # in turn, so that both have the same neighbours
            for what, found in runs.items():
                found.append(measure(what, path))
    seconds = {what: median(run["seconds"] for run in found) for what, found in runs.items()}
    for what, found in runs.items():
        peak = max(run["peak"] for run in found)
        print(f"{what:<10} {seconds[what]:7.2f} s  {peak:5.0f} MB")
    print(f"ratio      {seconds['add_up'] / seconds['only_read']:7.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
