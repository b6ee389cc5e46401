// Shards of llm.c, modded-nanogpt and `prepare`; the format itself is in data/token_shard.h.
#include "data/sources/source_format.h"
#include "data/sources/token_source.h"
#include "data/token_shard.h"

namespace tokamak {

namespace {

std::unique_ptr<TokenArray> open_bin(const std::filesystem::path& path, const SourceOptions&) {
  return std::make_unique<FileTokens>(open_token_shard(path));
}

std::unique_ptr<Source> open_bin_source(const std::filesystem::path& path, const SourceOptions& options) {
  return token_source(path, open_bin(path, options), options);
}

}  // namespace

const TokenReader bin_tokens = {.open = open_bin};
const DocumentReader bin_documents = {.open = open_bin_source};

}  // namespace tokamak
