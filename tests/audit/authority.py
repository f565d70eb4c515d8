"""A timestamp authority after RFC 3161: `openssl ts` behind an HTTP server."""

from __future__ import annotations

import datetime
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_CONFIGURATION = """
[ tsa ]
default_tsa = authority
[ authority ]
serial = serial
signer_cert = authority.pem
signer_key = authority.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
ess_cert_id_alg = sha256
"""


class Authority:
    """An authority with certificates of its own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.certificates = folder / "ca.pem"
        self.address = ""
        self.requests = 0
        self.fault: bytes | None = None
        """What it answers instead, as rubbish; empty: it closes the connection."""
        self._folder = folder
        (folder / "ts.cnf").write_text(_CONFIGURATION)
        (folder / "serial").write_text("01\n")
        ca, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
        self.certificates.write_bytes(_certificate("ca", ca, ca, is_ca=True))
        (folder / "authority.pem").write_bytes(_certificate("authority", key, ca, is_ca=False))
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        (folder / "authority.key").write_bytes(pem)

    def answer(self, query: bytes) -> bytes:
        """Return the answer of `openssl ts`."""
        (self._folder / "query").write_bytes(query)
        command = ["openssl", "ts", "-reply", "-config", "ts.cnf", "-section", "authority"]
        command += ["-queryfile", "query", "-out", "reply"]
        subprocess.run(command, cwd=self._folder, check=True, capture_output=True)
        return (self._folder / "reply").read_bytes()


def _certificate(
    name: str, key: ec.EllipticCurvePrivateKey, ca: ec.EllipticCurvePrivateKey, *, is_ca: bool
) -> bytes:
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    subject, issuer = (
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, each)]) for each in (name, "ca")
    )
    builder = x509.CertificateBuilder(issuer, subject, key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - day).not_valid_after(now + day)
    builder = builder.add_extension(x509.BasicConstraints(is_ca, None), critical=True)
    if not is_ca:
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING])
        builder = builder.add_extension(usage, critical=True)
    return builder.sign(ca, hashes.SHA256()).public_bytes(Encoding.PEM)


@contextmanager
def authority(folder: Path) -> Iterator[Authority]:
    """Run an authority on a free port of this machine."""
    made = Authority(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            made.requests += 1
            query = self.rfile.read(int(self.headers["Content-Length"]))
            if made.fault == b"":
                self.close_connection = True
                return
            reply = made.answer(query) if made.fault is None else made.fault
            self.send_response(200)
            self.send_header("Content-Type", "application/timestamp-reply")
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
