"""Random changes of files: bytes, fields of text, values of JSON, and content within gzip, zip and safetensors."""

from __future__ import annotations

import gzip
import io
import json
import random
import struct
import zipfile
from collections.abc import Callable
from typing import Any

INTEGERS = (0, 1, 2, 3, 5, 127, 128, 255, 256, 2**15, 2**16 - 1, 2**24, 2**31 - 1, 2**31, 2**32 - 1)
LARGE = (2**33, 2**40, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
FIELDS = (
    b"", b"nan", b"NaN", b"NA", b"inf", b"-inf", b"1e999", b"-1e-999", b"0x10", b"1_0", b'"', b'"1', b"'1'",
    b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"text", b"1,5", b"-", b"+", b"1e", b"--1", b"\r", b"\n", b"\n\n", b"\r\n",
    b" ", b"\t", b";", b"#", b"1" * 400, b"9" * 30, b"0." + b"0" * 400 + b"1", "é".encode(), b"a" * 70000,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3.5, -0.0, 1e308, float("inf"), float("nan"), 10**6, 2**31, 2**63, 10**30, "",
    "x", "0", "nan", "NaN", "null", "/", "..",
    "a" * 300, "<script>", "\ud800", [], [0], [-1], [1, 2, 3], [None], [[]],
    {}, {"a": 1}, [2**62, 2**62], "<f8", ">i2", "|O", "float16", "complex128", "gzip", "blosc",
)  # fmt: skip

HEADER_PARTS = (
    "<f8",
    "<f4",
    "<i4",
    "<i8",
    "|S3",
    "False",
    "(",
    ")",
    ",",
    "'",
    "descr",
    "shape",
    ":",
    "5",
    "2",
)
HEADER_TEXTS = (
    "<f8", ">f4", "<i2", "|O", "<U3", "<c16", "True", "-5", "99999999", "()", "(5,", "[", "f8,f4", "", "{", "0",
    "None",
)  # fmt: skip
"""Texts in the header of a `.npy` file, and what replaces them."""

Content = dict[str, bytes]


def mutate(files: Content, draw: random.Random) -> Content:
    """Return the files of an input with one to four changes in one of them, rarely in two."""
    changed = dict(files)
    for _ in range(1 if draw.random() < 0.9 else 2):
        name = draw.choice(sorted(changed))
        if draw.random() < 0.01 and len(changed) > 1:
            del changed[name]
            continue
        changed[name] = mutate_file(name, changed[name], draw)
    return changed


def mutate_file(name: str, content: bytes, draw: random.Random) -> bytes:
    """Return another content of one file: plain bytes, or its inner content if the format has one."""
    for endings, change in INNER.items():
        if name.endswith(endings) and draw.random() < 0.6:
            try:
                return change(content, draw)
            except Exception:  # changed before, so that its format is broken already
                break
    return mutate_bytes(content, draw)


def mutate_bytes(content: bytes, draw: random.Random) -> bytes:
    """Change bytes, most often near the beginning or the end, where headers and footers are."""
    data = bytearray(content)
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        place = _place(len(data), draw)
        kind = draw.randrange(10)
        if kind < 3 and data:
            data[place] ^= 1 << draw.randrange(8)
        elif kind == 3 and data:
            data[place] = draw.choice((0, 1, 255, draw.randrange(256)))
        elif kind == 4:
            size = draw.choice((2, 4, 8))
            number = draw.choice(INTEGERS if size < 8 else INTEGERS + LARGE) % 256**size
            order = draw.choice(("<", ">"))
            data[place : place + size] = struct.pack(order + {2: "H", 4: "I", 8: "Q"}[size], number)
        elif kind == 5:
            del data[place : place + draw.choice((1, 2, 8, 64, len(data)))]
        elif kind == 6:
            data[place:place] = draw.randbytes(draw.choice((1, 2, 8, 64)))
        elif kind == 7:
            end = place + draw.choice((1, 4, 16, 128))
            data[place:place] = data[place:end]
        elif kind == 8:
            end = min(place + draw.choice((4, 16, 128)), len(data))
            data[place:end] = draw.choice((bytes(end - place), b"\xff" * (end - place)))
        else:
            data = data[: draw.randrange(len(data) + 1)]
    return bytes(data)


def mutate_text(content: bytes, draw: random.Random) -> bytes:
    """Change fields of a text table."""
    data = content
    for _ in range(draw.choice((1, 1, 2, 5))):
        place = draw.randrange(len(data) + 1)
        end = min(place + draw.choice((0, 0, 1, 3, 8)), len(data))
        data = data[:place] + draw.choice(FIELDS) + data[end:]
    return data


def mutate_json(content: bytes, draw: random.Random) -> bytes:
    """Change values of JSON, remove them, or add others."""
    try:
        value = json.loads(content)
    except ValueError:
        return mutate_bytes(content, draw)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        value = _changed(value, draw)
    return json.dumps(value).encode("utf-8", "replace")


def _changed(value: Any, draw: random.Random) -> Any:
    """Return JSON with another value at a random place."""
    if isinstance(value, dict) and value and draw.random() < 0.95:
        name, kind = draw.choice(sorted(value, key=str)), draw.random()
        if kind < 0.1:
            return {key: one for key, one in value.items() if key != name}
        if kind < 0.15:
            return value | {draw.choice(("a", "", "format", "shape")): draw.choice(VALUES)}
        return value | {name: _changed(value[name], draw)}
    if isinstance(value, list) and value and draw.random() < 0.9:
        place, kind = draw.randrange(len(value)), draw.random()
        if kind < 0.15:
            return value[:place] + value[place + 1 :]
        if kind < 0.3:
            return [*value[:place], value[place], *value[place:]]
        return [*value[:place], _changed(value[place], draw), *value[place + 1 :]]
    if isinstance(value, int | float) and not isinstance(value, bool) and draw.random() < 0.5:
        return draw.choice((value + 1, value - 1, -value, value * 2, value / 2, value * 10**6))
    return draw.choice(VALUES)


def _gzipped(content: bytes, draw: random.Random) -> bytes:
    """Change what is inside gzip, and compress it again."""
    inner = gzip.decompress(content)
    change = mutate_text if inner[:1].isascii() and inner[:1] != b"\0" else mutate_bytes
    return gzip.compress(change(inner, draw), 1, mtime=0)


def _zipped(content: bytes, draw: random.Random) -> bytes:
    """Change a member of an archive, or remove or repeat one, with correct checksums."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [
            (one.filename, archive.read(one), one.compress_type) for one in archive.infolist()
        ]
    place, kind = draw.randrange(len(members)), draw.random()
    name, inner, packed = members[place]
    if kind < 0.05:
        del members[place]
    elif kind < 0.1:
        members.append((draw.choice(("data.npy", "x.npy", "shape.npy", "..")), inner, packed))
    else:
        members[place] = (name, mutate_npy(inner, draw), packed)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, inner, packed in {one[0]: one for one in members}.values():
            archive.writestr(zipfile.ZipInfo(name), inner, packed)
    return made.getvalue()


def mutate_npy(content: bytes, draw: random.Random) -> bytes:
    """Change the numbers or the text of the header of a `.npy` file, or any bytes."""
    kind = draw.random()
    if kind < 0.3:
        return mutate_bytes(content, draw)
    begin = content.find(b"\n") + 1
    if kind < 0.6:  # numbers, for example indices of a sparse matrix
        data = bytearray(content)
        size = draw.choice((4, 8))
        if len(data) >= begin + size:
            place = begin + draw.randrange((len(data) - begin) // size) * size
            number = draw.choice((-1, -2, *INTEGERS, *LARGE)) % 256**size
            data[place : place + size] = number.to_bytes(size, "little")
        return bytes(data)
    header = content[10:begin].decode("latin-1").rstrip()
    old, new = draw.choice(HEADER_PARTS), draw.choice(HEADER_TEXTS)
    text = header.replace(old, new, 1).encode("latin-1")
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return content[:8] + struct.pack("<H", len(text) % 65536) + text + content[begin:]


def _with_sorted_metadata(content: bytes) -> bytes:
    """Return a safetensors file with its metadata in order: the library writes it in another one each time."""
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + size])
    if "__metadata__" in header:
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + content[8 + size :]


def _safetensors(content: bytes, draw: random.Random) -> bytes:
    """Change the header of a safetensors file; most often the facts of a model, with a correct checksum."""
    from safetensors.numpy import load, save

    from eigengame._system.array_file import add_checksum

    content = _with_sorted_metadata(content)
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + size])
    if draw.random() < 0.2:
        text = mutate_json(content[8 : 8 + size], draw)
        return struct.pack("<Q", len(text)) + text + content[8 + size :]
    arrays, about = load(content), dict(header.get("__metadata__", {}))
    about.pop("digest", None)
    name = draw.choice(sorted(about))
    if draw.random() < 0.7:
        about[name] = mutate_json(about[name].encode(), draw).decode("utf-8", "replace")
    else:
        import numpy as np

        which = draw.choice(sorted(arrays))
        changed = draw.choice(
            (
                lambda one: one[:-1] if one.ndim else one,
                lambda one: one.astype(np.float16),
                lambda one: np.zeros_like(one),
                lambda one: one * np.asarray(np.nan, np.float32),
                lambda one: one.reshape(-1),
                lambda one: -one,
                lambda one: np.stack([one, one]),
                None,
            )
        )
        if changed is None:
            del arrays[which]
        else:
            arrays[which] = np.ascontiguousarray(changed(arrays[which]))
    return _with_sorted_metadata(save(arrays, metadata=add_checksum(arrays, about)))


def _place(size: int, draw: random.Random) -> int:
    """Return a position in a file: in its first or last bytes, or anywhere."""
    if not size:
        return 0
    kind = draw.random()
    if kind < 0.4:
        return draw.randrange(min(size, 256))
    return size - 1 - draw.randrange(min(size, 256)) if kind < 0.6 else draw.randrange(size)


INNER: dict[tuple[str, ...], Callable[[bytes, random.Random], bytes]] = {
    (".gz",): _gzipped,
    (".npz",): _zipped,
    (".npy",): mutate_npy,
    (".csv", ".tsv", ".txt", ".bim", ".fam"): mutate_text,
    (".json", ".zarray", ".zattrs", ".zgroup"): mutate_json,
    (".safetensors",): _safetensors,
}
"""Functions that change the content within a format, by the ending of the file."""
