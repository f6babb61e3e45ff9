"""Keys: a pair that signs evidence and checks signatures (Ed25519), and a secret that makes hashes unguessable."""

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

KEY_SUFFIXES = (".key", ".pub", ".secret")
SECRET_PATTERN = re.compile(r"[0-9a-f]{64}\n?")
MAX_KEY_BYTES = 65_536  # of a key file


@dataclass(frozen=True, eq=False)
class Signer:
    """A private key that signs evidence."""

    private_key: Ed25519PrivateKey

    @property
    def public(self) -> str:
        """The public key: 64 hexadecimal digits."""
        return _hex(self.private_key.public_key())

    def sign(self, content: bytes) -> str:
        """The signature: 128 hexadecimal digits."""
        return self.private_key.sign(content).hex()


def make_keys(name: str | os.PathLike[str]) -> tuple[Path, Path, Path]:
    """Write NAME.key, which signs, NAME.pub, which checks, and NAME.secret, which hides values; replace no file."""
    _require()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    paths = tuple(Path(f"{check_path('name', name)}{ending}") for ending in KEY_SUFFIXES)
    for path in paths:
        if path.exists():
            raise InputError(f"{path} exists already, and keys are never replaced; choose another name")
        check_writable(path, endings=None)
    private_key = Ed25519PrivateKey.generate()
    contents = (
        private_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        private_key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        f"{secrets.token_hex(32)}\n".encode(),
    )
    for path, content in zip(paths, contents, strict=True):
        (write_whole if path.suffix == ".pub" else write_private)(path, content)
    key, pub, secret = paths
    return key, pub, secret


def load_signer(path: str | os.PathLike[str]) -> Signer:
    """Load the private key of a PEM file."""
    _require()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    return Signer(_load_pem(path, lambda content: load_pem_private_key(content, None), Ed25519PrivateKey, "private"))


def load_public_key(path: str | os.PathLike[str]) -> str:
    """Load the public key of a PEM file, in the form used in evidence: 64 hexadecimal digits."""
    _require()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    return _hex(_load_pem(path, load_pem_public_key, Ed25519PublicKey, "public"))


def load_secret(path: str | os.PathLike[str]) -> bytes:
    """Load the secret of a file: 64 hexadecimal digits."""
    text = _read(path).decode(errors="replace")
    if not SECRET_PATTERN.fullmatch(text):
        raise InputError(f"{path} is not a secret of 64 hexadecimal digits; `tdce keys NAME` makes one")
    return bytes.fromhex(text.strip())


def signature_holds(public_key: str, signature: str, content: bytes) -> bool:
    """Whether the owner of the key has signed this content."""
    _require()
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key)).verify(bytes.fromhex(signature), content)
    except (InvalidSignature, ValueError):
        return False
    return True


def _load_pem(path: str | os.PathLike[str], load: Any, kind: Any, role: str) -> Any:
    content = _read(path)
    try:
        key = load(content)
    except Exception as error:  # the library raises several kinds
        raise InputError(f"{path} is not a {role} key in PEM form without a password ({show(error, spell=str)}); "
                         "`tdce keys NAME` makes one") from None  # fmt: skip
    if not isinstance(key, kind):
        raise InputError(f"{path} is a key, but not an Ed25519 {role} key; `tdce keys NAME` makes one")
    return key


def _read(path: str | os.PathLike[str]) -> bytes:
    checked = check_path("key", path)
    try:
        with checked.open("rb") as file:
            return file.read(MAX_KEY_BYTES)
    except OSError as error:
        raise InputError(f"the key {checked} cannot be read: {error.strerror}") from None


def _hex(key: Ed25519PublicKey) -> str:
    return key.public_bytes_raw().hex()


def _require() -> None:
    if find_spec("cryptography") is None:
        raise InputError("signatures need cryptography; install it with `pip install 'tdce[evidence]'`")
