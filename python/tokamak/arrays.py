"""Arrays in files, in and out by the buffer protocol: numpy.asarray(view) and torch.frombuffer(view, ...) take what is
given here without a copy, and whatever memoryview() takes can be written."""
import json
import math
import mmap
import struct
from pathlib import Path

# Names of safetensors and the characters of Python's struct. BF16, which has none, comes as its bits.
FORMATS = {"F64": "d", "F32": "f", "F16": "e", "BF16": "H", "I64": "q", "I32": "i", "I16": "h", "I8": "b", "U8": "B",
           "U16": "H", "U32": "I", "U64": "Q", "BOOL": "?"}
LARGEST_HEADER = 100 << 20


def read_safetensors(file):
    """{name: memoryview of its shape and type}, of a file that is mapped, not read."""
    with open(file, "rb") as opened:
        data = memoryview(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))
    if len(data) < 8 or (length := struct.unpack("<Q", data[:8])[0]) > min(len(data) - 8, LARGEST_HEADER):
        raise ValueError(f"{file}: expected a file of safetensors, whose header fits it")
    header = json.loads(bytes(data[8:8 + length]))
    body = data[8 + length:]
    return {name: _view(body, entry, f"{file}: {name}") for name, entry in header.items() if name != "__metadata__"}


def _view(body, entry, where):
    begin, end = entry["data_offsets"]
    form, shape = FORMATS[entry["dtype"]], entry["shape"]
    if not 0 <= begin <= end <= len(body) or end - begin != math.prod(shape) * struct.calcsize(form):
        raise ValueError(f"{where}: expected as many bytes in the file as its shape has")
    part = body[begin:end]
    if 0 in shape:  # memoryview has no shape for nothing
        return part.cast(form)
    return part.cast(form, shape) if shape else part.cast(form, [1])


def write_safetensors(file, arrays):
    """{name: array}, each in the type that it has. With a config.json beside it, `model.from` reads the folder."""
    header, views, offset = {}, [], 0
    for name, array in arrays.items():
        view = _contiguous(array, name)
        types = [key for key, form in FORMATS.items() if form == view.format and key != "BF16"]
        if not types:
            raise ValueError(f"{name}: expected numbers of a plain type, got format {view.format!r}")
        header[name] = {"dtype": types[0], "shape": list(view.shape), "data_offsets": [offset, offset + view.nbytes]}
        offset += view.nbytes
        views.append(view)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(file, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for view in views:
            out.write(view.cast("B") if view.nbytes else b"")


def write_tokens(file, tokens):
    """One dimension of uint16 or uint32 as NumPy's .npy, which data.path takes."""
    view = _contiguous(tokens, "tokens")
    if view.ndim != 1 or view.format not in ("H", "I", "L") or view.itemsize not in (2, 4):
        raise ValueError(f"tokens: expected one dimension of uint16 or uint32, got {view.ndim} of format {view.format!r}")
    header = f"{{'descr': '<u{view.itemsize}', 'fortran_order': False, 'shape': ({view.shape[0]},), }}"
    padding = -(10 + len(header) + 1) % 64
    header = header.encode() + b" " * padding + b"\n"
    Path(file).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + view.cast("B"))


def _contiguous(array, name):
    view = memoryview(array)
    if not view.c_contiguous:
        raise ValueError(f"{name}: expected an array whose elements lie one behind the other; copy it first")
    return view
