"""The process of a local model server: llama.cpp's own, on a free port of loopback, until its standard input ends.

Started as `python -m dubito.plugins.local.serve` with one line of JSON on standard input. It prints its address. The
parent process holds the other end of the input. When the parent ends, however it ends, this process ends as well.
"""

import json
import os
import signal
import sys

_HOST = "127.0.0.1"
_BATCH = 128  # tokens: the server reports its progress after each batch of a prompt


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the run, which may still wait for open calls
    options = json.loads(sys.stdin.readline())
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = options["path"]
    params.n_ctx = options["context"] * options["slots"]  # it is divided among the slots
    params.n_parallel = options["slots"]
    params.n_batch = params.n_ubatch = _BATCH
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options["threads"]
    params.hostnames, params.port = [_HOST], 0
    params.verbosity = 0
    params.model_alias = {options["name"]}  # else replies would show the path
    server = xllamacpp.Server(params)
    print(json.dumps({"address": server.listening_address}), flush=True)
    sys.stdin.read()
    os._exit(0)  # the server's threads have nothing to save, and its destructor waits for open calls


if __name__ == "__main__":
    main()
