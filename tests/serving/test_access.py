"""Which requests are accepted: host names, origins, keys, sizes, and slow clients."""

from __future__ import annotations

import itertools
import json
import socket
from pathlib import Path

import pytest
from running import KEY, RIGGED, Running, serving

HERE = {"source": "en", "target": "de", "q": "red dog"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
HOSTS = [
    ("127.0.0.1:{port}", True), ("localhost:{port}", True), ("LOCALHOST:{port}", True), ("[::1]:{port}", True),
    ("localhost", True), ("evil.example", False), ("evil.example:{port}", False), ("127.0.0.1.evil.example", False),
    ("localhost.evil.example:{port}", False), ("user@localhost", False), ("", False), ("10.0.0.1:{port}", False),
    ("localhost:port", False), ("localhost/x", False), ("127.0.0.2:{port}", False),
]  # fmt: skip
# Headers by which a browser says where a request comes from, and whether that is this server's own page.
ORIGINS = [
    ({}, True),
    ({"Origin": "http://{host}"}, True),
    ({"Origin": "https://{host}"}, True),  # a proxy that speaks TLS is in between
    ({"Origin": "http://{host}", "Sec-Fetch-Site": "same-origin"}, True),
    ({"Sec-Fetch-Site": "none"}, True),
    ({"Origin": "null"}, False),
    ({"Origin": ""}, False),
    ({"Origin": "http://evil.example"}, False),
    ({"Origin": "http://localhost:1"}, False),
    ({"Origin": "http://{host}.evil.example"}, False),
    ({"Origin": "http://{host}@evil.example"}, False),
    ({"Origin": "file://"}, False),
    ({"Origin": "chrome-extension://abc"}, False),
    ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, False),
    ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"}, False),
    ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, False),
]
BODIES = {
    "/translate": {"q": "", "source": "en", "target": "de"},
    "/generate": {"max_tokens": 1},
    "/classify": {},
    "/fill": {},
    "/embed": {},
    "/v1/embeddings": {},
    "/transcribe": {},
    "/v1/audio/transcriptions": {},
    "/look": {},
}
METHODS = [
    ("GET", "/models"),
    ("GET", "/models/words"),
    ("HEAD", "/models"),
    ("OPTIONS", "/translate"),
    ("POST", "/translate"),
]
PROTECTED = [("POST", path) for path in BODIES if path != "/translate"]  # which finds its key in the body too


def test_no_cross_site_request_is_accepted(server: Running) -> None:
    """Tries every Host with every Origin and every method; routes that are not in METHODS take turns."""
    wrong, others = [], itertools.cycle(("POST", path) for path in BODIES if path != "/translate")
    for template, known in HOSTS:
        host = template.format(port=server.port)
        for origin, own in ORIGINS:
            headers = {"Host": host, **{name: value.format(host=host) for name, value in origin.items()}}
            for method, path in [*METHODS, next(others)]:
                answer = server.ask(method, path, BODIES[path] if method == "POST" else None, headers)
                accepted = answer.status != 403
                if accepted != (known and own) or "access-control-allow-origin" in answer.headers:
                    wrong.append((host, origin, method, path, answer.status))
    assert wrong == []


def test_a_form_on_another_site_is_refused(server: Running) -> None:
    """Browsers send these without a preflight request."""
    for kind in ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain"):
        headers = {"Content-Type": kind, "Origin": "https://evil.example"}
        assert server.ask("POST", "/translate", b"q=red&source=en&target=de", headers).status == 403


def test_a_link_on_another_site_may_lead_to_the_page(server: Running) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert server.ask("GET", "/", headers=headers).status == 200
    assert server.ask("POST", "/translate", HERE, headers).status == 403


