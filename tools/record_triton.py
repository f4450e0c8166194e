"""Records golden pairs from a real Triton: starts the server of the `nvidia-pytriton` wheel with the models of
tests/conformance, puts every request to it and writes what came back to tests/conformance/golden.

Runs in an environment of its own, made on the first run from requirements/triton.lock outside the repository.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
START_S = 90
ANSWER_S = 20
STOP_S = 20


def main() -> int:
    """Makes the environment, runs in it, records."""
    sys.path.insert(0, str(ROOT))
    from tests.conformance.environments import CACHE, prepare

    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--venv", type=Path, default=CACHE / "triton-venv", help="where the environment lies"
    )
    given = options.parse_args()
    if Path(sys.prefix).resolve() != given.venv.resolve():
        python = prepare("triton", given.venv)
        os.execv(python, [str(python), __file__, "--venv", str(given.venv)])
    with tempfile.TemporaryDirectory(prefix="seatrial-triton-") as folder:
        record(Path(folder))
    return 0


def record(folder: Path) -> None:
    """Starts Triton, records both protocols, ends it."""
    from tests.conformance.models import write_repository

    write_repository(folder / "models")
    triton, ports = start(folder)
    try:
        wait_ready(triton, ports["http"], folder / "log")
        record_http(triton, ports["http"])
        record_grpc(triton, ports["grpc"])
    finally:
        stop(triton)


def start(folder: Path) -> tuple[subprocess.Popen[bytes], dict[str, int]]:
    """Starts Triton on three free ports of the loopback address."""
    wheel = Path(sysconfig.get_paths()["purelib"])
    home = wheel / "pytriton" / "tritonserver"
    backends = folder / "backends"
    shutil.copytree(home / "backends", backends)
    stub = f"{sys.version_info.major}.{sys.version_info.minor}/triton_python_backend_stub"
    shutil.copy(home / "python_backend_stubs" / stub, backends / "python")
    ports = dict(zip(("http", "grpc", "metrics"), free_ports(3), strict=True))
    command = [
        str(home / "bin" / "tritonserver"), "--model-repository", str(folder / "models"),
        "--backend-directory", str(backends), "--model-control-mode", "none",
    ]  # fmt: skip
    for kind, port in ports.items():
        command += [f"--{kind}-address", "127.0.0.1", f"--{kind}-port", str(port)]
    # The stub looks for libpython through the loader, and for its modules on PYTHONPATH.
    libraries = [str(wheel / "nvidia_pytriton.libs"), sysconfig.get_config_var("LIBDIR")]
    search = ":".join([*libraries, os.environ.get("LD_LIBRARY_PATH", "")]).rstrip(":")
    environment = os.environ | {"PYTHONPATH": str(wheel), "LD_LIBRARY_PATH": search}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
        )
    return process, ports


def free_ports(count: int) -> list[int]:
    """Ports that nobody has at the moment; Triton does not tell a port it chose itself."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for taken in sockets:
            taken.bind(("127.0.0.1", 0))
        return [taken.getsockname()[1] for taken in sockets]
    finally:
        for taken in sockets:
            taken.close()


def wait_ready(triton: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Returns once Triton is ready; raises when it ends or takes too long."""
    from tests.conformance.http_requests import http as request

    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if triton.poll() is not None:
            raise SystemExit(
                f"Triton ended with {triton.returncode}:\n{log.read_text(errors='replace')[-40000:]}"
            )
        try:
            if ask(port, request("GET", "v2/health/ready"))[0] == 200:
                return
        except OSError:
            pass
        time.sleep(0.2)
    raise SystemExit(f"Triton was not ready within {START_S} s:\n{log.read_text(errors='replace')[-40000:]}")


def ask(port: int, raw: bytes) -> tuple[int, dict[str, str], bytes]:
    """Sends a request as it is; status, headers with names in lower case, body. Status 0 is a close without a word."""
    with socket.create_connection(("127.0.0.1", port), timeout=ANSWER_S) as connection:
        connection.sendall(raw)
        answer = http.client.HTTPResponse(connection, method=raw.split(b" ", 1)[0].decode())
        try:
            answer.begin()
        except http.client.RemoteDisconnected:
            return 0, {}, b""
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, headers, answer.read()


def record_http(triton: subprocess.Popen[bytes], port: int) -> None:
    """Every HTTP request and its answer."""
    from tests.conformance import http_requests, pairs

    recorded = []
    for request in http_requests.requests():
        try:
            status, headers, body = ask(port, request.raw)
        except OSError as error:
            raise SystemExit(f"no answer to `{request.name}`: {error}") from error
        body = pairs.decoded(body, headers.get("content-encoding"))
        answer = pairs.Answer.read(status, headers, body)
        recorded.append(pairs.Pair(request.name, request.rule, request.raw, answer))
        must_live(triton, port, request.name)
    pairs.save_pairs(pairs.GOLDEN / "http", recorded)
    print(f"{len(recorded)} HTTP pairs")


def must_live(triton: subprocess.Popen[bytes], port: int, after: str) -> None:
    """Raises when Triton did not survive a request: nothing that follows would be worth keeping."""
    from tests.conformance.http_requests import http as request

    try:
        status = ask(port, request("GET", "v2/health/live"))[0]
    except OSError:
        status = 0
    if status != 200:
        raise SystemExit(f"Triton does not answer after `{after}` (exit status {triton.poll()})")


def record_grpc(triton: subprocess.Popen[bytes], port: int) -> None:
    """Every gRPC call and its answer."""
    from tests.conformance import grpc_pairs, grpc_requests

    recorded = []
    for call in grpc_requests.calls():
        recorded.append(grpc_pairs.GrpcPair(call, grpc_pairs.ask(f"127.0.0.1:{port}", call, ANSWER_S)))
    grpc_pairs.save_pairs(recorded)
    print(f"{len(recorded)} gRPC pairs")


def stop(triton: subprocess.Popen[bytes]) -> None:
    """Ends Triton and its stubs: the session that it leads, and nothing else."""
    if triton.poll() is None:
        triton.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            triton.wait(STOP_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(triton.pid, signal.SIGKILL)
    triton.wait()


if __name__ == "__main__":
    sys.exit(main())
