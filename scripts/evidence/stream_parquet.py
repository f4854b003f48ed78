"""Memory and time of adding up a Parquet file that is read as a stream.

Writes a file of float32 scores and int8 labels to a temporary folder, in row groups of a million
rows, and reads it in new processes, in turn: with pyarrow alone (`pre_buffer=False`), and into a
`fastece.Accumulator`. Prints the median time of each, their ratio, and the largest peak of memory.

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
    from fastece.files import iter_batches
    rows = fastece.Accumulator()
    for predictions in iter_batches(path):
        rows.update(predictions.y_true, predictions.y_prob)
    return rows.n, fastece.ece(rows)

fastece.ece(fastece.Accumulator().update([0, 1], [0.5, 0.5]))  # loads the kernels
start = time.perf_counter()
rows, value = globals()[sys.argv[1]](sys.argv[2])
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"rows": rows, "ece": value, "seconds": seconds, "peak": peak}))
"""


def make_file(path: Path, n_rows: int) -> None:
    """Write rows of uniform scores, and outcomes that are 1 slightly less often."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    schema = pa.schema([("y_true", pa.int8()), ("y_prob", pa.float32())])
    with parquet.ParquetWriter(path, schema) as writer:
        for start in range(0, n_rows, GROUP):
            score = rng.random(min(GROUP, n_rows - start), dtype=np.float32)
            label = (rng.random(score.size, dtype=np.float32) < score**1.2).astype(np.int8)
            writer.write_table(pa.table({"y_true": label, "y_prob": score}, schema))


def measure(function: str, path: Path) -> dict[str, float]:
    """Run one of the two functions in a new process, and return its seconds and peak (MB)."""
    command = [sys.executable, "-c", READ, function, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    run: dict[str, float] = json.loads(done.stdout)
    return run


def main(n_rows: int = 10**8, rounds: int = 3) -> None:
    """Make the file, measure, and print times and memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "predictions.parquet"
        make_file(path, n_rows)
        print(f"{n_rows} rows, {path.stat().st_size / 1e6:.0f} MB")
        runs: dict[str, list[dict[str, float]]] = {"only_read": [], "add_up": []}
        for _ in range(rounds):  # in turn, so that other load of the machine meets both
            for function in runs:
                runs[function].append(measure(function, path))
    seconds = {}
    for function, runs_of_function in runs.items():
        seconds[function] = median(run["seconds"] for run in runs_of_function)
        peak = max(run["peak"] for run in runs_of_function)
        print(f"{function:<10} {seconds[function]:7.2f} s  {peak:5.0f} MB")
    print(f"ratio      {seconds['add_up'] / seconds['only_read']:7.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
