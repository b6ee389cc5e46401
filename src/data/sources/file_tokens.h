// Tokens that lie in a file in one or more runs, each of them plain integers: what most token formats are once their
// headers are read. Tests: tests/data/sources/bin_test.cpp.
#pragma once

#include <filesystem>
#include <vector>

#include "base/file.h"
#include "data/sources/token_type.h"
#include "data/token_array.h"

namespace tokamak {

/// Where tokens lie in a file, one after the other.
struct TokenRun {
  int64_t offset = 0;  // bytes from the beginning of the file
  int64_t tokens = 0;
};

class FileTokens final : public TokenArray {
 public:
  /// The runs, in order, as one array; they must lie inside the file. 16 bytes of memory a run. `companions` are other
  /// files that say what is in this one, for fingerprints. Empty runs are fine.
  FileTokens(FileReader file, TokenType type, const std::vector<TokenRun>& runs,
             std::vector<std::filesystem::path> companions = {});

  int64_t size() const override { return begins_.back(); }
  void read(int64_t begin, std::span<int32_t> out) const override;
  Place place(int64_t at) const override;
  bool is_marked() const override { return type_.marked; }
  std::string stored_as() const override { return type_name(type_); }
  std::vector<FileFingerprint> fingerprints() const override;

  TokenType type() const { return type_; }
  const FileReader& file() const { return file_; }
  const std::filesystem::path& path() const { return file_.path(); }
  /// The first token of each run, and the end.
  const std::vector<int64_t>& begins() const { return begins_; }

 private:
  void read_run(int64_t offset, int64_t begin, std::span<int32_t> out) const;

  FileReader file_;
  TokenType type_;
  std::vector<int64_t> offsets_;  // of each run, in bytes
  std::vector<int64_t> begins_ = {0};
  std::vector<std::filesystem::path> companions_;
};

}  // namespace tokamak
