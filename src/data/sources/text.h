// Text of a stream as documents: the whole stream is one, or, with a separator, what lies between separators. A line
// break right behind a separator belongs to it. For examples see tests/data/sources/text_test.cpp.
#pragma once

#include <memory>
#include <string>

#include "data/sources/byte_stream.h"

namespace tokamak {

/// Looks at the content first: UserErrors for what is no text, notes for what is doubtful. JSON lines are read as such,
/// unless the stream's name says that it is text.
std::unique_ptr<Source> read_text(std::unique_ptr<ByteStream> stream, const SourceOptions& options);

/// Notes that what its name does not call so is read as JSON lines.
void note_json_lines(const SourceOptions& options, const std::string& name);

}  // namespace tokamak
