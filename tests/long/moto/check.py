"""check.py SCONCE: see run.sh."""
import hashlib
import os
import pathlib
import sys
import tempfile
import traceback

import boto3
from moto.server import ThreadedMotoServer

ROOT = pathlib.Path(__file__).resolve().parents[3]
os.environ["SCONCE_PROGRAM"] = str(pathlib.Path(sys.argv[1]).resolve())
sys.path.insert(0, str(ROOT / "tests/server"))
from serving import PROGRAM, Server, until  # noqa: E402
import subprocess  # noqa: E402

DIGITS = (ROOT / "examples/digits/digits.pt2").read_bytes()
BIG = os.urandom(1 << 20) * 40
WATCH = ["--watch", "50ms", "--remote-watch", "200ms"]


def pull(folder, *arguments):
    return subprocess.run([PROGRAM, "pull", "--cache", folder / "cache", *map(str, arguments)], check=True,
                          capture_output=True, text=True).stdout


def check_large_file(storage, folder):
    storage.put_object(Bucket="models", Key="deep/er/x +y.pt2", Body=BIG)
    assert pull(folder, "s3://models/deep/er/x +y.pt2").startswith(hashlib.sha256(BIG).hexdigest())


def check_large_file_in_parts(storage, folder):
    """Its ETag is no digest of the file."""
    upload = storage.create_multipart_upload(Bucket="models", Key="parts.pt2")["UploadId"]
    parts = [{"PartNumber": i + 1, "ETag": storage.upload_part(Bucket="models", Key="parts.pt2", PartNumber=i + 1, UploadId=upload,
                                                               Body=BIG[i * 10 << 20:(i + 1) * 10 << 20])["ETag"]} for i in range(4)]
    storage.complete_multipart_upload(Bucket="models", Key="parts.pt2", UploadId=upload, MultipartUpload={"Parts": parts})
    assert pull(folder, "s3://models/parts.pt2").startswith(hashlib.sha256(BIG).hexdigest())


def check_many_pages(storage, folder):
    for i in range(1100):
        storage.put_object(Bucket="many", Key=f"all/{i}.pt2", Body=str(i).encode())
    assert len(pull(folder, "s3://many/all", "--to", folder / "to").splitlines()) == 1100


def check_missing_file(storage, folder):
    done = subprocess.run([PROGRAM, "pull", "--cache", folder / "cache", "s3://models/none.pt2"], capture_output=True, text=True)
    assert done.returncode == 2 and "there is no s3://models/none.pt2" in done.stderr, done.stderr


def check_repository(storage, folder):
    storage.put_object(Bucket="models", Key="served/m/1/model.pt2", Body=DIGITS)
    storage.put_object(Bucket="models", Key="served/m/config.pbtxt", Body=b'backend: "pytorch"\n')
    with Server("s3://models/served", flags=["--remote-cache", str(folder / "cache"), *WATCH]) as server:
        assert server.index()["m"][0] == "READY"
        storage.put_object(Bucket="models", Key="served/n.pt2", Body=DIGITS)
        until(lambda: server.index().get("n", ("",))[0] == "READY")
        storage.delete_object(Bucket="models", Key="served/n.pt2")
        until(lambda: "n" not in server.index())


def check_web_identity(storage, folder):
    """Moto's STS takes every token."""
    storage.put_object(Bucket="models", Key="identity.pt2", Body=b"package")
    (folder / "token").write_text("token")
    environment = {**os.environ, "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "HOME": str(folder),
                   "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/models", "AWS_WEB_IDENTITY_TOKEN_FILE": str(folder / "token")}
    done = subprocess.run([PROGRAM, "pull", "--cache", folder / "cache", "s3://models/identity.pt2"], capture_output=True, text=True,
                          env=environment)
    assert done.returncode == 0, done.stderr


def check_bucket_that_is_not_there(storage, folder):
    done = subprocess.run([PROGRAM, "pull", "--cache", folder / "cache", "s3://nothing/x.pt2"], capture_output=True, text=True)
    assert done.returncode == 2 and "NoSuchBucket" in done.stderr, done.stderr


def main():
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    os.environ.update(AWS_ENDPOINT_URL=f"http://{host}:{port}", AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="secret",
                      AWS_REGION="us-east-1", AWS_DEFAULT_REGION="us-east-1")
    storage = boto3.client("s3")
    for bucket in ("models", "many"):
        storage.create_bucket(Bucket=bucket)
    passed = failed = 0
    for name, check in list(globals().items()):
        if not name.startswith("check_"):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(storage, pathlib.Path(folder))
                passed += 1
            except Exception:
                failed += 1
                print(f"{name}:", traceback.format_exc(), flush=True)
    server.stop()
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
