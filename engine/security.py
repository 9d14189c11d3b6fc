"""Who may talk to the engine: the private runtime folder, CURVE keys, the ZAP answer, the token.

Knows nothing of messages or sessions.
"""

from __future__ import annotations

import ipaddress
import json
import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

import psutil
import zmq
import zmq.auth
from zmq.utils import z85

from engine.errors import EngineError

IPC_PATH_LIMIT = 107  # characters, of a UNIX socket's address
LONGEST_NAME = len("/telemetry")
ZAP_ENDPOINT = "inproc://zeromq.zap.01"


def make_runtime_dir(base: Path | None) -> Path:
    """A folder of this run alone, mode 0700. Raises EngineError("bad_config")."""
    parent = base or Path(tempfile.gettempdir())
    try:
        parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="avatar-", dir=parent))
    except OSError as error:
        raise EngineError(
            "bad_config", f"no runtime folder in {parent} ({error.strerror})", "use --runtime-dir"
        ) from error
    if len(str(folder)) + LONGEST_NAME > IPC_PATH_LIMIT:
        folder.rmdir()
        raise EngineError(
            "bad_config", f"{folder} is too long for an ipc socket ({IPC_PATH_LIMIT} characters)",
            "use a shorter --runtime-dir",
        )  # fmt: skip
    return folder


def sweep_runtime_dirs(base: Path | None) -> None:
    """Remove what engines of this user left that were killed with kill -9."""
    for line in (base or Path(tempfile.gettempdir())).glob("avatar-*/engine.json"):
        try:
            pid = int(json.loads(line.read_text())["pid"])
            is_ours = line.stat().st_uid == os.getuid() and not line.parent.is_symlink()
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if is_ours and not psutil.pid_exists(pid):
            shutil.rmtree(line.parent, ignore_errors=True)


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def check_bind(host: str, has_curve: bool) -> None:
    """Raises EngineError("insecure_bind") for a bind that others could reach unencrypted."""
    if not has_curve and not is_loopback(host):
        raise EngineError(
            "insecure_bind", f"{host} can be reached from other machines without encryption",
            "give --curve-key-dir, or bind to 127.0.0.1",
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class CurveKeys:
    """The engine's key pair and the public keys of the clients that may connect (Z85)."""

    public: bytes
    secret: bytes
    clients: frozenset[bytes]

    def apply(self, socket: zmq.Socket[bytes]) -> None:
        socket.setsockopt(zmq.CURVE_SERVER, 1)
        socket.setsockopt(zmq.CURVE_SECRETKEY, self.secret)
        socket.setsockopt(zmq.CURVE_PUBLICKEY, self.public)
        socket.setsockopt_string(zmq.ZAP_DOMAIN, "avatar")


def load_keys(folder: Path) -> CurveKeys:
    """Keys of a folder: `engine.key_secret` and `clients/*.key`; what is missing is made.

    A folder without clients gets one pair, `clients/studio.key` here and `studio.key_secret` to be
    carried to the studio's machine. Raises EngineError("bad_config").
    """
    clients_dir = folder / "clients"
    try:
        clients_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        secret_file = folder / "engine.key_secret"
        if not secret_file.exists():
            _make_pair(folder, "engine")
        if not list(clients_dir.glob("*.key")):
            _make_pair(folder, "studio")
            (folder / "studio.key").rename(clients_dir / "studio.key")
        mode = stat.S_IMODE(secret_file.stat().st_mode)
        if mode & 0o077:
            raise EngineError(
                "bad_config", f"{secret_file} may be read by others (mode {mode:o})",
                f"chmod 600 {secret_file}",
            )  # fmt: skip
        public, secret = zmq.auth.load_certificate(secret_file)
        clients = frozenset(zmq.auth.load_certificate(f)[0] for f in clients_dir.glob("*.key"))
    except (OSError, ValueError) as error:
        raise EngineError(
            "bad_config", f"CURVE keys in {folder} cannot be read ({error})",
            "use a folder of your own; missing keys are made in it",
        ) from error  # fmt: skip
    if secret is None:
        raise EngineError("bad_config", f"{secret_file} holds no secret key", "remove it")
    return CurveKeys(public, secret, clients)


def _make_pair(folder: Path, name: str) -> None:
    _, secret = zmq.auth.create_certificates(folder, name)
    Path(secret).chmod(0o600)  # pyzmq leaves it to the umask


class ZapDoor:
    """Answers libzmq's question whether a client's key is known (RFC 27)."""

    def __init__(self, clients: frozenset[bytes]) -> None:
        self._clients = clients
        self.refused = 0
        self.socket = zmq.Context.instance().socket(zmq.REP)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.bind(ZAP_ENDPOINT)

    def answer(self) -> None:
        """One request: [version, id, domain, address, identity, mechanism, key]."""
        parts = self.socket.recv_multipart()
        version, request = parts[0], parts[1]
        key = parts[6] if len(parts) == 7 and parts[5] == b"CURVE" else b""
        known = len(key) == 32 and z85.encode(key) in self._clients
        self.refused += not known
        status = [b"200", b"OK", b"studio"] if known else [b"400", b"key is not known", b""]
        self.socket.send_multipart([version, request, *status, b""])
