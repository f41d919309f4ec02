"""How the web server is called. It needs no settings, so that measurements call it in the same way."""

import sys


def build_granian_command(host: str, port: int, workers: int, threads: int, stop_timeout: int) -> list[str]:
    """Returns the server's command line, to which an application is added.

    Threads let the commits of writers overlap; dead workers are replaced. A worker is killed `stop_timeout` seconds
    after it was told to stop.
    """
    options = {
        "--interface": "wsgi",
        "--host": host,
        "--port": port,
        "--workers": workers,
        "--blocking-threads": threads,
        "--log-level": "error",
        "--workers-kill-timeout": stop_timeout,
    }
    arguments = [str(word) for option in options.items() for word in option]
    return [
        sys.executable,
        "-m",
        "granian",
        *arguments,
        "--no-ws",
        "--respawn-failed-workers",
    ]
