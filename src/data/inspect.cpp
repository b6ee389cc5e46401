#include "data/inspect.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/parallel.h"
#include "data/ledger_record.h"
#include "data/marked_tokens.h"
#include "data/passed_over.h"
#include "data/source_notes.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kPieceTokens = int64_t(1) << 18;
constexpr size_t kBeginningBytes = 400;

/// Adds up what several threads have done.
class SharedProgress {
 public:
  SharedProgress(const InspectProgress& tell, int64_t total) : tell_(tell), total_(total) {}

  void add(int64_t bytes) {
    if (!tell_) return;
    std::lock_guard lock(mutex_);
    done_ += bytes;
    tell_(done_, total_);
  }

 private:
  const InspectProgress& tell_;
  int64_t total_;
  std::mutex mutex_;
  int64_t done_ = 0;
};

/// Of the tokens [begin, end) of a TokenShard or a TokenArray.
template <typename Tokens>
TokenStats stats_of(const Tokens& tokens, int64_t begin, int64_t end, const std::optional<int32_t>& separator) {
  TokenStats stats(separator);
  std::vector<int32_t> piece;
  for (int64_t at = begin; at < end; at += kPieceTokens) {
    piece.resize(size_t(std::min(kPieceTokens, end - at)));
    tokens.read(at, piece);
    stats.add_unlearned(std::ranges::count_if(piece, [](int32_t token) { return !is_learned(token); }));
    remove_marks(piece);
    stats.add(piece);
  }
  return stats;
}

TokenStats check_shard(const TokenShard& shard, const TokenShardInfo& info, const TokenShardIndex& index) {
  std::string name = shard.path().string();
  if (shard.size() != info.tokens)
    user_error("[shard] {}: expected the {} tokens of {}, got {}; shard and index do not belong together", name,
               info.tokens, kIndexFile, shard.size());
  shard.verify(info);
  TokenStats stats = stats_of(shard, 0, shard.size(), int32_t(index.end_of_text));
  if (stats.most() >= index.vocab_size || stats.least() < 0)
    user_error("[shard] {}: expected token ids below {}, got {}; shard and vocabulary do not belong together", name,
               index.vocab_size, stats.least() < 0 ? stats.least() : stats.most());
  if (stats.tokens() > 0 && stats.most() != info.max_token)
    user_error("[shard] {}: expected {} as the largest token id, got {}; shard and index do not belong together", name,
               info.max_token, stats.most());
  return stats;
}

/// Runs `read`; what it throws becomes the file's problem.
template <typename Read>
void note_problem(FileReport& file, Read read) {
  try {
    std::error_code error;
    auto bytes = fs::file_size(file.path, error);
    file.bytes = error ? 0 : int64_t(bytes);
    read();
  } catch (const std::exception& error) {
    file.problem = error.what();
  }
}

/// All tokens of an array, on all cores; tells of them in bytes of a file of `bytes`.
TokenStats array_stats(const TokenArray& array, const std::optional<int32_t>& separator, int64_t bytes,
                       SharedProgress& progress) {
  int64_t pieces = (array.size() + kPieceTokens - 1) / kPieceTokens;
  std::vector<TokenStats> stats(static_cast<size_t>(num_threads()), TokenStats(separator));
  std::exception_ptr error;
  std::mutex mutex;
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end, int thread) {
    try {
      for (int64_t piece = begin; piece < end; ++piece) {
        int64_t from = piece * kPieceTokens, to = std::min(from + kPieceTokens, array.size());
        stats[size_t(thread)].append(stats_of(array, from, to, separator));
        progress.add(bytes * (to - from) / array.size());
      }
    } catch (...) {
      std::lock_guard lock(mutex);
      error = std::current_exception();
    }
  });
  if (error) std::rethrow_exception(error);
  TokenStats all(separator);
  for (const TokenStats& part : stats) all.append(part);
  return all;
}

/// One checksum of the fingerprints of all files behind an array: mostly that of the one file.
std::string joined_checksum(const std::vector<FileFingerprint>& files) {
  if (files.size() == 1) return files[0].checksum;
  std::string text;
  for (const FileFingerprint& file : files) text += file.checksum;
  return format_checksum(checksum(std::as_bytes(std::span(text))));
}

void read_documents(Source& source, FileReport& file, SharedProgress& progress) {
  int64_t length = 0, told = 0;
  for (Document document; source.next(document);) {
    if (file.documents.documents == 0 && file.beginning.size() < kBeginningBytes)
      file.beginning += document.text.substr(0, kBeginningBytes - file.beginning.size());
    file.text_bytes += int64_t(document.text.size());
    file.tokens.add(document.tokens);
    length += int64_t(document.text.size() + document.tokens.size());
    if (document.continues) continue;
    file.documents.add(std::exchange(length, 0));
    progress.add(source.bytes_read() - std::exchange(told, source.bytes_read()));
  }
  file.documents.add(length);
}

/// Some formats hold tokens or text: which of them, only their content says.
std::unique_ptr<TokenArray> try_tokens(const fs::path& path, const SourceFormatInfo& format,
                                       const SourceOptions& options) {
  if (!format.tokens) return nullptr;
  if (!format.documents) return open_tokens({path}, options);
  try {
    return open_tokens({path}, options);
  } catch (const UserError&) {
    return nullptr;
  }
}

