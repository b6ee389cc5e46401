#include "data/sources/tar_tokens.h"

#include "base/error.h"
#include "data/sources/npy.h"
#include "data/sources/source_format.h"
#include "data/sources/tar_members.h"
#include "data/sources/token_source.h"

namespace tokamak {

namespace {

std::unique_ptr<FileTokens> open_tar(const std::filesystem::path& path) {
  FileReader file = open_token_file(path);
  std::vector<TokenRun> runs;
  TokenType type;
  int64_t members = 0;
  for_each_tar_member(file, [&](const TarMember& member) {
    ++members;
    if (!member.name.ends_with(".npy")) return;
    std::string name = fmt::format("{}: {}", path.string(), member.name);
    NpyHeader header = read_npy_header(file, member.offset, member.bytes, name);
    if (runs.empty()) type = header.type;
    if (header.type != type)
      user_error("[tar] {}: expected {} as in the members before, got {}; save all members as one type", name,
                 type_name(type), type_name(header.type));
    runs.push_back(header.run);
  });
  if (runs.empty())
    user_error(
        "[tar] {}: expected .npy members with tokens, got none among {} members; if they are text, run tokamak "
        "prepare on it",
        path.string(), members);
  return std::make_unique<FileTokens>(std::move(file), type, runs);
}

std::unique_ptr<TokenArray> open_tar_tokens(const std::filesystem::path& path, const SourceOptions&) {
  return open_tar(path);
}

}  // namespace

std::unique_ptr<Source> open_tar_token_source(const std::filesystem::path& path, const SourceOptions& options) {
  std::unique_ptr<FileTokens> tokens = open_tar(path);
  auto next = [begins = tokens->begins(), at = size_t(0)]() mutable -> std::optional<int64_t> {
    if (at + 1 == begins.size()) return {};
    ++at;
    return begins[at] - begins[at - 1];
  };
  return token_source(path, std::move(tokens), std::move(next), options);
}

const TokenReader tar_tokens = {.open = open_tar_tokens};

}  // namespace tokamak
