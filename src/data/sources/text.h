// Text of a stream as documents: the whole stream is one, or, with a separator, what lies between separators. A line
// break right behind a separator belongs to it. For examples see tests/data/sources/text_test.cpp.
#pragma once

#include <memory>

#include "data/sources/byte_stream.h"

namespace tokamak {

std::unique_ptr<Source> read_text(std::unique_ptr<ByteStream> stream, const SourceOptions& options);

}  // namespace tokamak
