from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fixtures_published import publish_gpt2
from hub_server import COMMIT, Hub, running

from headwise.bundle.directory import open_bundle
from headwise.errors import HeadwiseError, ModelError, UsageError, WorkFailed
from headwise.interop.hub import fetch, is_hub_name
from headwise.workflows.import_model import import_model

NAME = "somebody/small-gpt2"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A model with files that must not be fetched, on a server of our own; nothing is kept outside of the test."""
    from huggingface_hub import constants, file_download

    publish_gpt2(tmp_path / "published")
    (tmp_path / "published" / "README.md").write_text("---\nlicense: mit\n---\n")
    for name in ("pytorch_model.bin", "modeling.py", "flax_model.msgpack"):
        (tmp_path / "published" / name).write_bytes(b"not wanted")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(file_download.time, "sleep", lambda seconds: None)
    with running(tmp_path / "published", NAME) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.address)
        yield server


def test_a_model_is_imported_by_its_name_and_its_commit_is_in_the_card(hub: Hub, tmp_path: Path) -> None:
    made = import_model(NAME, tmp_path / "ours")
    origin = open_bundle(made.path).card["origin"]
    assert (origin["source"], origin["revision"], origin["licence"]) == (NAME, COMMIT, "mit")
    assert {"model.safetensors", "config.json", "tokenizer.json", "README.md"} <= set(hub.fetched)
    assert all(name.endswith((".safetensors", ".json", ".md")) for name in hub.fetched)
    import_model(tmp_path / "published", tmp_path / "other")
    for name in ("model.safetensors", "tokenizer.json"):
        assert (tmp_path / "ours" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()
    fetched = len(hub.fetched)
    import_model(NAME, tmp_path / "again", revision=COMMIT)
    assert len(hub.fetched) == fetched, "what is there is not fetched again"


def test_a_download_that_breaks_off_goes_on(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 4096)  # a part that is smaller than this is fetched again
    hub.breaks["model.safetensors"] = 2
    fetched = fetch(NAME)
    size = (tmp_path / "published" / "model.safetensors").stat().st_size
    first, second, third = hub.starts["model.safetensors"]
    assert 0 == first < second < third < size, "what has come is not fetched again"
    found = (fetched.folder / "model.safetensors").read_bytes()
    assert found == (tmp_path / "published" / "model.safetensors").read_bytes()


def test_a_download_that_never_ends_is_one_line_and_leaves_nothing(hub: Hub, tmp_path: Path) -> None:
    hub.breaks["model.safetensors"] = 10**6
    with pytest.raises(WorkFailed, match=f"could not fetch {NAME} from the Hub .*try again") as caught:
        import_model(NAME, tmp_path / "ours")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "ours").exists()
    hub.breaks.clear()
    import_model(NAME, tmp_path / "ours")  # and later it goes on
    assert open_bundle(tmp_path / "ours").family == "lm"


def test_a_server_that_cannot_be_reached_is_one_line(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(WorkFailed, match="check the connection") as caught:
        import_model(NAME, tmp_path / "ours")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "ours").exists()


def test_unknown_names_and_revisions_are_named(hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="somebody/else is not a folder here, and the Hub has no model of that name"):
        import_model("somebody/else", tmp_path / "ours")
    with pytest.raises(ModelError, match="has no revision 'v9' on the Hub"):
        import_model(NAME, tmp_path / "ours", revision="v9")
    with pytest.raises(UsageError, match="--revision is for models of the Hub"):
        import_model(tmp_path / "published", tmp_path / "ours", revision="v9")


def test_a_model_with_pickles_only_is_refused_before_anything_is_fetched(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "published" / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"but pytorch_model\.bin, a pickle, which can run code, so it is not fetched"):
        import_model(NAME, tmp_path / "ours")
    assert hub.fetched == []


def test_without_the_library_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(UsageError, match=r"pip install 'headwise\[hub\]'"):
        import_model("gpt2", tmp_path / "ours")


def test_names_of_the_hub_are_told_from_paths(tmp_path: Path) -> None:
    for name in ("gpt2", "Helsinki-NLP/opus-mt-en-de", "a/b.c_d"):
        assert is_hub_name(name)
    for name in ("./gpt2", "/a/b", "a/b/c", "../b", "", "a b", "a/../b", "~/model", "a/"):
        assert not is_hub_name(name)
    with pytest.raises(HeadwiseError, match="is not there; give a directory"):
        import_model(tmp_path / "nowhere", tmp_path / "ours")
