// What holds for documents of all formats that have them whole: rows, objects, samples. Tests:
// tests/data/sources/document_checks_test.cpp.
#pragma once

#include <string>
#include <string_view>

#include "data/open_source.h"

namespace tokamak {

/// The most bytes of a row, an object or a sample: memory has to hold it.
size_t most_document_bytes(const SourceOptions& options);

/// A warning for who hears notes, where a text is not UTF-8. `place`: of the document, or its file.
void note_encoding(const SourceOptions& options, std::string_view text, const std::string& place);

}  // namespace tokamak
