"""The server's own process: `python -m seatrial.engine CONFIG`. From here on everything is native.

Signals are left to the native side, and the process ends without the interpreter's farewell: a model run that does
not end must not hold it up.
"""

import os
import signal
import sys

from seatrial._native import run_server

if __name__ == "__main__":
    if len(sys.argv) != 2:
        print("usage: python -m seatrial.engine CONFIG", file=sys.stderr)
        sys.exit(2)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os._exit(run_server(sys.argv[1]))
