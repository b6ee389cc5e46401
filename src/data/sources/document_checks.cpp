#include "data/sources/document_checks.h"

#include "data/source_notes.h"
#include "data/sources/content.h"

namespace tokamak {

namespace {

constexpr int64_t kMostParts = 128;

}  // namespace

size_t most_document_bytes(const SourceOptions& options) { return size_t(kMostParts * options.part_bytes); }

void note_encoding(const SourceOptions& options, std::string_view text, const std::string& place) {
  if (options.notes && !is_utf8(text)) note(options, "not UTF-8", "warning: " + encoding_warning(place));
}

}  // namespace tokamak
