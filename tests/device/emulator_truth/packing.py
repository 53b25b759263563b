"""Byte strings of the record: hex when short, else compressed. The suffix of a field's name says how.

name      hex
name.z    zlib, base64
name.dz   differences of successive 16-bit words, then zlib and base64: for address tables
"""

from __future__ import annotations

import base64
import zlib

import numpy as np

SUFFIXES = (".z", ".dz")
LONG = 32  # bytes


def _text(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 9)).decode()


def packed(name: str, data: bytes) -> dict[str, str]:
    """The field that holds `data`, in the shortest way."""
    if len(data) <= LONG:
        return {name: data.hex()}
    choices = {name + ".z": _text(data)}
    if len(data) % 2 == 0:
        words = np.frombuffer(data, np.uint16)
        choices[name + ".dz"] = _text(np.diff(words, prepend=np.uint16(0)).tobytes())
    return dict([min(choices.items(), key=lambda item: len(item[1]))])


def unpacked(record: dict, name: str, dtype) -> np.ndarray:
    """The array of a field, however it is held."""
    if name in record:
        return np.frombuffer(bytes.fromhex(record[name]), dtype)
    if name + ".z" in record:
        return np.frombuffer(zlib.decompress(base64.b64decode(record[name + ".z"])), dtype)
    differences = np.frombuffer(zlib.decompress(base64.b64decode(record[name + ".dz"])), np.uint16)
    return np.cumsum(differences, dtype=np.uint16).view(dtype)
