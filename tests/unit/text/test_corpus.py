from __future__ import annotations

import gzip
import io
import json
import lzma
import random
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.errors import DataError, UsageError
from headwise.text import compression, lines
from headwise.text.corpus import (
    Line,
    Pair,
    expand_paths,
    fingerprint,
    read_line_batches,
    read_lines,
    read_pair_batches,
    read_pairs,
)

PACKERS = {"plain": bytes, "gzip": gzip.compress, "xz": lzma.compress, "zstd": zstandard.compress}


def write(path: Path, data: bytes | str) -> str:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return str(path)


def texts(file: str) -> list[str]:
    return [line.text for line in read_lines([file])]


def error_of(reader: object) -> str:
    with pytest.raises(DataError) as caught:
        list(reader)
    message = str(caught.value)
    assert "\n" not in message
    return message


# What a line is


@pytest.mark.parametrize("packing", PACKERS)
def test_compression_is_recognised_by_content_not_by_name(tmp_path: Path, packing: str) -> None:
    file = write(tmp_path / "corpus.txt", PACKERS[packing](b"eins\nzwei\n"))
    assert list(read_lines([file])) == [Line("eins", file, 1), Line("zwei", file, 2)]


def test_plain_text_named_gz_is_read_as_plain_text(tmp_path: Path) -> None:
    assert texts(write(tmp_path / "corpus.gz", "one\ntwo\n")) == ["one", "two"]


@pytest.mark.parametrize("packing", ["gzip", "xz", "zstd"])
def test_several_packed_parts_in_one_file_are_read_as_one_text(tmp_path: Path, packing: str) -> None:
    pack = PACKERS[packing]
    assert texts(write(tmp_path / "corpus", pack(b"one\ntw") + pack(b"o\nthree\n"))) == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\ntwo", ["one", "two"]),
        (b"one\n\n", ["one", ""]),
        (b"\n", [""]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b"one\r\ntwo\r", ["one", "two"]),
        (b"a lone\rCR\n", ["a lone\rCR"]),
        (b"\xef\xbb\xbfone\n\xef\xbb\xbftwo\n", ["one", "\ufefftwo"]),
        (b"a\x00b\n", ["a\x00b"]),
        ("a\u2028b\u0085c\u000bd\u000ce\x1cf\n".encode(), ["a\u2028b\u0085c\u000bd\u000ce\x1cf"]),
        (b"(", ["("]),
    ],
)
def test_only_line_feeds_end_lines_and_nothing_else_is_lost(tmp_path: Path, data: bytes, expected: list[str]) -> None:
    assert texts(write(tmp_path / "corpus.txt", data)) == expected


line_texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=30).filter(
    lambda text: not text.endswith("\r") and not text.startswith("\ufeff")
)


@settings(max_examples=200, deadline=None)
@given(
    corpus=st.lists(line_texts, min_size=1),
    packing=st.sampled_from(sorted(PACKERS)),
    ending=st.sampled_from(["\n", "\r\n"]),
)
def test_reading_gives_back_every_line_exactly(
    tmp_path_factory: pytest.TempPathFactory, corpus: list[str], packing: str, ending: str
) -> None:
    # A first line of NULs and letters in turn is what UTF-16 looks like: keep the guess out of this test.
    data = ("beginning" + ending + "".join(line + ending for line in corpus)).encode()
    file = write(tmp_path_factory.mktemp("lossless") / "corpus", PACKERS[packing](data))
    assert texts(file) == ["beginning", *corpus]


def test_lines_and_numbers_do_not_depend_on_where_blocks_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = "zwölf 漢字\r\nkurz\n\n🙂🙂🙂 ende".encode()
    expected = ["zwölf 漢字", "kurz", "", "🙂🙂🙂 ende"]
    for size in range(1, len(data) + 1):
        monkeypatch.setattr(compression, "BLOCK_BYTES", size)
        for packing in ("plain", "gzip", "xz"):
            file = write(tmp_path / "corpus", PACKERS[packing](data))
            batches = list(read_line_batches([file]))
            assert [text for batch in batches for text in batch.texts] == expected
            assert [batch.first + i for batch in batches for i in range(len(batch.texts))] == [1, 2, 3, 4]


