"""An S3 server on this machine, and the environment in which this process and its children reach it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def serve_s3() -> Iterator[str]:
    """Yield the address of a server without buckets; skip where moto is not installed."""
    moto = pytest.importorskip("moto.server")
    running = moto.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        # In the environment of the process, where libraries in C++ look, and nothing of the machine's own.
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        yield f"http://{host}:{port}"
    running.stop()
