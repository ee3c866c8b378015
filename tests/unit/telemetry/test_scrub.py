"""What is kept out of log lines."""

import pytest

from telemetry import scrub

JWT = "eyJhbGciOiJSUzI1NiIsImtpZCI6IjEyMyJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJlLXBhcnQ"
SECRETS = {
    "service account token": JWT,
    "token inside a sentence": f"server said no to {JWT}",
    "token that was cut": "eyJhbGciOiJSUzI1NiIsImtpZCI6IjEyMyJ9.eyJpc3Mi",
    "authorization header": "Authorization: Bearer abcdefgh12345",
    "basic authorization": "basic dXNlcjpwYXNzd29yZA==",
    "private key": "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIB\n-----END EC PRIVATE KEY-----",
    "private key without its end": "key is -----BEGIN PRIVATE KEY-----\nMIIEvQ",
    "cloud key id": "AKIAIOSFODNN7EXAMPLE",
    "code host token": "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "password in an address": "password=hunter22 host=db",
    "name and password before a host": "prometheusURL http://reader:hunter22@prom:9090",
    "password alone before a host": "https://:hunter22@prom",
    "token alone before a host": "https://s3cr3tvalue@prom/path",
    "json field": '{"token": "s3cr3tvalue"}',
    "base64 blob": "QWxhZGRpbjpvcGVuIHNlc2FtZQ1aB2cD3eF4gH5iJ6kL7mN8oP9qR0sT1u",
}


@pytest.mark.parametrize("value", SECRETS.values(), ids=SECRETS.keys())
def test_credentials_are_redacted(value: str) -> None:
    clean = scrub.text(value)
    assert scrub.REDACTED in clean
    for part in (
        "eyJpc3Mi",
        "MHcCAQ",
        "MIIEvQ",
        "hunter22",
        "s3cr3t",
        "AKIA",
        "16C7e4",
        "abcdefgh",
        "dXNlcj",
        "QWxh",
    ):
        assert part not in clean


HARMLESS = {
    "pod name": "web-7d4b9c6f5d-x2x9q",
    "image digest": "registry/app@sha256:" + "0123456789abcdef" * 4,
    "uid": "0b9f6a52-3f7a-4b57-9c2e-8a0d5f6d2f11",
    "node name": "ip-10-0-12-34.eu-central-1.compute.internal",
    "long lower-case name": "a-very-long-deployment-name-that-goes-on-and-on-" * 2 + "7d4b9c6f5d",
    "sentence": "the token of the ServiceAccount has expired",
}


@pytest.mark.parametrize("value", HARMLESS.values(), ids=HARMLESS.keys())
def test_ordinary_values_pass(value: str) -> None:
    assert scrub.text(value) == value


def test_long_text_is_cut_after_it_was_redacted() -> None:
    clean = scrub.text("x " * 505 + JWT)
    assert len(clean) <= scrub.MAX_CHARS
    assert "eyJ" not in clean


def test_the_end_of_a_traceback_is_kept() -> None:
    clean = scrub.tail("frame\n" * 5000 + "ValueError: the cause")
    assert clean.endswith("ValueError: the cause")
    assert len(clean) <= scrub.MAX_TRACEBACK_CHARS


@pytest.mark.parametrize(
    "value",
    [{"metadata": {}}, object(), b"bytes", [{"a": 1}], [["nested"]], {"set"}],
    ids=["mapping", "object", "bytes", "list of mappings", "nested list", "set"],
)
def test_whole_objects_are_refused(value: object) -> None:
    with pytest.raises(scrub.RefusedError):
        scrub.plain(value)


def test_errors_are_their_type_and_first_line() -> None:
    assert scrub.error(ValueError("bad\n{body: secret}")) == "ValueError: bad"
    assert scrub.error(ValueError()) == "ValueError"


def test_settings_must_be_flat() -> None:
    assert scrub.flat({"a.b": 1, "c": ["x", "y"], "token": "ok"}) == {
        "a.b": 1,
        "c": ["x", "y"],
        "token": scrub.REDACTED,
    }
    with pytest.raises(scrub.RefusedError):
        scrub.flat({"nested": {"a": 1}})
    with pytest.raises(scrub.RefusedError):
        scrub.flat("text")
