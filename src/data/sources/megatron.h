// Megatron-LM's indexed datasets: tokens in X.bin, and in X.idx their type and where sequences and documents begin
// (megatron/core/datasets/indexed_dataset.py). Tests: tests/data/sources/megatron_test.cpp.
#pragma once

#include <filesystem>

#include "data/sources/file_tokens.h"

namespace tokamak {

/// X.idx: magic, version, type, counts; then sequence lengths (int32) and places in X.bin (int64), and the first
/// sequence of each document and the end (int64). Little-endian.
struct MegatronIndex {
  FileReader file;
  TokenType type;
  int64_t sequences = 0;
  int64_t documents = 0;
  int64_t tokens = 0;  // of all sequences

  int64_t lengths_offset() const { return 34; }
  int64_t pointers_offset() const { return lengths_offset() + 4 * sequences; }
  int64_t documents_offset() const { return pointers_offset() + 8 * sequences; }
  int64_t end_offset() const { return documents_offset() + 8 * (documents + 1); }
};

/// Reads the header of an .idx and checks all numbers behind it, in pieces. UserErrors: another magic, version or type,
/// a length that does not fit the counts, sequences that do not follow each other, documents out of order.
MegatronIndex open_megatron_index(const std::filesystem::path& path);

}  // namespace tokamak
