"""Credentials for stores, found as SDKs find them: each provider against a server that speaks the documented exchange, and a
store that takes what it issued and nothing else."""
import base64
import hmac
import json
import os
import subprocess
import urllib.parse

import pytest
from identity_servers import Identity, issued, part, sts
from remote_servers import KEY, SECRET, Bucket, Remote
from remote_serving import DIGITS, digest, names, pulled, refused, serving
from serving import until

PACKAGE = b"package"
ROLE = "arn:aws:iam::123456789012:role/models"
SESSION = "SESSION/TOKEN+="


@pytest.fixture()
def bucket():
    with Bucket({"/models/x.pt2": PACKAGE, "/models/y.pt2": PACKAGE}) as running:
        running.session = SESSION
        yield running


def store(bucket, **more):
    """The environment without keys."""
    return {"AWS_ENDPOINT_URL_S3": bucket.url, "AWS_REGION": bucket.region, "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", **more}


def check_pull(tmp_path, more):
    assert list(pulled(tmp_path, "s3://models/x.pt2", more=more).values()) == [digest(PACKAGE)]


def web_identity(bucket, token="the token"):
    def check(request, form):
        wanted = {"Action": "AssumeRoleWithWebIdentity", "Version": "2011-06-15", "RoleArn": ROLE, "RoleSessionName": "sconce",
                  "WebIdentityToken": token}
        return "" if form == wanted and request.command == "POST" else f"Not authorized to perform sts:{form}"
    return sts(bucket, KEY, SECRET, check)


def test_web_identity(tmp_path, bucket):
    """As EKS and others set it up for a pod."""
    (tmp_path / "token").write_text("the token\n")
    with web_identity(bucket) as service:
        more = store(bucket, AWS_ROLE_ARN=ROLE, AWS_WEB_IDENTITY_TOKEN_FILE=str(tmp_path / "token"), AWS_ENDPOINT_URL_STS=service.url)
        check_pull(tmp_path, more)
        assert len(service.requests) == 1
        (tmp_path / "token").write_text("another")
        said = refused(tmp_path, "s3://models/y.pt2", more=more)
        assert "web identity (AWS_ROLE_ARN, AWS_WEB_IDENTITY_TOKEN_FILE)" in said and "AccessDenied" in said and "trust policy" in said
        (tmp_path / "token").unlink()
        said = refused(tmp_path, "s3://models/y.pt2", more=more)
        assert "web identity" in said and f"cannot read {tmp_path}/token" in said
        assert "another" not in said
    said = refused(tmp_path, "s3://models/y.pt2", more={**more, "AWS_ROLE_ARN": ""})
    assert "AWS_ROLE_ARN is not" in said


