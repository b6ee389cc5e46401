// Whether a data file is still the one that it was, told from a few of its pages. Tests:
// tests/data/fingerprint_test.cpp.
#pragma once

#include <filesystem>

#include "base/file.h"
#include "data/json_fields.h"
#include "data/token_array.h"  // FileFingerprint

namespace tokamak {

/// The fingerprint of a file: its size, and a checksum of its size, its first and last 64 KiB and 16 pages of 4 KiB
/// spread evenly between them; of all its bytes if that is not more. At most 200 KiB are read, whatever the size.
FileFingerprint fingerprint_file(const FileReader& file);
FileFingerprint fingerprint_file(const std::filesystem::path& path);

/// The list of fingerprints in a field of a JSON file; UserErrors as of JsonFields.
std::vector<FileFingerprint> fingerprints_from(const JsonFields& fields, const char* key);

}  // namespace tokamak