def test_the_page_has_a_strict_policy(server: Running) -> None:
    headers = server.ask("GET", "/").headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert not any(loose in policy for loose in ("unsafe", "*", "http:", "https:", "eval"))
    for part in ("base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "connect-src 'self'"):
        assert part in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "frame-ancestors 'none'" in server.ask("GET", "/models").headers["content-security-policy"]


def test_protected_routes_need_a_key_and_keys_are_never_logged(word_model: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"# mine\n{KEY}\nanother-key-of-somebody\n")
    keys.chmod(0o600)
    with serving("--model", word_model, "--api-key-file", keys, "--host", "127.0.0.1") as running:
        for headers in ({}, {"X-API-Key": KEY[:-1]}, {"Authorization": f"Basic {KEY}"}, {"Authorization": "Bearer "}):
            for method, path in (
                ("GET", "/models"),
                ("GET", "/models/words"),
                ("GET", "/metrics"),
                ("GET", "/v1/models"),
                *PROTECTED,
            ):
                assert running.ask(method, path, headers=headers).status == 401
            assert running.ask("POST", "/translate", HERE, headers).status == 401
        for headers in (
            {"X-API-Key": KEY},
            {"Authorization": f"Bearer {KEY}"},
            {"Authorization": "bearer another-key-of-somebody"},
        ):
            assert running.ask("GET", "/models", headers=headers).status == 200
            assert running.ask("POST", "/translate", HERE, headers).json == {"translatedText": "rot Hund"}
        assert running.ask("POST", "/translate", {**HERE, "api_key": KEY}).status == 200
        for path in ("/", "/health/live", "/health/ready", "/languages", "/frontend/settings"):
            assert running.ask("GET", path).status == 200
        assert running.ask("GET", "/health/ready").json == {"status": "ready"}  # models are named to those with a key
        named = running.ask("GET", "/health/ready", headers={"X-API-Key": KEY}).json["models"]
        assert named == {word_model.name: "ready"}
        assert running.ask("GET", "/frontend/settings").json["keyRequired"] is True
        assert running.ask("GET", f"/nowhere/{KEY}?key={KEY}").status == 401
        assert running.stop() == 0
        log = "".join(running.log)
        assert "POST /translate 200" in log
        assert KEY not in log
        assert "red" not in log
        assert "Hund" not in log


@pytest.mark.parametrize(
    ("path", "most"), [("/translate", 2**18), ("/embed", 2**18), ("/classify", 10 * 2**20), ("/look", 10 * 2**20)]
)
def test_a_body_is_counted_while_it_arrives(server: Running, path: str, most: int) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as raw:
        raw.sendall(_head(server, f"Content-Length: {most + 1}", path))
        head, _, body = raw.makefile("rb").read().partition(b"\r\n\r\n")
        assert (b" 413 " in head, f"at most {most:,} bytes" in body.decode()) == (True, True)
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as raw:
        raw.sendall(_head(server, "Transfer-Encoding: chunked", path))
        answer = b""
        try:
            for _ in range(2 * most // 0x4000):
                raw.sendall(b"4000\r\n" + b"x" * 0x4000 + b"\r\n")
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has stopped listening
        try:
            answer = raw.recv(100)
        except ConnectionResetError:
            return
        assert b" 413 " in answer


def test_a_file_that_arrives_too_slowly_is_refused_and_forgotten(models: dict[str, Path]) -> None:
    named = ":".join(f"{name}={models[name]}" for name in ("words", "stripes", "tones"))
    with serving(named, "none", "", 1, 30, 0.2, script=RIGGED) as running:
        for path in ("/look", "/transcribe", "/classify"):
            with socket.create_connection(("127.0.0.1", running.port), timeout=60) as raw:
                kind = "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 9000000"
                raw.sendall(_head(running, kind, path).replace(b"Content-Type: application/json\r\n", b""))
                raw.sendall(b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nRIFF')
                head = raw.makefile("rb").read()  # until the server closes the connection
                assert (b" 408 " in head, b"did not arrive in time" in head) == (True, True), path
        assert running.ask("GET", "/health/ready").status == 200
        assert running.metric("headwise_queue_requests") == 0


def test_an_invalid_content_length_is_refused(server: Running) -> None:
    for length in (b"-1", b"99999999999999999999999", b"1e3", b"0x10"):
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as raw:
            raw.sendall(_head(server, f"Content-Length: {length.decode()}"))
            assert raw.recv(20).split()[1] in (b"400", b"413")


def test_endless_headers_are_refused(server: Running) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: ")
        try:
            for _ in range(100):
                raw.sendall(b"a" * 1000)
            assert raw.recv(20).startswith(b"HTTP/1.1 400")
        except (BrokenPipeError, ConnectionResetError):
            pass
    assert server.ask("GET", "/health/live").status == 200


def _head(server: Running, line: str, path: str = "/translate") -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost:{server.port}\r\nContent-Type: application/json\r\n{line}\r\n\r\n"
    ).encode()


def test_what_is_not_http_gets_an_error_in_json(server: Running) -> None:
    for nonsense in (b"hello\r\n\r\n", b"GET /\xff HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as raw:
            raw.sendall(nonsense)
            head, _, body = raw.makefile("rb").read().partition(b"\r\n\r\n")
            assert b" 400 " in head
            assert b"content-type: application/json" in head
            assert json.loads(body) == {"error": "this is not a valid HTTP request"}


MALFORMED = [
    b"geheim", b"--x\r\ngeheim", b"--x\r\nContent-Disposition: geheim\r\n\r\ngeheim", b"--xgeheim--",
    b"--x\r\nContent-Disposition: form-data; name=q\r\n\r\ngeheim", b"--x\r\n\xffgeheim: 1\r\n\r\n",
    b'--x\r\nContent-Disposition: form-data; name="geheim\r\n\r\ngeheim\r\n--x--',
    b"--x\r\nContent-Disposition: form-data; name=q; filename=geheim\r\n\r\ngeheim\r\n--x--\r\n",
    b"--x\r\nContent-Transfer-Encoding: geheim\r\n\r\ngeheim\r\n--x--\r\n",
]  # fmt: skip


def test_a_malformed_body_leaves_no_byte_of_it_in_the_log(word_model: Path) -> None:
    with serving("--model", word_model) as running:
        for kind in ("multipart/form-data; boundary=x", "multipart/form-data; boundary=geheim", "multipart/form-data"):
            for body in MALFORMED:
                assert running.ask("POST", "/translate", body, {"Content-Type": kind}).status == 400
        assert running.ask("POST", "/translate", b'{"geheim', {"Content-Type": "application/json"}).status == 400
        assert running.stop() == 0
        log = "".join(running.log)
    assert log.count("POST /translate 400") == 3 * len(MALFORMED) + 1
    assert "geheim" not in log
    assert not any(ord(character) > 127 for character in log)
    assert len(log.splitlines()) < 3 * len(MALFORMED) + 10, "something else has logged"
