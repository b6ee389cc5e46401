// JSON as documents: each line of a stream is an object, one field of which is the text (JSONL, NDJSON); or the whole
// stream is one object. For examples see tests/data/sources/jsonl_test.cpp.
#pragma once

#include <memory>

#include "data/sources/byte_stream.h"

namespace tokamak {

/// An object is held in memory whole; one of more than 128 parts (1 GiB) is a UserError. Blank lines and empty texts
/// are passed over. UserErrors name the line.
std::unique_ptr<Source> read_jsonl(std::unique_ptr<ByteStream> stream, const SourceOptions& options);

/// The same for a stream that is one object, on any number of lines.
std::unique_ptr<Source> read_json(std::unique_ptr<ByteStream> stream, const SourceOptions& options);

}  // namespace tokamak
