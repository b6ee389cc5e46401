#!/usr/bin/env python3
"""Makes the files of tests/goldens/parquet with pyarrow from PyPI: tools/make_parquet_goldens.py tests/goldens/parquet"""
import pathlib
import sys

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)

# Seven times five rows, of which one is null and one is empty.
texts = ["one", None, "", "caf\u00e9", "two\nlines"] * 7
table = pa.table({
    "text": pa.array([f"{text} {i}" if text else text for i, text in enumerate(texts)]),
    "large": pa.array(texts, pa.large_string()),
    "dict": pa.array(texts).dictionary_encode(),
    "bytes": pa.array([None if text is None else text.encode() for text in texts]),
    "id": range(35),
    "tags": [["a"]] * 35,
    "meta": [{"url": "u"}] * 35,
})
# Row groups of six rows, and pages of a few; the same with another page format, dictionaries or none, and compression.
pq.write_table(table, folder / "groups.parquet", row_group_size=6, data_page_size=16, compression="none",
               use_dictionary=["dict"], write_statistics=False)
for compression in ["snappy", "gzip", "zstd"]:
    pq.write_table(table.select(["text"]), folder / f"{compression}.parquet", compression=compression,
                   data_page_version="2.0", write_statistics=False)
pq.write_table(table.select(["text"]).slice(0, 0), folder / "empty.parquet")

# Lists of ids, some rows of which are null or empty, and one longer than a page; and columns that have none.
columns = table.select(["text", "large", "id"]).append_column(
    "input_ids", pa.array([None if i % 5 == 1 else list(range(i, i + i % 5)) for i in range(35)], pa.list_(pa.int32())))
columns = columns.append_column(
    "long_ids", pa.array([list(range(700 if i == 8 else i % 3)) for i in range(35)], pa.large_list(pa.int64())))
columns = columns.append_column("bad_ids", pa.array([[1], [3, -7]] * 17 + [[2**40]], pa.list_(pa.int64())))
pq.write_table(columns, folder / "ids.parquet", row_group_size=6, data_page_size=16, compression="zstd",
               write_statistics=False)
# As Hugging Face's datasets keeps its cache (a stream), and Arrow's file (Feather). Batches of six rows.
for name, writer in {"stream": pa.ipc.new_stream, "file": pa.ipc.new_file}.items():
    with writer(str(folder / f"{name}.arrow"), columns.schema) as out:
        out.write_table(columns, max_chunksize=6)
