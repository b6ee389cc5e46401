#include "data/prepare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "data/bpe_trainer.h"
#include "data/tokenizer_files.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

using ProgressFunction = std::function<void(const PrepareProgress&)>;

constexpr size_t kPartBytes = size_t(1) << 20;  // of text, between two reports
constexpr int64_t kPartTokens = int64_t(1) << 18;

void check_options(const PrepareOptions& options) {
  if (!(options.val_fraction >= 0 && options.val_fraction < 1))
    user_error("[prepare] expected a validation fraction of at least 0 and below 1, got {}; the usual is 0.05",
               options.val_fraction);
  int64_t most = std::numeric_limits<int32_t>::max();
  if (options.shard_tokens < 1 || options.shard_tokens > most)
    user_error("[prepare] expected 1 to {} tokens in a shard, got {}; the usual is 100000000", most,
               options.shard_tokens);
  if (options.vocab.empty()) check_vocab_size(options.vocab_size);
}

/// All documents of all inputs, which can be gone through more than once; standard input is kept in memory for that.
class Sources {
 public:
  Sources(const std::vector<std::string>& inputs, const SourceOptions& options) : options_(options) {
    if (inputs.empty())
      user_error("[prepare] expected a text file, a folder, a pattern or - for standard input, got nothing; name one");
    for (const std::string& input : inputs)
      for (const fs::path& path : find_files(input, options)) add(path);
  }

  using Use = std::function<void(std::string_view text, bool is_first_part)>;

  void for_each(const Use& use) const {
    for (const File& file : files_) {
      if (fs::is_regular_file(file.path)) read(file.path, use);
      for (const auto& [text, is_first_part] : file.parts) use(text, is_first_part);
    }
  }

  /// Size of all files, for progress.
  int64_t total_bytes() const { return total_bytes_; }

 private:
  struct File {
    fs::path path;
    std::vector<std::pair<std::string, bool>> parts;  // of what can be read only once
  };

  void add(const fs::path& path) {
    files_.push_back({path, {}});
    File& file = files_.back();
    if (fs::is_regular_file(path)) {
      total_bytes_ += int64_t(fs::file_size(path));
      return;
    }
    read(path, [&](std::string_view text, bool is_first_part) { file.parts.emplace_back(text, is_first_part); });
    if (file.parts.empty())
      user_error("[prepare] expected text in {}, got nothing; pipe text into it",
                 path == "-" ? "standard input" : path.string());
    for (const auto& part : file.parts) total_bytes_ += int64_t(part.first.size());
  }

  void read(const fs::path& path, const Use& use) const {
    std::unique_ptr<Source> source = open_source(path, options_);
    bool is_first_part = true;
    for (Document document; source->next(document); is_first_part = !document.continues)
      use(document.text, is_first_part);
  }

  SourceOptions options_;
  std::vector<File> files_;
  int64_t total_bytes_ = 0;
};

Tokenizer make_tokenizer(const PrepareOptions& options, const Sources& sources, const ProgressFunction& progress) {
  if (!options.vocab.empty()) return load_tokenizer(options.vocab);
  WordCounts words;
  int64_t done = 0;
  sources.for_each([&](std::string_view document, bool) {
    progress({"counting words", done, sources.total_bytes()});
    words.add(document);
    done += int64_t(document.size());
  });
  progress({"training the tokenizer", 0, 0});
  return Tokenizer(train_bpe(words, options.vocab_size));
}

/// All tokens of all documents in a temporary file of int32 that goes with the object, because where validation begins
/// is known only at the end.
class Spool {
 public:
  explicit Spool(const fs::path& folder) : file_(folder / "tokens") {}

  void fill(const Tokenizer& tokenizer, const Sources& sources, const ProgressFunction& progress) {
    Encoder encoder(tokenizer);
    std::vector<int32_t> ids;
    int64_t done = 0;
    auto flush = [&] {
      file_.write(std::as_bytes(std::span(ids)));
      size_ += int64_t(ids.size());
      ids.clear();
    };
    sources.for_each([&](std::string_view document, bool is_first_part) {
      if (is_first_part) {
        starts_.push_back(size_ + int64_t(ids.size()));
        if (starts_.size() > 1) ids.push_back(tokenizer.end_of_text());
      }
      for (size_t at = 0; at < document.size();) {
        size_t next = encoder.append_part(document, at, at + kPartBytes, ids);
        done += int64_t(next - at);
        at = next;
        if (int64_t(ids.size()) < kPartTokens) continue;
        flush();
        progress({"encoding", done, sources.total_bytes()});
      }
    });
    flush();
    tokens_ = MappedFile(file_.temporary_path());
  }

  int64_t size() const { return size_; }
  const std::vector<int64_t>& starts() const { return starts_; }
  std::span<const int32_t> tokens() const {
    return {reinterpret_cast<const int32_t*>(tokens_.bytes().data()), size_t(size_)};
  }

 private:
  AtomicFile file_;  // never committed
  MappedFile tokens_;
  int64_t size_ = 0;
  std::vector<int64_t> starts_;  // of documents, each (but the first) with the marker before it
};