void inspect_file(FileReport& file, SourceOptions options, const std::optional<int32_t>& separator,
                  SharedProgress& progress) {
  options.notes = std::make_shared<SourceNotes>();
  const SourceFormatInfo& format = format_of(file.path, options);
  file.format = format.name;
  if (std::unique_ptr<TokenArray> array = try_tokens(file.path, format, options)) {
    file.seekable = true;
    file.stored_as = array->stored_as();
    file.checksum = joined_checksum(array->fingerprints());
    file.tokens = array_stats(*array, separator, file.bytes, progress);
  } else {
    read_documents(*open_source(file.path, options), file, progress);
  }
  file.notes = options.notes->take();
  for (const std::string& total : options.notes->totals()) file.notes.push_back(total);
}

}  // namespace

bool FileReport::good() const {
  auto is_warning = [](const std::string& note) { return note.starts_with("warning"); };
  return problem.empty() && std::none_of(notes.begin(), notes.end(), is_warning);
}

int64_t DataReport::damaged() const {
  return std::count_if(files.begin(), files.end(), [](const FileReport& file) { return !file.problem.empty(); });
}

TokenStats DataReport::tokens(std::string_view split) const {
  TokenStats all;
  for (const FileReport& file : files)
    if (file.split == split && file.problem.empty()) all.append(file.tokens);
  return all;
}

DataReport inspect_folder(const fs::path& folder, const InspectProgress& tell) {
  DataReport report{.path = folder.string(), .index = read_token_shard_index(folder), .options = {}, .files = {}};
  report.options.format = "bin";
  const TokenShardIndex& index = *report.index;
  std::vector<const TokenShardInfo*> infos;
  auto list = [&](const char* name, const SplitIndex& split) {
    for (const TokenShardInfo& info : split.shards) {
      infos.push_back(&info);
      report.files.push_back({.path = folder / info.file, .split = name, .format = "bin", .checksum = info.checksum});
    }
  };
  list("train", index.train);
  list("val", index.val);
  size_t shards = infos.size();
  for (const FileChecksum& file : index.tokenizer)
    report.files.push_back({.path = folder / file.file, .format = "tokenizer", .checksum = file.checksum});

  int64_t token_bytes = shard_token_bytes(index.vocab_size);
  std::string stored_as = token_bytes == 2 ? "uint16" : "uint32";
  SharedProgress progress(tell, (index.train.tokens() + index.val.tokens()) * token_bytes);
  parallel_for(int64_t(infos.size()), 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      FileReport& file = report.files[size_t(i)];
      const TokenShardInfo& info = *infos[size_t(i)];
      note_problem(file, [&] { file.tokens = check_shard(TokenShard(file.path), info, index); });
      file.stored_as = file.tokens.unlearned() > 0 ? "marked uint32" : stored_as;
      file.seekable = file.problem.empty();
      progress.add(info.tokens * token_bytes);
    }
  });
  for (size_t i = shards; i < report.files.size(); ++i) {
    FileReport& file = report.files[i];
    note_problem(file, [&] { verify_file(FileReader(file.path), file.checksum, "tokenizer", kLargeFile); });
  }
  return report;
}

DataReport inspect_files(const std::string& input, const SourceOptions& options,
                         const std::optional<int32_t>& separator, const InspectProgress& tell) {
  DataReport report{.path = input, .index = {}, .options = options, .files = {}};
  int64_t total = 0;
  require_finished(input);
  if (fs::exists(fs::path(input) / kLedgerFile))
    user_error("[inspect] expected data, got {}, the folder of a run; `tokamak data ledger {}` tells what it used",
               input, input);
  PassedOver passed_over;
  for (const fs::path& path : find_files(input, options, &passed_over)) {
    std::error_code error;
    auto bytes = fs::file_size(path, error);
    total += error ? 0 : int64_t(bytes);
    report.files.push_back({.path = path});
  }
  if (std::string note = passed_over.describe(input); !note.empty()) report.notes.push_back(note);
  SharedProgress progress(tell, total);
  for (FileReport& file : report.files) note_problem(file, [&] { inspect_file(file, options, separator, progress); });
  return report;
}

std::vector<DataSample> sample_tokens(const DataReport& report, int64_t count, int64_t tokens) {
  std::vector<const FileReport*> files;
  int64_t all = 0;
  for (const FileReport& file : report.files) {
    if (!file.seekable || !file.problem.empty()) continue;
    files.push_back(&file);
    all += file.tokens.tokens();
  }
  std::vector<DataSample> samples;
  for (int64_t i = 0; i < std::min(count, all); ++i) {
    int64_t at = all / count * i;
    auto file = files.begin();
    while (at >= (*file)->tokens.tokens()) at -= (*file++)->tokens.tokens();
    DataSample& sample = samples.emplace_back(DataSample{(*file)->path, at, {}});
    sample.ids.resize(size_t(std::min(tokens, (*file)->tokens.tokens() - at)));
    open_tokens({sample.path}, report.options)->read(at, sample.ids);
    remove_marks(sample.ids);
  }
  return samples;
}

}  // namespace tokamak
