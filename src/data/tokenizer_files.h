// Vocabulary files: Hugging Face's tokenizer.json (data/hugging_face_vocabulary.h), GPT-2's pair (vocab.bpe +
// encoder.json, also under the names merges.txt + vocab.json), and tiktoken's *.tiktoken (data/tiktoken_vocabulary.h).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/tokenizer.h"

namespace tokamak {

/// Loads the tokenizer of a folder that holds one of the forms above (looked for in this order), of a tokenizer.json,
/// or of a tiktoken file. The latter's encoding is its name, as in cl100k_base.tiktoken, or stands behind an '@':
/// "my.tiktoken@cl100k". UserErrors name the file and, for other kinds of tokenizer, the field that differs; the files
/// of a folder made by `prepare` must have the checksums of its index.
Tokenizer load_tokenizer(const std::filesystem::path& path);

/// True if `load_tokenizer` would find files in this folder.
bool has_tokenizer(const std::filesystem::path& folder);

/// Writes the vocabulary into an existing folder under temporary names: tokenizer.json and, where it says all, GPT-2's
/// pair. They appear with each file's commit(). load_tokenizer(folder) then gives the same ids for every text.
std::vector<AtomicFile> stage_tokenizer(const Vocabulary& vocabulary, const std::filesystem::path& folder);

/// The names that stage_tokenizer() may give its files; which of them it writes depends on the vocabulary.
std::vector<std::string> tokenizer_file_names();

/// The same as stage_tokenizer(), each file made visible at once.
void save_tokenizer(const Vocabulary& vocabulary, const std::filesystem::path& folder);

}  // namespace tokamak