def test_a_container_s_agent(tmp_path, bucket):
    """As ECS and EKS's pod identity set it up."""
    (tmp_path / "token").write_text("agent token\n")

    def answer(request, body):
        if request.path != "/v1/credentials" or request.headers.get("Authorization") != "agent token":
            return 401, '{"code":"InvalidToken","message":"not this one"}'
        return 200, issued(bucket, KEY, SECRET)

    with Identity(answer) as agent:
        more = store(bucket, AWS_CONTAINER_CREDENTIALS_FULL_URI=f"{agent.url}/v1/credentials",
                     AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=str(tmp_path / "token"))
        check_pull(tmp_path, more)
        assert len(agent.requests) == 1
        said = refused(tmp_path, "s3://models/y.pt2", more={**more, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": ""})
        assert "the container's agent" in said and "InvalidToken: not this one" in said


@pytest.mark.parametrize("url", ["http://example.invalid/x", "http://169.254.170.2.example.invalid/", "http://127.0.0.1.nip.invalid/",
                                 "ftp://127.0.0.1/x"])
def test_a_container_s_agent_elsewhere_is_not_asked(tmp_path, bucket, url):
    said = refused(tmp_path, "s3://models/x.pt2", more=store(bucket, AWS_CONTAINER_CREDENTIALS_FULL_URI=url))
    assert "plain http is taken of this machine" in said
    assert not bucket.seen


def metadata(bucket, role="models-role"):
    def answer(request, body):
        if (request.command, request.path) == ("PUT", "/latest/api/token"):
            return (200, "imds-token") if request.headers["x-aws-ec2-metadata-token-ttl-seconds"] == "21600" else (400, "")
        if request.headers.get("x-aws-ec2-metadata-token") != "imds-token":
            return 401, ""
        folder = "/latest/meta-data/iam/security-credentials/"
        if not role:
            return 404, ""
        return {folder: (200, role), folder + role: (200, issued(bucket, KEY, SECRET))}.get(request.path, (404, ""))
    return Identity(answer)


def test_an_instance_s_metadata(tmp_path, bucket):
    with metadata(bucket) as service:
        more = store(bucket, AWS_EC2_METADATA_DISABLED="", AWS_EC2_METADATA_SERVICE_ENDPOINT=service.url)
        check_pull(tmp_path, more)
        assert [request[0] for request in service.requests] == ["PUT", "GET", "GET"]
        asked = len(service.requests)
        said = refused(tmp_path, "s3://models/y.pt2", more={**more, "AWS_EC2_METADATA_DISABLED": "true"})
        assert len(service.requests) == asked and "no credentials were found" in said


def test_an_instance_without_a_role_asks_without_a_signature(tmp_path, bucket):
    bucket.open, bucket.session = True, None
    with metadata(bucket, role="") as service:
        check_pull(tmp_path, store(bucket, AWS_EC2_METADATA_DISABLED="", AWS_EC2_METADATA_SERVICE_ENDPOINT=service.url))
        assert "Authorization" not in bucket.seen[-1][1]


def profiles(tmp_path, config, credentials=""):
    (tmp_path / ".aws").mkdir(exist_ok=True)
    (tmp_path / ".aws/config").write_text(config)
    (tmp_path / ".aws/credentials").write_text(credentials)


def test_keys_of_the_file_of_settings(tmp_path, bucket):
    bucket.session = None
    profiles(tmp_path, f"[profile models]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n")
    check_pull(tmp_path, store(bucket, AWS_PROFILE="models"))
    said = refused(tmp_path, "s3://models/y.pt2", more=store(bucket, AWS_PROFILE="other"))
    assert "there is no profile 'other' (AWS_PROFILE)" in said and ".aws/config" in said


def test_a_program_that_prints_credentials(tmp_path, bucket):
    script = tmp_path / "issue"
    script.write_text(f"#!/bin/sh\ncat <<'END'\n{issued(bucket, KEY, SECRET, token='SessionToken')}\nEND\n")
    script.chmod(0o755)
    profiles(tmp_path, f"[default]\ncredential_process = {script} --for models\n")
    check_pull(tmp_path, store(bucket))
    script.write_text("#!/bin/sh\nexit 3\n")
    said = refused(tmp_path, "s3://models/y.pt2", more=store(bucket))
    assert "credential_process of the profile 'default'" in said and "status 3" in said
    script.write_text("#!/bin/sh\necho no json with a SECRET\n")
    said = refused(tmp_path, "s3://models/y.pt2", more=store(bucket))
    assert "no JSON" in said and "SECRET" not in said


def test_a_role_that_another_profile_takes_on(tmp_path, bucket):
    def check(request, form):
        signed = request.headers.get("Authorization", "")
        ok = form["Action"] == "AssumeRole" and form["RoleArn"] == ROLE and form["RoleSessionName"] == "me" and form["ExternalId"] == "e/1"
        return "" if ok and "Credential=BASE/" in signed and "/sts/aws4_request" in signed else "no"

    profiles(tmp_path, f"[profile models]\nrole_arn = {ROLE}\nsource_profile = base\nrole_session_name = me\nexternal_id = e/1\n",
             "[base]\naws_access_key_id = BASE\naws_secret_access_key = s\n")
    with sts(bucket, KEY, SECRET, check) as service:
        check_pull(tmp_path, store(bucket, AWS_PROFILE="models", AWS_ENDPOINT_URL_STS=service.url))
    profiles(tmp_path, f"[profile a]\nrole_arn = {ROLE}\nsource_profile = b\n[profile b]\nrole_arn = {ROLE}\nsource_profile = a\n")
    assert "name each other" in refused(tmp_path, "s3://models/y.pt2", more=store(bucket, AWS_PROFILE="a"))


def test_what_is_not_supported_is_said(tmp_path, bucket):
    profiles(tmp_path, "[profile work]\nsso_session = s\nsso_account_id = 1\n")
    said = refused(tmp_path, "s3://models/x.pt2", more=store(bucket, AWS_PROFILE="work"))
    assert "single sign-on" in said and "not supported" in said and "credential_process" in said


def test_the_order_is_that_of_the_sdks(tmp_path, bucket):
    """Keys in the environment, web identity, the profile, the container, the instance."""
    bucket.session = None
    broken = {"AWS_ROLE_ARN": ROLE, "AWS_WEB_IDENTITY_TOKEN_FILE": "/none", "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://example.invalid"}
    check_pull(tmp_path, store(bucket, **broken) | {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET})
    profiles(tmp_path, "", f"[default]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n")
    assert "web identity" in refused(tmp_path, "s3://models/y.pt2", more=store(bucket, **broken))
    del broken["AWS_ROLE_ARN"], broken["AWS_WEB_IDENTITY_TOKEN_FILE"]
    check_pull(tmp_path, store(bucket, **broken))


def test_credentials_are_fetched_again_before_they_expire_and_when_the_store_says_so(tmp_path, bucket):
    """Each fetch of the agent is another session."""
    sessions = iter(range(1, 1000))

    def answer(request, body):
        bucket.session = f"session-{next(sessions)}"
        return 200, issued(bucket, KEY, SECRET, seconds=3600)

    bucket.files = {"/models/r/a.pt2": DIGITS.read_bytes()}
    with Identity(answer) as agent:
        more = store(bucket, AWS_CONTAINER_CREDENTIALS_FULL_URI=agent.url)
        with serving(tmp_path, "s3://models/r", more=more, flags=["--watch", "50ms", "--remote-watch", "100ms"]) as server:
            asked = len(bucket.seen)
            until(lambda: len(bucket.seen) > asked + 5)
            assert len(agent.requests) == 1
            # The store ends the session.
            bucket.fault = lambda request: request.headers.get("x-amz-security-token") == "session-1" and request.reply(
                400, b"<Error><Code>ExpiredToken</Code></Error>")
            bucket.files["/models/r/b.pt2"] = DIGITS.read_bytes()
            until(lambda: names(server) == {"a": "READY", "b": "READY"})
            assert len(agent.requests) == 2
            assert server.metrics()["sconce_remote_failures_total"] == 0


# Google's storage.

@pytest.fixture(scope="module")
def rsa(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rsa")
    run = lambda *words: subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=folder)
    run("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", "key.pem")
    run("pkey", "-in", "key.pem", "-pubout", "-out", "public.pem")
    return folder


def is_signed(folder, token):
    text, _, signature = token.rpartition(".")
    (folder / "text").write_text(text)
    (folder / "signature").write_bytes(part(signature))
    return subprocess.run(["openssl", "dgst", "-sha256", "-verify", "public.pem", "-signature", "signature", "text"], cwd=folder,
                          capture_output=True).returncode == 0


class GoogleStore(Remote):
    """Takes the token alone."""

    def answer(self, request):
        if request.headers.get("Authorization") != "Bearer google-token":
            return request.reply(401, b"<Error><Code>AuthenticationRequired</Code></Error>")
        return super().answer(request)


@pytest.fixture()
def google():
    with GoogleStore({"/models/x.pt2": PACKAGE}) as running:
        yield running


def google_environment(google, **more):
    return {"GS_ENDPOINT_URL": google.url, "NO_GCE_CHECK": "true", **more}


def check_google(tmp_path, more):
    assert list(pulled(tmp_path, "gs://models/x.pt2", more=more).values()) == [digest(PACKAGE)]


def key_file(tmp_path, **content):
    path = tmp_path / "google.json"
    path.write_text(json.dumps(content))
    return str(path)


TOKEN = json.dumps({"access_token": "google-token", "expires_in": 3599, "token_type": "Bearer"})


def test_a_service_account_s_key(tmp_path, google, rsa):
    def answer(request, body):
        form = dict(urllib.parse.parse_qsl(body))
        if form["grant_type"] != "urn:ietf:params:oauth:grant-type:jwt-bearer" or not is_signed(rsa, form["assertion"]):
            return 400, '{"error": "invalid_grant", "error_description": "Invalid JWT Signature."}'
        header, claims = (json.loads(part(text)) for text in form["assertion"].split(".")[:2])
        assert header == {"alg": "RS256", "typ": "JWT", "kid": "id"}
        assert claims["iss"] == "me@project" and claims["aud"] == f"{service.url}/token" and claims["exp"] - claims["iat"] == 3600
        assert "devstorage.read_only" in claims["scope"]
        return 200, TOKEN

    with Identity(answer) as service:
        content = {"type": "service_account", "client_email": "me@project", "private_key_id": "id", "token_uri": f"{service.url}/token",
                   "private_key": (rsa / "key.pem").read_text()}
        more = google_environment(google, GOOGLE_APPLICATION_CREDENTIALS=key_file(tmp_path, **content))
        check_google(tmp_path, more)
        assert len(service.requests) == 1
        service.answer = lambda request, body: (400, '{"error": "invalid_grant", "error_description": "Account deleted"}')
        said = refused(tmp_path, "gs://models/y.pt2", more=more)
        assert "GOOGLE_APPLICATION_CREDENTIALS" in said and "invalid_grant: Account deleted" in said
        key_file(tmp_path, **{**content, "private_key": "no key"})
        assert "no RSA key" in refused(tmp_path, "gs://models/y.pt2", more=more)


def test_a_user_of_gcloud(tmp_path, google):
    def answer(request, body):
        wanted = {"grant_type": "refresh_token", "client_id": "c", "client_secret": "s", "refresh_token": "r"}
        return (200, TOKEN) if dict(urllib.parse.parse_qsl(body)) == wanted else (400, "{}")

    with Identity(answer) as service:
        folder = tmp_path / ".config/gcloud"
        folder.mkdir(parents=True)
        path = key_file(tmp_path, type="authorized_user", client_id="c", client_secret="s", refresh_token="r", token_uri=service.url)
        os.rename(path, folder / "application_default_credentials.json")
        check_google(tmp_path, google_environment(google))


@pytest.mark.parametrize("impersonates", [False, True])
def test_workload_identity_federation(tmp_path, google, impersonates):
    (tmp_path / "token.json").write_text('{"id_token": "subject"}')

    def answer(request, body):
        if request.path == "/impersonate":
            assert request.headers["Authorization"] == "Bearer federated" and json.loads(body)["scope"]
            return 200, json.dumps({"accessToken": "google-token", "expireTime": "2099-01-01T00:00:00Z"})
        form = dict(urllib.parse.parse_qsl(body))
        assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:token-exchange" and form["audience"] == "//iam/pool"
        assert form["subject_token"] == "subject" and form["subject_token_type"] == "urn:ietf:params:oauth:token-type:jwt"
        return 200, TOKEN.replace("google-token", "federated" if impersonates else "google-token")

    with Identity(answer) as service:
        content = {"type": "external_account", "audience": "//iam/pool", "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
                   "token_url": service.url, "credential_source": {"file": str(tmp_path / "token.json"), "format": {
                       "type": "json", "subject_token_field_name": "id_token"}}}
        if impersonates:
            content["service_account_impersonation_url"] = f"{service.url}/impersonate"
        check_google(tmp_path, google_environment(google, GOOGLE_APPLICATION_CREDENTIALS=key_file(tmp_path, **content)))


def test_google_s_metadata_server(tmp_path, google):
    def answer(request, body):
        if request.headers.get("Metadata-Flavor") != "Google":
            return 403, ""
        path = "/computeMetadata/v1/instance/service-accounts/default/token"
        return (200, TOKEN) if request.path == path else (404, "")

    with Identity(answer) as service:
        more = google_environment(google, GCE_METADATA_HOST=f"127.0.0.1:{service.port}", NO_GCE_CHECK="")
        check_google(tmp_path, more)
        # A token that the store takes no more is fetched again, once.
        google.files["/models/y.pt2"] = PACKAGE
        google.fault = lambda request: request.reply(401, b"")
        assert "Google's metadata server" in refused(tmp_path, "gs://models/y.pt2", more=more)


def test_a_file_of_google_that_is_not_supported_is_said(tmp_path, google):
    path = key_file(tmp_path, type="gdch_service_account")
    said = refused(tmp_path, "gs://models/x.pt2", more=google_environment(google, GOOGLE_APPLICATION_CREDENTIALS=path))
    assert "'gdch_service_account' is not supported" in said and path in said
    path = key_file(tmp_path, type="external_account", credential_source={"environment_id": "aws1"})
    said = refused(tmp_path, "gs://models/x.pt2", more=google_environment(google, GOOGLE_APPLICATION_CREDENTIALS=path))
    assert "neither a file nor a url" in said
    assert not google.seen


# Azure Blob Storage.

ACCOUNT, ACCOUNT_KEY = "acct", base64.b64encode(b"the account's key").decode()


class Container(Remote):
    """Blob storage of one account, path style; files are /CONTAINER/PATH. takes: what it takes, "key", "sas" or a token."""

    page = 2

    def __init__(self, files, takes):
        super().__init__(files)
        self.takes = takes

    def environment(self, **more):
        return {"AZURE_STORAGE_SERVICE_ENDPOINT": f"{self.url}/{ACCOUNT}", **more}

    def is_signed(self, request, query):
        """By the rules of Microsoft's documentation of Shared Key."""
        fields = {name.lower(): value for name, value in request.headers.items()}
        names = ["content-encoding", "content-language", "content-length", "content-md5", "content-type", "date", "if-modified-since",
                 "if-match", "if-none-match", "if-unmodified-since", "range"]
        text = "\n".join([request.command, *(fields.get(name, "") for name in names),
                          *(f"{name}:{fields[name]}" for name in sorted(fields) if name.startswith("x-ms-")),
                          f"/{ACCOUNT}{request.path.partition('?')[0]}",
                          *(f"{name}:{values[0]}" for name, values in sorted(query.items()))])
        wanted = base64.b64encode(hmac.digest(base64.b64decode(ACCOUNT_KEY), text.encode(), "sha256")).decode()
        return fields.get("authorization") == f"SharedKey {ACCOUNT}:{wanted}"

    def answer(self, request):
        path, _, query = request.path.partition("?")
        query = urllib.parse.parse_qs(query, keep_blank_values=True)
        if self.takes == "key":
            taken = self.is_signed(request, query)
        elif self.takes == "sas":
            taken = query.pop("sig", None) == ["a+b"] and query.pop("sv", None) == ["1"]
        else:
            taken = request.headers.get("Authorization") == f"Bearer {self.takes}"
        if not taken or request.headers.get("x-ms-version", "") < "2019-02-02":
            return request.reply(403, b"<Error><Code>AuthenticationFailed</Code><Message>no</Message></Error>",
                                 {"x-ms-error-code": "AuthenticationFailed"})
        path = urllib.parse.unquote(path).removeprefix(f"/{ACCOUNT}")
        if query.get("comp") != ["list"]:
            return self.send_file(request, path) if path in self.files else request.reply(
                404, b"", {"x-ms-error-code": "BlobNotFound"})
        begin = path + "/" + query["prefix"][0]
        names = sorted(name.removeprefix(path + "/") for name in self.files if name.startswith(begin))
        first = int(query.get("marker", ["0"])[0])
        blobs = "".join(f"<Blob><Name>{name}</Name><Properties><Etag>{self.etag(path + '/' + name).strip(chr(34))}</Etag><Content-Length>"
                        f"{len(self.files[path + '/' + name])}</Content-Length></Properties></Blob>"
                        for name in names[first:first + self.page])
        more = str(first + self.page) if first + self.page < len(names) else ""
        return request.reply(200, f"<?xml version='1.0'?><EnumerationResults><Blobs>{blobs}</Blobs><NextMarker>{more}</NextMarker>"
                                  "</EnumerationResults>".encode())


BLOBS = {"/models/r/a b.pt2": PACKAGE, "/models/r/m/1/model.pt2": PACKAGE * 2_000_000, "/models/r/m/config.pbtxt": b"c"}


def check_azure(tmp_path, store, more):
    found = pulled(tmp_path, "az://acct/models/r", "--to", tmp_path / "to", more=more)
    assert sorted(found.values()) == sorted(map(digest, BLOBS.values()))


def test_an_account_s_key(tmp_path):
    with Container(BLOBS, "key") as store:
        keys = {"AZURE_STORAGE_ACCOUNT": ACCOUNT, "AZURE_STORAGE_KEY": ACCOUNT_KEY}
        check_azure(tmp_path, store, store.environment(**keys))
        said = refused(tmp_path, "az://acct/models/none.pt2", more=store.environment(**keys))
        assert "BlobNotFound" in said and "az://acct/models/none.pt2" in said
        keys["AZURE_STORAGE_KEY"] = base64.b64encode(b"another").decode()
        said = refused(tmp_path, "az://acct/models/y.pt2", more=store.environment(**keys))
        assert "AuthenticationFailed" in said and "the key of the storage account acct" in said
        text = f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={ACCOUNT_KEY};BlobEndpoint={store.url}/{ACCOUNT};"
        store.files["/models/z.pt2"] = PACKAGE
        assert len(pulled(tmp_path, "az://acct/models/z.pt2", more={"AZURE_STORAGE_CONNECTION_STRING": text})) == 1


def test_a_shared_access_signature(tmp_path):
    with Container(BLOBS, "sas") as store:
        check_azure(tmp_path, store, store.environment(AZURE_STORAGE_SAS_TOKEN="?sv=1&sig=a%2Bb"))
        said = refused(tmp_path, "az://acct/models/y.pt2", more=store.environment(AZURE_STORAGE_SAS_TOKEN="sv=1&sig=secret"))
        assert "a shared access signature" in said and "secret" not in said


def test_workload_identity_of_azure(tmp_path):
    (tmp_path / "token").write_text("federated\n")

    def answer(request, body):
        form = dict(urllib.parse.parse_qsl(body))
        assert request.path == "/tenant/oauth2/v2.0/token" and form["scope"] == "https://storage.azure.com/.default"
        if form.get("client_assertion") != "federated" or form["client_id"] != "client":
            return 401, '{"error": "invalid_client", "error_description": "AADSTS700016"}'
        return 200, '{"access_token": "azure-token", "expires_in": 3599}'

    with Identity(answer) as service, Container(BLOBS, "azure-token") as store:
        more = store.environment(AZURE_CLIENT_ID="client", AZURE_TENANT_ID="tenant", AZURE_AUTHORITY_HOST=service.url,
                                 AZURE_FEDERATED_TOKEN_FILE=str(tmp_path / "token"))
        check_azure(tmp_path, store, more)
        assert len(service.requests) == 1
        said = refused(tmp_path, "az://acct/models/y.pt2", more={**more, "AZURE_CLIENT_ID": "other"})
        assert "workload identity" in said and "invalid_client: AADSTS700016" in said


@pytest.mark.parametrize("app_service", [True, False])
def test_managed_identity(tmp_path, app_service):
    def answer(request, body):
        path, _, query = request.path.partition("?")
        query = dict(urllib.parse.parse_qsl(query))
        if app_service:
            ok = path == "/msi" and request.headers.get("X-IDENTITY-HEADER") == "h" and query["api-version"] == "2019-08-01"
        else:
            ok = path == "/metadata/identity/oauth2/token" and request.headers.get("Metadata") == "true"
        ok = ok and query["resource"] == "https://storage.azure.com/" and query["client_id"] == "me"
        return (200, '{"access_token": "azure-token", "expires_in": "3599"}') if ok else (400, '{"error": "invalid_request"}')

    with Identity(answer) as service, Container(BLOBS, "azure-token") as store:
        where = {"IDENTITY_ENDPOINT": f"{service.url}/msi", "IDENTITY_HEADER": "h"} if app_service else {
            "AZURE_POD_IDENTITY_AUTHORITY_HOST": service.url}
        check_azure(tmp_path, store, store.environment(AZURE_CLIENT_ID="me", **where))
        said = refused(tmp_path, "az://acct/models/y.pt2", more=store.environment(AZURE_CLIENT_ID="other", **where))
        assert "the managed identity" in said and "invalid_request" in said
