"""Builds the image: `python3 -m tests.container.build FOLDER`. It needs buildah, debootstrap, and Python alone.

The folder then has the image's description and a root with its files.
"""

import shutil
import subprocess
import sys
from pathlib import Path

BASE, IMAGE = "localhost/library-base", "localhost/library-api"
# Seconds. Most of the time packages are loaded.
COMMAND_TIMEOUT = 900
# The archive of Debian that this machine uses, and its release.
FIND_ARCHIVE = [
    "apt-get",
    "indextargets",
    "--format",
    "$(CODENAME) $(REPO_URI)",
    "Created-By: Packages",
    "Component: main",
]
# What an index of packages needs. Other settings of pip name paths of this machine.
PIP_SETTINGS = ("index-url", "extra-index-url", "proxy", "trusted-host")


def main(folder: Path) -> None:
    storage, base = folder / "storage", folder / "base"
    release, archive = run(*FIND_ARCHIVE).splitlines()[0].split()
    run("debootstrap", "--variant=minbase", "--include=python3,python3-venv,ca-certificates", release, base, archive)
    container = run_buildah(storage, "from", "scratch").strip()
    run_buildah(storage, "add", "--quiet", container, base, "/")
    run_buildah(storage, "commit", "--quiet", "--rm", container, BASE)
    shutil.rmtree(base)
    (folder / "pip.conf").write_text("[global]\n" + "".join(list_pip_settings()))
    mounts = ["--volume=/etc/ssl/certs:/etc/ssl/certs:ro", f"--volume={folder / 'pip.conf'}:/etc/pip.conf:ro"]
    # The format of OCI has no HEALTHCHECK.
    options = ["--pull-never", "--format=docker", "--isolation=chroot", f"--build-arg=BASE={BASE}"]
    run_buildah(storage, "build", *options, *mounts, "--file=Containerfile", f"--tag={IMAGE}", ".")
    (folder / "image.json").write_text(run_buildah(storage, "inspect", "--type=image", IMAGE))
    container = run_buildah(storage, "from", "--pull-never", IMAGE).strip()
    (folder / "root").symlink_to(run_buildah(storage, "mount", container).strip())


def list_pip_settings() -> list[str]:
    """Returns the lines of a configuration file, those of this machine that hold in the image."""
    lines = [line.partition("=") for line in run(sys.executable, "-m", "pip", "config", "list").splitlines()]
    settings = {key.rpartition(".")[2]: value.strip("'") for key, _, value in lines}
    return [f"{name} = {value}\n" for name, value in settings.items() if name in PIP_SETTINGS and "file:" not in value]


def run_buildah(storage: Path, *command: object) -> str:
    return run("buildah", "--storage-driver=vfs", f"--root={storage}", f"--runroot={storage}.run", *command)


def run(*command: object) -> str:
    """Returns the output. Raises CalledProcessError."""
    output: str = subprocess.check_output([*map(str, command)], text=True, timeout=COMMAND_TIMEOUT)
    return output


if __name__ == "__main__":
    main(Path(sys.argv[1]))
