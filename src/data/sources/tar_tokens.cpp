// WebDataset archives to train on: the .npy members of an uncompressed tar are tokens, other members are passed over.
#include "base/error.h"
#include "data/sources/npy.h"
#include "data/sources/source_format.h"
#include "data/sources/tar_members.h"

namespace tokamak {

namespace {

std::unique_ptr<TokenArray> open_tar(const std::filesystem::path& path, const SourceOptions&) {
  FileReader file(path);
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

}  // namespace

const TokenReader tar_tokens = {.open = open_tar};

}  // namespace tokamak
