"""Keys: a pair that signs and checks evidence (Ed25519), and a secret that makes hashes which nobody can guess."""

from __future__ import annotations

import os
import re
import secrets
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tdce._core import InputError, check_path, show
from tdce.datasets import check_writable, write_private, write_whole

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

ENDINGS = (".key", ".pub", ".secret")
SECRET = re.compile(r"[0-9a-f]{64}\n?")
LONGEST = 65_536  # bytes of a key file


@dataclass(frozen=True, eq=False)
class Signer:
    """A private key."""

    own: Ed25519PrivateKey

    @property
    def public(self) -> str:
        return _digits(self.own.public_key())

    def sign(self, what: bytes) -> str:
        return self.own.sign(what).hex()


def make(name: str | os.PathLike[str]) -> tuple[Path, Path, Path]:
    """Write NAME.key, which signs, NAME.pub, which checks, and NAME.secret, which hides values; none is replaced."""
    _require()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    paths = tuple(Path(f"{check_path('name', name)}{ending}") for ending in ENDINGS)
    for path in paths:
        if path.exists():
            raise InputError(f"{path} exists, and keys are never replaced; name others")
        check_writable(path, endings=None)
    own = Ed25519PrivateKey.generate()
    contents = (
        own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        own.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        f"{secrets.token_hex(32)}\n".encode(),
    )
    for path, content in zip(paths, contents, strict=True):
        (write_whole if path.suffix == ".pub" else write_private)(path, content)
    key, pub, secret = paths
    return key, pub, secret


def signer(path: str | os.PathLike[str]) -> Signer:
    """The private key of a PEM file."""
    _require()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    return Signer(_loaded(path, lambda content: load_pem_private_key(content, None), Ed25519PrivateKey, "private"))


def public(path: str | os.PathLike[str]) -> str:
    """The public key of a PEM file, as evidence has it: 64 hexadecimal digits."""
    _require()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    return _digits(_loaded(path, load_pem_public_key, Ed25519PublicKey, "public"))


def secret(path: str | os.PathLike[str]) -> bytes:
    """The secret of a file: 64 hexadecimal digits."""
    text = _content(path).decode(errors="replace")
    if not SECRET.fullmatch(text):
        raise InputError(f"{path} is no secret of 64 hexadecimal digits; `tdce keys NAME` makes one")
    return bytes.fromhex(text.strip())


def holds(key: str, value: str, what: bytes) -> bool:
    """Whether a signature is that of the key's owner."""
    _require()
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(bytes.fromhex(value), what)
    except (InvalidSignature, ValueError):
        return False
    return True


def _loaded(path: str | os.PathLike[str], load: Any, kind: Any, called: str) -> Any:
    content = _content(path)
    try:
        found = load(content)
    except Exception as error:  # the library raises several kinds
        raise InputError(f"{path} is no {called} key in PEM form without a password ({show(error, spell=str)}); "
                         "`tdce keys NAME` makes one") from None  # fmt: skip
    if not isinstance(found, kind):
        raise InputError(f"{path} is a key, but no {called} key of Ed25519; `tdce keys NAME` makes one")
    return found


def _content(path: str | os.PathLike[str]) -> bytes:
    where = check_path("key", path)
    try:
        with where.open("rb") as file:
            return file.read(LONGEST)
    except OSError as error:
        raise InputError(f"the key {where} cannot be read: {error.strerror}") from None


def _digits(key: Ed25519PublicKey) -> str:
    return key.public_bytes_raw().hex()


def _require() -> None:
    if find_spec("cryptography") is None:
        raise InputError("signatures need cryptography; install it with `pip install 'tdce[evidence]'`")
