#include "data/data_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checksum.h"
#include "base/error.h"
#include "config/config.h"
#include "data/data_path.h"
#include "data/token_shard_index.h"
#include "data/tokenizer_files.h"

namespace tokamak {

namespace {

/// The folders made by `prepare` among the entries of data.path and data.val_path.
std::vector<std::string> prepared_folders(const DataConfig& config) {
  std::vector<std::string> folders;
  for (const DataPath& path : all_data_paths(config))
    if (is_prepared(path.path)) folders.push_back(path.path);
  return folders;
}

}  // namespace

std::string tokenizer_fingerprint(const Tokenizer& tokenizer) {
  Checksum sum;
  for (const std::string& token : tokenizer.vocabulary().tokens) {
    sum.update(std::as_bytes(std::span(token)));
    sum.update(std::as_bytes(std::span("\n", 1)));
  }
  for (const AddedToken& token : tokenizer.vocabulary().added) {
    if (token == AddedToken{.id = token.id}) continue;
    std::string settings = fmt::format("{} {:d}{:d}{:d}{:d}{:d}\n", token.id, token.special, token.normalized,
                                       token.lstrip, token.rstrip, token.single_word);
    sum.update(std::as_bytes(std::span(settings)));
  }
  return format_checksum(sum.digest());
}

std::shared_ptr<const Tokenizer> load_data_tokenizer(const DataConfig& config) {
  std::vector<std::string> folders = prepared_folders(config);
  std::erase_if(folders, [](const std::string& folder) { return !has_tokenizer(folder); });
  std::string first = !config.tokenizer.empty() ? config.tokenizer : !folders.empty() ? folders[0] : "";
  if (first.empty()) return nullptr;
  auto tokenizer = std::make_shared<const Tokenizer>(load_tokenizer(first));
  for (const std::string& folder : folders) {
    if (folder == first || tokenizer_fingerprint(load_tokenizer(folder)) == tokenizer_fingerprint(*tokenizer)) continue;
    user_error(
        "[data] expected one vocabulary for all data, got different ones in {} and {}; prepare one of them again with "
        "--vocab={}",
        first, folder, first);
  }
  return tokenizer;
}

std::optional<int64_t> find_data_vocab(const DataConfig& data) {
  for (const DataPath& path : parse_data_paths(data.path, "data.path")) require_exists(path.path);
  int64_t vocab = 0;
  for (const std::string& folder : prepared_folders(data))
    vocab = std::max(vocab, read_token_shard_index(folder).vocab_size);
  if (vocab > 0) return vocab;
  if (auto tokenizer = load_data_tokenizer(data)) return tokenizer->vocab_size();
  return std::nullopt;
}

RunConfig with_data_vocab(RunConfig config) {
  if (config.model.vocab != 0) return config;
  std::optional<int64_t> found;
  try {
    found = find_data_vocab(config.data);
  } catch (const UserError& error) {
    user_error("[model.vocab] expected the size of the vocabulary, got 0, the data's; give --model.vocab, or data: {}",
               error.what());
  }
  if (!found)
    user_error(
        "[model.vocab] expected the size of the vocabulary, got 0, and {} does not tell it; give --model.vocab, or the "
        "vocabulary's files with --data.tokenizer, or name a folder made by `tokamak prepare`",
        config.data.path.front());
  config.model.vocab = *found;
  return config;
}

}  // namespace tokamak