# Unreadable files


def test_invalid_utf8_names_the_line_and_the_byte(tmp_path: Path) -> None:
    file = write(tmp_path / "corpus.txt", b"gut\n" * 70_000 + b"caf\xe9 au lait\n" + b"gut\n" * 100)
    message = error_of(read_lines([file]))
    assert message.startswith(f"{file}:70001: not UTF-8 (byte 0xe9 at byte 4")
    assert "iconv" in message


def test_encoded_surrogates_are_not_utf8(tmp_path: Path) -> None:
    assert ":1: not UTF-8" in error_of(read_lines([write(tmp_path / "corpus.txt", b"\xed\xa0\x80\n")]))


@pytest.mark.parametrize(
    ("encoding", "named"),
    [("utf-16", "UTF-16"), ("utf-16-le", "UTF-16LE"), ("utf-16-be", "UTF-16BE"), ("utf-32", "UTF-32")],
)
def test_utf16_is_recognised_with_its_remedy(tmp_path: Path, encoding: str, named: str) -> None:
    file = write(tmp_path / "corpus.txt", "A small file\nfrom another system\n".encode(encoding))
    message = error_of(read_lines([file]))
    assert message.startswith(f"{file}: is {named}, not UTF-8")
    assert f"iconv -f {named} -t UTF-8" in message


def test_a_few_nul_characters_are_not_taken_for_utf16(tmp_path: Path) -> None:
    assert texts(write(tmp_path / "corpus.txt", b"\x00\x00 padded\x00\n")) == ["\x00\x00 padded\x00"]


@pytest.mark.parametrize("packing", PACKERS)
@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused(tmp_path: Path, packing: str, content: bytes) -> None:
    file = write(tmp_path / "corpus.txt", PACKERS[packing](content))
    assert error_of(read_lines([file])).startswith(f"{file}: the file is empty")


def test_a_directory_and_a_missing_file_are_refused_by_name(tmp_path: Path) -> None:
    for read in (read_lines, expand_paths, fingerprint):
        assert error_of(_run(read, str(tmp_path))).startswith(f"{tmp_path}: is a directory")
        missing = str(tmp_path / "missing.txt")
        assert error_of(_run(read, missing)).startswith(f"{missing}: there is no such file")


def _run(read: object, path: str) -> object:
    yield from read([path])


@pytest.mark.parametrize("packing", ["gzip", "xz", "zstd"])
def test_a_packed_file_cut_anywhere_is_never_taken_for_whole(tmp_path: Path, packing: str) -> None:
    drawn = random.Random(4)
    content = "".join(f"line {number} {drawn.random()}\n" for number in range(1, 401)).encode()
    packed = PACKERS[packing](content)
    suffix = compression.SUFFIX[packing]
    cuts = {*range(1, 20), *(len(packed) - back for back in range(1, 20)), *drawn.sample(range(20, len(packed)), 60)}
    for cut in sorted(cuts):
        file = write(tmp_path / f"corpus{suffix}", packed[:cut])
        with pytest.raises(DataError, match=f"the {packing} data ends early") as caught:
            list(read_lines([file]))
        assert caught.value.file == file
        whole: list[str] = []
        for batch in read_line_batches([file], on_bad=lambda kind, error: None):
            whole += batch.texts
        assert whole == content.decode().split("\n")[: len(whole)]
        assert caught.value.line == len(whole) + 1


