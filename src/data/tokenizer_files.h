// Vocabulary files: GPT-2's pair (vocab.bpe + encoder.json, also under the names merges.txt + vocab.json) and
// Hugging Face's tokenizer.json of the same kind, byte-level BPE with GPT-2's way of cutting text.
#pragma once

#include <filesystem>
#include <vector>

#include "base/file.h"
#include "data/tokenizer.h"

namespace tokamak {

/// Loads the tokenizer of a folder that holds one of the forms above (or of a tokenizer.json itself). UserErrors name
/// the file and, for other kinds of tokenizer, the field that differs.
Tokenizer load_tokenizer(const std::filesystem::path& path);

/// True if `load_tokenizer` would find files in this folder.
bool has_tokenizer(const std::filesystem::path& folder);

/// Writes both forms into an existing folder under temporary names; they appear with each file's commit().
std::vector<AtomicFile> stage_tokenizer(const Vocabulary& vocabulary, const std::filesystem::path& folder);

/// Writes both forms into an existing folder, each file atomically.
void save_tokenizer(const Vocabulary& vocabulary, const std::filesystem::path& folder);

}  // namespace tokamak
