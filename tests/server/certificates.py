"""Certificates for the tests, made by the openssl program, valid for two days."""
import shutil
import ssl
import subprocess

import pytest

EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


class Authority:
    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        self.ca = folder / f"{name}.pem"
        self.key = folder / f"{name}.key"
        openssl("req", "-x509", *EC, "-keyout", self.key, "-out", self.ca, "-subj", f"/CN={name}", "-days", "2")

    def issue(self, name, hosts="DNS:localhost,IP:127.0.0.1"):
        """Certificate and key of a server for these hosts, or of a client."""
        request, extra = self.folder / f"{name}.csr", self.folder / f"{name}.ext"
        certificate, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        extra.write_text(f"subjectAltName={hosts}\n")
        openssl("req", *EC, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
        openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self.key, "-CAcreateserial", "-days", "2",
                "-extfile", extra, "-out", certificate)
        return certificate, key

    def context(self, certificate=None):
        """A client's TLS context that trusts this authority, with or without a client certificate."""
        context = ssl.create_default_context(cafile=str(self.ca))
        if certificate:
            context.load_cert_chain(*map(str, certificate))
        return context


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    if not shutil.which("openssl"):
        pytest.skip("the openssl program is not installed")
    return Authority(tmp_path_factory.mktemp("certificates"), "authority")


@pytest.fixture(scope="session")
def stranger(authority, tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("strangers"), "stranger")
