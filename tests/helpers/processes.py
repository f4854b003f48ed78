"""Processes of torch.distributed, on loopback."""

import os
import socket
import subprocess
import sys


def free_port():
    """One that nobody listens at."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


def run_two(code, folder):
    """Run two processes of torch.distributed on loopback; return their output."""
    script = folder / "process.py"
    script.write_text(code, encoding="utf-8")
    env = {
        **os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(),
        "GLOO_SOCKET_IFNAME": "lo", "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    processes = [
        subprocess.Popen([sys.executable, str(script)], env={**env, "RANK": str(rank)}, **pipes)
        for rank in range(2)
    ]
    try:
        done = [process.communicate(timeout=120) for process in processes]
    finally:
        for process in processes:
            process.kill()
    for process, (_, errors) in zip(processes, done, strict=True):
        assert process.returncode == 0, errors
    return [printed.strip() for printed, _ in done]