@pytest.mark.parametrize("packing", ["gzip", "xz", "zstd"])
def test_damage_inside_a_packed_file_is_named(tmp_path: Path, packing: str) -> None:
    packed = bytearray(PACKERS[packing](bytes(random.Random(1).choices(b"abcdefgh \n", k=20_000))))
    packed[len(packed) // 2] ^= 0xFF
    packed[-6] ^= 0xFF
    write(tmp_path / "corpus", bytes(packed))
    message = error_of(read_lines([tmp_path / "corpus"]))
    # zstd has no checksum unless asked for: damage can then show as broken text instead.
    assert "damaged" in message or "ends early" in message or "not UTF-8" in message


def test_a_line_of_100_megabytes_is_refused_before_memory_is_taken(tmp_path: Path) -> None:
    plain, packed = tmp_path / "long.txt", tmp_path / "long.gz"
    with open(plain, "wb") as stream, gzip.open(packed, "wb", compresslevel=1) as zipped:
        for out in (stream, zipped):
            out.write(b"short\n")
            for _ in range(100):
                out.write(b"x" * 1_000_000)
            out.write(b"\nafter\n")
    script = (
        "import resource, sys\n"
        "from headwise.errors import DataError\n"
        "from headwise.text.corpus import read_line_batches\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "for file in sys.argv[1:]:\n"
        "    try:\n"
        "        list(read_line_batches([file]))\n"
        "    except DataError as error:\n"
        "        print(error)\n"
        "    seen = []\n"
        "    kept = [t for b in read_line_batches([file], on_bad=lambda k, e: seen.append(k)) for t in b.texts]\n"
        "    print(len(kept), len(kept[1]), kept[2], seen)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    command = [sys.executable, "-c", script, str(plain), str(packed)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    refused, repaired, refused_packed, repaired_packed, grown = result.stdout.splitlines()
    assert refused.startswith(f"{plain}:2: the line is longer than 10,000,000 bytes")
    assert refused_packed.startswith(f"{packed}:2: the line is longer than 10,000,000 bytes")
    assert repaired == repaired_packed == "3 1000 after ['long-line']"
    assert int(grown) < 50_000  # KB; the line alone has 100,000


def test_the_longest_line_allowed_is_read_and_one_byte_more_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 100)
    monkeypatch.setattr(compression, "BLOCK_BYTES", 64)
    for before in range(60):
        start = "s" * before + "\n"
        assert len(texts(write(tmp_path / "fits", start + "x" * 100 + "\nend\n"))) == 3
        assert ":2: the line is longer" in error_of(
            read_lines([write(tmp_path / "long", start + "x" * 101 + "\nend\n")])
        )


# Pairs


def test_pairs_carry_both_texts_and_their_place(tmp_path: Path) -> None:
    source, target = write(tmp_path / "a.en", "one\ntwo\n"), write(tmp_path / "a.de", "eins\nzwei\n")
    assert list(read_pairs([source], [target])) == [Pair("one", "eins", source, 1), Pair("two", "zwei", source, 2)]


def test_pairs_stay_aligned_over_many_blocks_of_different_line_lengths(tmp_path: Path) -> None:
    source = write(tmp_path / "a", "".join(f"{n}\n" for n in range(300_000)))
    target = write(tmp_path / "b", "".join(f"{n} {'x' * (n % 50)}\n" for n in range(300_000)))
    number = 0
    for batch in read_pair_batches([source], [target]):
        assert batch.first == number + 1
        for left, right in zip(batch.sources, batch.targets, strict=True):
            assert left == str(number) == right.split(" ")[0]
            number += 1
    assert number == 300_000


@pytest.mark.parametrize(("left", "right"), [(5, 4), (4, 5), (200_000, 1), (1, 200_000), (3, 2)])
def test_files_of_different_length_are_refused_with_both_counts(tmp_path: Path, left: int, right: int) -> None:
    source, target = write(tmp_path / "a.en", "word\n" * left), write(tmp_path / "a.de", "wort\n" * right)
    message = error_of(read_pairs([source], [target]))
    assert message.startswith(f"{source}: {left:,} lines, but {target} has {right:,}: line {min(left, right) + 1} ")


def test_several_files_pair_up_in_order_and_each_pair_must_align(tmp_path: Path) -> None:
    names = [
        write(tmp_path / name, text)
        for name, text in {"1.en": "a\n", "2.en": "b\n", "1.de": "A\n", "2.de": "B\n"}.items()
    ]
    pairs = list(read_pairs(names[:2], names[2:]))
    assert [(pair.source, pair.target, pair.file, pair.line) for pair in pairs] == [
        ("a", "A", names[0], 1),
        ("b", "B", names[1], 1),
    ]
    assert "2 source and 1 target files" in error_of(read_pairs(names[:2], names[2:3]))


def test_the_missing_target_side_is_named(tmp_path: Path) -> None:
    assert "the target side is missing" in error_of(read_pairs([write(tmp_path / "a.en", "one\n")]))


def test_tsv_columns_are_chosen_by_number(tmp_path: Path) -> None:
    file = write(tmp_path / "pairs.tsv.gz", gzip.compress(b'one "quoted"\teins\t7\ntwo\tzwei\t8\n'))
    assert [(p.source, p.target) for p in read_pairs([file])] == [('one "quoted"', "eins"), ("two", "zwei")]
    assert [(p.source, p.target) for p in read_pairs([file], fields=("3", "1"))] == [
        ("7", 'one "quoted"'),
        ("8", "two"),
    ]
    assert [line.text for line in read_lines([file], field="2")] == ["eins", "zwei"]


def test_a_tsv_row_without_the_column_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "pairs.tsv", "one\teins\ntwo\n")
    assert error_of(read_pairs([file])).startswith(f"{file}:2: 1 columns, but column 2 is needed")


