"""Every kind of unusual picture has one verdict, as docs/images.md lists them."""

from __future__ import annotations

import io
import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from headwise.errors import UsageError
from headwise.image import reading
from headwise.image.reading import UPLOADED, BadPicture, as_pixels, decode_picture, from_pixels, read_picture

GRADIENT = np.arange(12 * 8, dtype=np.uint8).reshape(8, 12)  # 12 wide, 8 high


def packed(image: Image.Image, format: str = "PNG", **options: object) -> bytes:
    stream = io.BytesIO()
    image.save(stream, format, **options)
    return stream.getvalue()


def test_grey_and_coloured_pictures_come_as_they_are() -> None:
    grey = read_back(packed(Image.fromarray(GRADIENT)))
    assert grey.shape == (8, 12, 1)
    assert np.array_equal(grey[:, :, 0], GRADIENT)
    colours = np.random.default_rng(0).integers(0, 256, (8, 12, 3), dtype=np.uint8)
    assert np.array_equal(read_back(packed(Image.fromarray(colours))), colours)
    assert np.array_equal(as_pixels(from_pixels(colours)), colours)


def read_back(content: bytes) -> np.ndarray:
    return as_pixels(decode_picture(content, "picture"))


@pytest.mark.parametrize("format", ["PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM"])
def test_the_content_decides_about_the_type_not_the_name(tmp_path: Path, format: str) -> None:
    file = tmp_path / "liar.png"
    file.write_bytes(packed(Image.fromarray(GRADIENT).convert("RGB"), format))
    image = read_picture(file)
    assert image.mode in ("L", "RGB")
    assert image.size == (12, 8)


