#include "data/tokenizer_files.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/path_links.h"
#include "data/gpt2_vocabulary.h"
#include "data/hugging_face_settings.h"
#include "data/hugging_face_vocabulary.h"
#include "data/tiktoken_vocabulary.h"
#include "data/token_shard_index.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

constexpr const char* kHuggingFaceFile = "tokenizer.json";
constexpr const char* kTiktokenExtension = ".tiktoken";

struct FilePair {
  const char* merges;
  const char* tokens;
};
constexpr FilePair kGpt2Files[] = {{"vocab.bpe", "encoder.json"}, {"merges.txt", "vocab.json"}};

const FilePair* find_gpt2_files(const fs::path& folder) {
  for (const FilePair& files : kGpt2Files)
    if (is_named(folder / files.merges) && is_named(folder / files.tokens)) return &files;
  return nullptr;
}

/// The tiktoken files of a folder, by name.
std::vector<fs::path> find_tiktoken_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == kTiktokenExtension) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

Tokenizer load_tiktoken(const fs::path& file, std::string_view encoding) {
  TiktokenEncoding known = tiktoken_encoding(encoding, file.string());
  return Tokenizer(parse_tiktoken_vocabulary(read_file(file, kLargeFile), file.string(), known));
}

Tokenizer load_file(const fs::path& file) {
  if (file.extension() == kTiktokenExtension) return load_tiktoken(file, file.stem().string());
  Vocabulary vocabulary = parse_hugging_face_vocabulary(read_file(file, kLargeFile), file.string());
  expect_same_tokens(vocabulary, file.string(), read_hugging_face_settings(file.parent_path()));
  return Tokenizer(std::move(vocabulary));
}

/// Whether GPT-2's pair says all: it has no settings, and what no merge makes is a marker.
bool is_gpt2(const Vocabulary& vocabulary) {
  auto is_plain = [](const AddedToken& token) { return token == AddedToken{.id = token.id}; };
  return vocabulary.pretokenizer == Pretokenizer::kGpt2 && !vocabulary.whole_words && !vocabulary.tied_merges &&
         !vocabulary.nfc && std::ranges::all_of(vocabulary.added, is_plain) &&
         vocabulary.added.size() == vocabulary.special.size();
}

/// Compares the files of a folder made by `prepare` with its index.
void verify_prepared(const fs::path& folder) {
  if (!is_prepared(folder)) return;
  for (const FileChecksum& file : read_token_shard_index(folder).tokenizer)
    verify_file(FileReader(folder / file.file), file.checksum, "tokenizer", kLargeFile);
}

/// Loads "FILE@ENCODING".
std::optional<Tokenizer> load_with_encoding(const fs::path& path) {
  std::string text = path.string();
  size_t at = text.rfind('@');
  if (at == text.npos || !fs::is_regular_file(text.substr(0, at))) return std::nullopt;
  return load_tiktoken(text.substr(0, at), text.substr(at + 1));
}

}  // namespace

bool has_tokenizer(const fs::path& folder) {
  return find_gpt2_files(folder) != nullptr || is_named(folder / kHuggingFaceFile) ||
         !find_tiktoken_files(folder).empty();
}

Tokenizer load_tokenizer(const fs::path& path) {
  if (fs::is_regular_file(path)) return load_file(path);
  if (!fs::is_directory(path)) {
    if (auto tokenizer = load_with_encoding(path)) return std::move(*tokenizer);
    user_error(
        "[tokenizer] expected a folder with vocabulary files, got {}, which does not exist; check the path, or make "
        "the "
        "folder with a model's tokenizer.json in it (GPT-2's is that of openai-community/gpt2 on Hugging Face's hub)",
        path.string());
  }
  verify_prepared(path);
  if (fs::exists(path / kHuggingFaceFile)) return load_file(path / kHuggingFaceFile);
  if (const FilePair* files = find_gpt2_files(path)) {
    fs::path merges = path / files->merges, tokens = path / files->tokens;
    return Tokenizer(parse_gpt2_vocabulary(read_file(merges, kLargeFile), merges.string(),
                                           read_file(tokens, kLargeFile), tokens.string(),
                                           read_hugging_face_settings(path)));
  }
  std::vector<fs::path> tiktoken_files = find_tiktoken_files(path);
  if (tiktoken_files.size() > 1)
    user_error("[tokenizer] expected one .tiktoken file in {}, got {} and {}; name the one to use", path.string(),
               tiktoken_files[0].filename().string(), tiktoken_files[1].filename().string());
  if (tiktoken_files.empty()) require_finished(path);
  if (tiktoken_files.empty())
    user_error(
        "[tokenizer] expected tokenizer.json, vocab.bpe with encoder.json, merges.txt with vocab.json, or a .tiktoken "
        "file in {}, got none of them; name the folder that has them, or let `prepare` train a vocabulary",
        path.string());
  return load_file(tiktoken_files[0]);
}

std::vector<std::string> tokenizer_file_names() {
  return {kGpt2Files[0].merges, kGpt2Files[0].tokens, kHuggingFaceFile};
}

std::vector<AtomicFile> stage_tokenizer(const Vocabulary& vocabulary, const fs::path& folder) {
  std::vector<AtomicFile> files;
  auto stage = [&](const char* name, const std::string& content) {
    AtomicFile& file = files.emplace_back(folder / name);
    file.write(content);
    file.sync();
  };
  if (is_gpt2(vocabulary)) {
    stage(kGpt2Files[0].merges, format_gpt2_merges(vocabulary));
    stage(kGpt2Files[0].tokens, format_gpt2_tokens(vocabulary));
  }
  stage(kHuggingFaceFile, format_hugging_face_vocabulary(vocabulary));
  return files;
}

void save_tokenizer(const Vocabulary& vocabulary, const fs::path& folder) {
  for (AtomicFile& file : stage_tokenizer(vocabulary, folder)) file.commit();
}

}  // namespace tokamak
