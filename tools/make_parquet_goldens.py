#!/usr/bin/env python3
"""Makes the files of tests/goldens/parquet with pyarrow from PyPI: tools/make_parquet_goldens.py tests/goldens/parquet"""
import pathlib
import sys

import pyarrow as pa
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