@pytest.mark.parametrize(
    ("content", "reason", "message"),
    [
        (b"", "empty", "is empty"),
        (b"<html>not found</html>", "not-a-picture", "is not a picture that is read, whatever its name says"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 5 5\n", "not-a-picture", "give one of PNG, JPEG"),
        (packed(Image.effect_noise((40, 40), 90))[:900], "damaged", "cut off or damaged"),
    ],
)
def test_what_is_not_a_picture_is_one_line_that_names_the_file(
    tmp_path: Path, content: bytes, reason: str, message: str
) -> None:
    file = tmp_path / "photo.jpg"
    file.write_bytes(content)
    with pytest.raises(BadPicture, match=message) as found:
        read_picture(file)
    assert found.value.reason == reason
    assert str(found.value).startswith(f"{file}: ")
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("format", ["PNG", "JPEG", "WEBP", "TIFF"])
def test_a_picture_that_is_cut_off_is_refused_not_half_grey(format: str) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    content = packed(Image.fromarray(noise), format)
    with pytest.raises(BadPicture, match="cut off or damaged"):
        decode_picture(content[: len(content) * 2 // 3], "photo")


def test_a_huge_picture_is_refused_by_its_header_before_anything_is_allocated() -> None:
    """A valid PNG of some hundred bytes that claims to be 60,000 pixels wide and high."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    for width, height in ((60_000, 60_000), (12_000, 10_000)):  # beyond and within twice Pillow's bound
        header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
        bomb = b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")
        with pytest.raises(BadPicture, match=r"more than the 89,478,485 that are read|more pixels than") as found:
            decode_picture(bomb, "bomb.png")
        assert found.value.reason == "huge"


def test_a_caller_may_read_fewer_pixels_and_formats() -> None:
    with pytest.raises(BadPicture, match="more than the 10 that are read") as found:
        decode_picture(packed(Image.fromarray(GRADIENT)), "photo", most_pixels=10)
    assert found.value.reason == "huge"
    with pytest.raises(BadPicture, match="give one of PNG, JPEG, WEBP, BMP"):
        decode_picture(packed(Image.fromarray(GRADIENT), "GIF"), "photo", formats=UPLOADED)


def test_a_file_of_too_many_bytes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_BYTES", 10)
    file = tmp_path / "photo.png"
    file.write_bytes(packed(Image.fromarray(GRADIENT)))
    with pytest.raises(BadPicture, match="more than the 10"):
        read_picture(file)


@pytest.mark.parametrize("format", ["GIF", "PNG", "WEBP", "TIFF"])
def test_animations_and_pages_are_refused(format: str) -> None:
    frames = [Image.new("RGB", (12, 8), colour) for colour in ("red", "green", "blue")]
    content = packed(frames[0], format, save_all=True, append_images=frames[1:])
    with pytest.raises(BadPicture, match="has 3 frames or pages") as found:
        decode_picture(content, "moving")
    assert found.value.reason == "animated"


def test_a_photo_with_a_preview_inside_is_the_photo() -> None:
    photo, preview = (Image.new("RGB", size, "red") for size in ((12, 8), (6, 4)))
    content = packed(photo, "MPO", save_all=True, append_images=[preview])
    assert decode_picture(content, "photo.jpg").size == (12, 8)


def test_printing_colours_become_those_of_a_screen() -> None:
    ink = Image.new("CMYK", (4, 4), (0, 255, 255, 0))  # magenta and yellow make red
    red, green, blue = read_back(packed(ink, "TIFF"))[0, 0]
    assert red > 200
    assert max(green, blue) < 60
    assert decode_picture(packed(ink, "JPEG"), "print.jpg").mode == "RGB"


def test_sixteen_bits_become_eight() -> None:
    deep = Image.fromarray(GRADIENT.astype(np.uint16) << 8 | 255)
    assert deep.mode == "I;16"
    assert np.array_equal(read_back(packed(deep))[:, :, 0], GRADIENT)
    assert np.array_equal(read_back(packed(deep, "TIFF"))[:, :, 0], GRADIENT)
    wide = Image.fromarray(GRADIENT.astype(np.int32) << 8)
    assert np.array_equal(read_back(packed(wide, "TIFF"))[:, :, 0], GRADIENT)


@pytest.mark.parametrize("values", [GRADIENT.astype(np.float32), GRADIENT.astype(np.int32) << 20])
def test_pixels_of_unknown_range_are_refused(values: np.ndarray) -> None:
    with pytest.raises(BadPicture, match="save it as 8-bit PNG") as found:
        decode_picture(packed(Image.fromarray(values), "TIFF"), "measured.tif")
    assert found.value.reason == "mode"


def test_transparency_is_white() -> None:
    clear = np.zeros((2, 2, 4), dtype=np.uint8)
    clear[0, 0] = (10, 20, 30, 255)
    clear[0, 1] = (0, 0, 0, 128)
    found = read_back(packed(Image.fromarray(clear)))
    assert found[0, 0].tolist() == [10, 20, 30]
    assert found[0, 1].tolist() == [127, 127, 127]
    assert found[1, 1].tolist() == [255, 255, 255]
    grey = Image.fromarray(np.array([[[5, 255], [5, 0]]], dtype=np.uint8))
    assert read_back(packed(grey)).tolist() == [[[5], [255]]]


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_a_large_transparent_picture_is_put_on_white_in_tiles_that_do_not_show(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (8, 12, 4), dtype=np.uint8)
    image = Image.fromarray(pixels).convert(mode)
    content = packed(image, transparency=bytes(range(256))) if mode == "P" else packed(image)
    whole = read_back(content)
    monkeypatch.setattr(reading, "_TILE", 5)
    assert np.array_equal(read_back(content), whole)
    with Image.open(io.BytesIO(content)) as opened:
        coloured = opened.convert("RGBA")
    flat = Image.alpha_composite(Image.new("RGBA", coloured.size, "white"), coloured)
    assert np.array_equal(whole, as_pixels(flat.convert("L" if mode == "LA" else "RGB")))


def test_a_palette_with_a_transparent_colour_is_white_there() -> None:
    image = Image.new("P", (2, 1))
    image.putpalette([255, 0, 0, 0, 0, 255])
    image.putpixel((1, 0), 1)
    assert read_back(packed(image)).tolist() == [[[255, 0, 0], [0, 0, 255]]]
    assert read_back(packed(image, transparency=1)).tolist() == [[[255, 0, 0], [255, 255, 255]]]


def test_bits_are_black_and_white() -> None:
    assert read_back(packed(Image.fromarray(GRADIENT > 50)))[:, :, 0].tolist() == ((GRADIENT > 50) * 255).tolist()


@pytest.mark.parametrize(("orientation", "turned"), [(3, 2), (6, 3), (8, 1)])
def test_photos_stand_upright_as_the_camera_says(orientation: int, turned: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    found = read_back(packed(Image.fromarray(GRADIENT), exif=exif))
    assert np.array_equal(found[:, :, 0], np.rot90(GRADIENT, turned))


def test_missing_files_pipes_and_impossible_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadPicture, match="no such file"):
        read_picture(tmp_path / "none.png")
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(BadPicture, match="not an ordinary file"):
        read_picture(tmp_path / "pipe.png")
    with pytest.raises(BadPicture, match="cannot be read"):
        read_picture(tmp_path)
    with pytest.raises(UsageError, match="NUL"):
        read_picture("a\0b.png")
