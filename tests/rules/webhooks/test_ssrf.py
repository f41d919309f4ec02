"""Which URLs a receiver may have: checked when it is registered, and again before each delivery."""

import pytest

from library_site.outbound.addresses import ForbiddenAddress
from webhooks.ssrf import NOT_PUBLIC_MESSAGE, validate_url

VALID_URLS = [
    "https://example.com?a=b",
    "https://hooks.example.com:8443/library?key=a@b&c=%23;'()*!$,~[]",
    "https://xn--bcher-kva.example/",
    "https://1.example.co1/",
    "https://notlocal.example.com/",
    "https://8.8.8.8:65535/",
    "https://[2606:4700:4700::1111]/",
    f"https://example.com/{'a' * 1980}",
    f"https://{'a' * 63}.example/",
]
# Refused with and without private addresses.
INVALID_URLS = [
    "", "//example.com/", "https:example.com", "HTTPS://example.com/", "ftp://example.com/", "javascript:alert(1)",
    "https://", "https://user:password@example.com/", "https://@example.com/", "https://example.com\\@evil.example/",
    "https://example.com/#", "https://Example.com/", "https://exämple.com/", "https://127。0。0。1/",
    "https://example.com/ü", "https://example_1.com/", "https://example.com./", "https://example..com/",
    "https://-example.com/", "https://example-.com/", f"https://{'a' * 64}.example/", f"https://{'a.' * 126}example/",
    "https://example.com:/", "https://example.com:0/", "https://example.com:0443/", "https://example.com:65536/",
    "https://example.com:٤٤٣/", " https://example.com/", "https://example.com/\n", "https://example.com/a b",
    "https://example.com/\r\nHost: evil.example", "https://example.com/\x7f", f"https://example.com/{'a' * 1981}",
    "https://2130706433/", "https://0x7f000001/", "https://0x7f.1/", "https://0177.0.0.1/", "https://127.1/",
    "https://8.8.8.8.8/", "https://256.256.256.256/", "https://example.1/", "https://example.0x/", "https://[::1/",
    "https://[:]/", "https://[127.0.0.1]/", "https://[v1.x]/", "https://[fe80::1%25eth0]/", "https://::1/",
]  # fmt: skip
PRIVATE_URLS = [
    "https://localhost/",
    "https://a.localhost/",
    "https://intranet/",
    "https://printer.local/",
    "https://metadata.google.internal/",
    "https://router.home.arpa/",
    "https://home.arpa/",
    # Which addresses are private is tested in tests/rules/library_site/outbound.
    "https://10.0.0.1/",
    "https://[fd00:ec2::254]/",
    "https://[::ffff:8.8.8.8]/",
]


@pytest.mark.parametrize("allow_private", [False, True])
def test_a_valid_url_is_allowed_and_an_invalid_one_refused_with_the_rule(allow_private: bool) -> None:
    for url in VALID_URLS:
        validate_url(url, allow_private)
    for url in INVALID_URLS:
        with pytest.raises(ForbiddenAddress, match="A receiver's URL has https"):
            validate_url(url, allow_private)


def test_private_and_plain_urls_are_refused_unless_they_are_allowed() -> None:
    for url in (*PRIVATE_URLS, "http://example.com/", "http://8.8.8.8/", "http://localhost:8000/hook"):
        validate_url(url, allow_private=True)
        with pytest.raises(ForbiddenAddress) as error:
            validate_url(url, allow_private=False)
        assert str(error.value) == NOT_PUBLIC_MESSAGE