def test_jsonl_fields_are_chosen_by_name_also_inside_objects(tmp_path: Path) -> None:
    records = [{"source": "one", "target": "eins", "translation": {"en": "uno", "de": "due"}, "a.b": "dotted"}]
    file = write(tmp_path / "pairs.jsonl", "".join(json.dumps(record) + "\n" for record in records))
    assert [(p.source, p.target) for p in read_pairs([file])] == [("one", "eins")]
    inside = read_pairs([file], fields=("translation.en", "translation.de"))
    assert [(p.source, p.target) for p in inside] == [("uno", "due")]
    assert [line.text for line in read_lines([file], field="a.b")] == ["dotted"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{bad", "not JSON"),
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[1]", "no text in field 'text'"),
        ('{"text": 3}', "no text in field 'text'"),
        ('{"other": "x"}', "no text in field 'text'"),
        ('{"text": "\\ud800"}', "half a surrogate pair"),
    ],
)
def test_a_bad_jsonl_record_is_named(tmp_path: Path, line: str, problem: str) -> None:
    file = write(tmp_path / "corpus.jsonl", '{"text": "good"}\n' + line + "\n")
    assert error_of(read_lines([file])).startswith(f"{file}:2: {problem}")


def test_fields_that_do_not_fit_the_format_are_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "pairs.tsv", "one\teins\n")
    for fields in (("1",), ("0", "1"), ("en", "de")):
        with pytest.raises(UsageError):
            list(read_pairs([file], fields=fields))
    with pytest.raises(DataError, match="holds both sides in one file"):
        list(read_pairs([file], [file]))


def test_standard_input_is_read_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(b"eins\nzwei\n"))))
    source = write(tmp_path / "a.en", "one\ntwo\n")
    assert [pair.target for pair in read_pairs([source], ["-"])] == ["eins", "zwei"]
    for read in (lambda: list(read_pairs(["-"], ["-"])), lambda: fingerprint(["-"])):
        with pytest.raises(UsageError, match="only once"):
            read()


# Paths and fingerprints


def test_globs_are_sorted_and_relative_to_the_recipe(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "c.log", "odd[1].txt"):
        write(tmp_path / name, "x\n")
    (tmp_path / "folder.txt").mkdir()
    assert expand_paths(["?.txt", "-", "c.log"], tmp_path) == [
        str(tmp_path / "a.txt"),
        str(tmp_path / "b.txt"),
        "-",
        str(tmp_path / "c.log"),
    ]
    assert expand_paths(["odd[1].txt"], tmp_path) == [str(tmp_path / "odd[1].txt")]
    assert expand_paths([str(tmp_path / "a.txt")], Path("/elsewhere")) == [str(tmp_path / "a.txt")]
    with pytest.raises(DataError, match="matches no file"):
        expand_paths(["*.csv"], tmp_path)


def test_the_fingerprint_follows_content_and_order_not_names(tmp_path: Path) -> None:
    one, two = write(tmp_path / "one", "1\n"), write(tmp_path / "two", "2\n")
    copy = write(tmp_path / "copy", "1\n")
    assert fingerprint([one, two]) == fingerprint([copy, two])
    joined = write(tmp_path / "joined", "1\n2\n")
    assert len({fingerprint([one, two]), fingerprint([two, one]), fingerprint([one]), fingerprint([joined])}) == 4
