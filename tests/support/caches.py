"""Starts caches of other authors in front of a served library, as they are without settings of their own."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.support.server import Service, reserve_port
from tests.support.waiting import wait_until

# nginx stores nothing until it is told which statuses. Without a master it runs as the user of the suite.
NGINX = """
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/bodies;
    proxy_temp_path {folder}/parts;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    proxy_cache_path {folder}/cache keys_zone=library:1m;
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass {url};
            proxy_set_header Host $host;
            proxy_cache library;
            proxy_cache_valid any 1m;
        }}
    }}
}}
"""


def build_nginx_command(folder: Path, port: int, url: str) -> list[str]:
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port, url=url))
    return ["nginx", "-e", str(folder / "log"), "-c", str(folder / "nginx.conf")]


def build_varnish_command(folder: Path, port: int, url: str) -> list[str]:
    addresses = ["-a", f"127.0.0.1:{port}", "-b", url.removeprefix("http://")]
    return ["varnishd", "-F", "-j", "none", "-n", str(folder / "varnish"), *addresses]


CACHES = {"nginx": build_nginx_command, "varnish": build_varnish_command}


@contextmanager
def start_cache(name: str, folder: Path, service: Service) -> Iterator[httpx.Client]:
    """Yields a client of the cache."""
    with reserve_port() as port, (folder / "output").open("w") as output:
        process = subprocess.Popen(CACHES[name](folder, port, service.url), stdout=output, stderr=output)
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
                wait_until(lambda: is_ready(client))
                yield client
        finally:
            process.terminate()
            process.wait()


def is_ready(client: httpx.Client) -> bool:
    try:
        return client.head("/").is_success
    except httpx.TransportError:
        return False
