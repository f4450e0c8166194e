"""The generator's own process: `python -m seatrial.bench CONFIG`. From here on everything is native."""

import os
import signal
import sys

from seatrial._native import run_load

if __name__ == "__main__":
    if len(sys.argv) != 2:
        print("usage: python -m seatrial.bench CONFIG", file=sys.stderr)
        sys.exit(2)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os._exit(run_load(sys.argv[1]))
