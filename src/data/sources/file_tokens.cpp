#include "data/sources/file_tokens.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "data/fingerprint.h"

namespace tokamak {

FileTokens::FileTokens(FileReader file, TokenType type, const std::vector<TokenRun>& runs,
                       std::vector<std::filesystem::path> companions)
    : file_(std::move(file)), type_(type), companions_(std::move(companions)) {
  for (const TokenRun& run : runs) {
    TOKAMAK_CHECK(run.offset >= 0 && run.tokens >= 0 && run.offset <= file_.size() &&
                      run.tokens <= (file_.size() - run.offset) / type.bytes,
                  "{} tokens at byte {} of {}, which has {}", run.tokens, run.offset, path().string(), file_.size());
    offsets_.push_back(run.offset);
    begins_.push_back(begins_.back() + run.tokens);
  }
}

void FileTokens::read(int64_t begin, std::span<int32_t> out) const {
  TOKAMAK_CHECK(begin >= 0 && begin + int64_t(out.size()) <= size(), "tokens {} to {} of {} in {}", begin,
                begin + int64_t(out.size()), size(), path().string());
  size_t run = size_t(std::upper_bound(begins_.begin(), begins_.end(), begin) - begins_.begin()) - 1;
  for (; !out.empty(); ++run) {
    size_t count = std::min(out.size(), size_t(begins_[run + 1] - begin));
    read_run(offsets_[run] + (begin - begins_[run]) * type_.bytes, begin, out.first(count));
    out = out.subspan(count);
    begin += int64_t(count);
  }
}

void FileTokens::read_run(int64_t offset, int64_t begin, std::span<int32_t> out) const {
  std::array<std::byte, 8192> buffer;
  while (!out.empty()) {
    size_t count = std::min(out.size(), buffer.size() / size_t(type_.bytes));
    size_t bytes = count * size_t(type_.bytes);
    file_.read(offset, std::span(buffer).first(bytes));
    widen_checked(type_, buffer.data(), out.first(count), path().string(), begin);
    out = out.subspan(count);
    offset += int64_t(bytes);
    begin += int64_t(count);
  }
}

TokenArray::Place FileTokens::place(int64_t at) const { return {path().string(), at, size() - at}; }

std::vector<FileFingerprint> FileTokens::fingerprints() const {
  std::vector<FileFingerprint> files = {fingerprint_file(file_)};
  for (const auto& companion : companions_) files.push_back(fingerprint_file(companion));
  return files;
}

}  // namespace tokamak
