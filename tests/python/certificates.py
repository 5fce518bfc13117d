"""Certificates for tests, made with the openssl command."""

import base64
import hashlib
import shutil
import subprocess
from pathlib import Path


class Authority:
    """A certificate authority whose files are in a folder."""

    def __init__(self, folder: Path) -> None:
        if shutil.which("openssl") is None:
            import pytest  # the benches have none

            pytest.skip("needs the openssl command")
        self.folder = folder
        self.certificate = folder / "ca.pem"
        self.key = folder / "ca.key"
        new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        self.new_key = ["req", *new_key, "-subj", "/CN=test"]
        words = ["-x509", "-days", "2", "-keyout", self.key, "-out", self.certificate]
        openssl(*self.new_key, *words)

    def issue(self, name: str, *addresses: str) -> tuple[Path, Path]:
        """Makes a certificate for these names (`DNS:...`, `IP:...`). Returns its file and that of its key."""
        certificate, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        request, extensions = self.folder / f"{name}.csr", self.folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName={','.join(addresses)}\n")
        openssl(*self.new_key, "-keyout", key, "-out", request)
        by = ["-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial", "-days", "2"]
        words = ["-in", request, "-out", certificate, "-extfile", extensions]
        openssl("x509", "-req", *by, *words)
        return certificate, key


def fingerprint(certificate: Path) -> str:
    """The SHA-256 of the public key in a certificate, in base64."""
    key = openssl("x509", "-in", certificate, "-pubkey", "-noout")
    der = openssl("pkey", "-pubin", "-outform", "der", text=key)
    return base64.b64encode(hashlib.sha256(der).digest()).decode()


def openssl(*words: str | Path, text: bytes = b"") -> bytes:
    """Runs the command on a text, and returns its output."""
    command = ["openssl", *map(str, words)]
    return subprocess.run(command, check=True, capture_output=True, input=text).stdout
