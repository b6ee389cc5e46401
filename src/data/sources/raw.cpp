// nanoGPT's form: token ids and nothing else, little-endian, of the type that the options say.
#include "base/error.h"
#include "data/source_notes.h"
#include "data/sources/source_format.h"
#include "data/sources/token_source.h"
#include "data/token_shard.h"  // is_token_shard

namespace tokamak {

namespace {

constexpr int64_t kLookedAt = 64 << 10;  // bytes that tell the type

std::unique_ptr<TokenArray> open_raw(const std::filesystem::path& path, const SourceOptions& options) {
  TokenType type = parse_token_type(options.token_type);
  FileReader file(path);
  std::vector<std::byte> head(size_t(std::min<int64_t>(file.size(), 4)));
  file.read(0, head);
  if (is_token_shard(head))
    user_error("[raw] {}: expected tokens without a header, got a token shard with one; its format is bin",
               path.string());
  if (file.size() % type.bytes != 0)
    user_error(
        "[raw] {}: expected a multiple of {} bytes for {} tokens, got {} bytes; the file is cut short or its "
        "tokens are of another type",
        path.string(), type.bytes, type_name(type), file.size());
  if (options.notes) {
    std::vector<std::byte> begin(size_t(std::min<int64_t>(file.size(), kLookedAt)));
    file.read(0, begin);
    if (std::string warning = type_warning(type, begin, path.string()); !warning.empty())
      note(options, "tokens of another type", warning);
  }
  TokenRun whole = {0, file.size() / type.bytes};
  return std::make_unique<FileTokens>(std::move(file), type, std::vector{whole});
}

std::unique_ptr<Source> open_raw_source(const std::filesystem::path& path, const SourceOptions& options) {
  return token_source(path, open_raw(path, options), options);
}

}  // namespace

const TokenReader raw_tokens = {.open = open_raw};
const DocumentReader raw_documents = {.open = open_raw_source, .looks = true};

}  // namespace tokamak