/// Bytes of text that each token stands for; none for markers.
std::vector<int64_t> text_lengths(const Vocabulary& vocabulary) {
  std::vector<int64_t> lengths;
  for (const std::string& token : vocabulary.tokens) lengths.push_back(int64_t(token.size()));
  for (int32_t id : vocabulary.special) lengths[size_t(id)] = 0;
  return lengths;
}

/// Writes shards under temporary names and collects what makes them visible.
class OutputFolder {
 public:
  OutputFolder(const PrepareOptions& options, const Tokenizer& tokenizer, const ProgressFunction& progress)
      : options_(options), tokenizer_(tokenizer), lengths_(text_lengths(tokenizer.vocabulary())), progress_(progress) {}

  SplitIndex write_split(const char* name, std::span<const int32_t> tokens) {
    SplitIndex split;
    while (!tokens.empty()) {
      auto part = tokens.first(std::min(tokens.size(), size_t(options_.shard_tokens)));
      fs::path path = options_.out / fmt::format("{}_{:06}.bin", name, split.shards.size());
      ShardWriter& writer =
          shards_.emplace_back(path, int64_t(part.size()), shard_token_bytes(tokenizer_.vocab_size()));
      for (size_t at = 0; at < part.size(); at += size_t(kPartTokens)) {
        auto ids = part.subspan(at, std::min(part.size() - at, size_t(kPartTokens)));
        writer.append(ids);
        for (int32_t id : ids) split.text_bytes += lengths_[size_t(id)];
        written_ += int64_t(ids.size());
        progress_({"writing shards", written_, 0});
      }
      split.shards.push_back(writer.finish());
      tokens = tokens.subspan(part.size());
    }
    return split;
  }

  /// Gives all files their names, the index last. From here on only a crash can leave the folder without an index.
  void publish(const ShardIndex& index) {
    std::vector<AtomicFile> tokenizer = stage_tokenizer(tokenizer_.vocabulary(), options_.out);
    AtomicFile index_file(options_.out / kIndexFile);
    index_file.write(format_shard_index(index));
    index_file.sync();
    std::set<std::string> unused = old_shards();
    std::error_code error;
    if (fs::remove(options_.out / kIndexFile, error); error)
      file_error("replace", options_.out / kIndexFile, error.value());
    for (AtomicFile& file : tokenizer) file.commit();
    for (ShardWriter& shard : shards_) shard.commit();
    index_file.commit();
    for (const SplitIndex* split : {&index.train, &index.val})
      for (const ShardInfo& shard : split->shards) unused.erase(shard.file);
    for (const std::string& file : unused) fs::remove(options_.out / file, error);  // failing costs only space
  }

 private:
  /// The shards of an earlier run in this folder.
  std::set<std::string> old_shards() const {
    std::set<std::string> files;
    if (!fs::exists(options_.out / kIndexFile)) return files;
    try {
      ShardIndex old = read_shard_index(options_.out);
      for (const SplitIndex* split : {&old.train, &old.val})
        for (const ShardInfo& shard : split->shards)
          if (fs::path(shard.file).filename() == shard.file) files.insert(shard.file);
    } catch (const UserError&) {
      // A damaged index names nothing that could be removed safely.
    }
    return files;
  }

  const PrepareOptions& options_;
  const Tokenizer& tokenizer_;
  std::vector<int64_t> lengths_;
  const ProgressFunction& progress_;
  std::vector<ShardWriter> shards_;
  int64_t written_ = 0;
};

}  // namespace

int64_t split_point(int64_t total, const std::vector<int64_t>& starts, double val_fraction) {
  int64_t val = int64_t(std::llround(double(total) * val_fraction));
  if (val == 0) return total;
  int64_t mark = total - val;
  auto after = std::lower_bound(starts.begin(), starts.end(), mark);
  int64_t best = mark, distance = val / 2 + 1;
  auto consider = [&](int64_t start) {
    if (start > 0 && std::abs(start - mark) < distance) {
      best = start;
      distance = std::abs(start - mark);
    }
  };
  if (after != starts.end()) consider(*after);
  if (after != starts.begin()) consider(*(after - 1));
  return best;
}

ShardIndex prepare(const PrepareOptions& options, const ProgressFunction& progress_or_none) {
  ProgressFunction progress = progress_or_none ? progress_or_none : [](const PrepareProgress&) {};
  check_options(options);
  Sources sources(options.inputs, options.sources);
  make_folder(options.out);
  Spool spool(options.out);  // first of all: it shows whether the folder can be written
  Tokenizer tokenizer = make_tokenizer(options, sources, progress);

  ShardIndex index;
  index.vocab_size = tokenizer.vocab_size();
  index.end_of_text = tokenizer.end_of_text();
  spool.fill(tokenizer, sources, progress);
  if (spool.size() == 0)
    user_error(
        "[prepare] expected text in the documents, got only empty ones; check the input and the name of the field");

  int64_t split = split_point(spool.size(), spool.starts(), options.val_fraction);
  OutputFolder output(options, tokenizer, progress);
  index.train = output.write_split("train", spool.tokens().first(size_t(split)));
  index.val = output.write_split("val", spool.tokens().subspan(size_t(split)));
  index.train.documents =
      std::lower_bound(spool.starts().begin(), spool.starts().end(), split) - spool.starts().begin();
  index.val.documents = int64_t(spool.starts().size()) - index.train.documents;
  output.publish(index);
  return index;
}

}  // namespace tokamak
