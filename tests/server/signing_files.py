"""Keys made by the openssl program, and files signed by the program's own `sign`."""
import base64
import shutil
import subprocess

import pytest
from certificates import openssl
from serving import PROGRAM


class SigningKey:
    def __init__(self, folder, name, algorithm=("ed25519",)):
        self.private, self.public = folder / f"{name}.pem", folder / f"{name}.pub"
        openssl("genpkey", "-algorithm", *algorithm, "-out", self.private)
        openssl("pkey", "-in", self.private, "-pubout", "-out", self.public)

    def sign(self, file, *flags):
        done = subprocess.run([PROGRAM, "sign", "--key", self.private, file, *flags], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return file

    def header(self, folder, data):
        """The field that goes with a body of these bytes."""
        self.sign_bytes(folder, data)
        return {"Sconce-Signature": base64.b64encode((folder / "body.safetensors.sig").read_bytes()).decode()}

    def sign_bytes(self, folder, data):
        file = folder / "body.safetensors"
        file.write_bytes(data)
        return self.sign(file)


@pytest.fixture(scope="session")
def keys(tmp_path_factory):
    if not shutil.which("openssl"):
        pytest.skip("the openssl program is not installed")
    folder = tmp_path_factory.mktemp("signing")
    return [SigningKey(folder, "first"), SigningKey(folder, "second"),
            SigningKey(folder, "third", ("EC", "-pkeyopt", "ec_paramgen_curve:P-256"))]


def verify(*arguments):
    done = subprocess.run([PROGRAM, "verify", *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr
