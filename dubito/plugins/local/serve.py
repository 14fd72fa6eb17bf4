"""The process of a local model server: llama.cpp's server on a free loopback port, until its standard input ends.

It is started as `python -m dubito.plugins.local.serve` with one line of JSON on standard input, and prints its address.
The parent process holds the other end of the input, so this process ends with its parent, however that happens.
"""

import json
import os
import signal
import sys

_HOST = "127.0.0.1"
_BATCH = 128  # tokens; the server reports its progress after each batch of a prompt


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run handles Ctrl-C, and may still be waiting for open calls
    options = json.loads(sys.stdin.readline())
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = options["path"]
    params.n_ctx = options["context"] * options["slots"]  # divided among the slots
    params.n_parallel = options["slots"]
    params.n_batch = params.n_ubatch = _BATCH
    # Otherwise a model with sliding-window attention, such as Gemma 3, reads most of a known prompt again.
    params.swa_full = True
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options["threads"]
    params.hostnames, params.port = [_HOST], 0
    params.verbosity = 0
    params.model_alias = {options["name"]}  # otherwise replies would show the path
    server = xllamacpp.Server(params)
    print(json.dumps({"address": server.listening_address}), flush=True)
    sys.stdin.read()
    os._exit(0)  # skip the server's destructor, which waits for open calls; its threads have nothing to save


if __name__ == "__main__":
    main()
