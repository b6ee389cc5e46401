#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "config/config.h"
#include "data/corpus.h"
#include "data/data_path.h"
#include "data/open_source.h"
#include "data/passed_over.h"
#include "data/source_notes.h"
#include "data/sources/compression.h"
#include "data/split_names.h"
#include "data/text_dataset.h"
#include "data/token_dataset.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

std::string read_begin(const fs::path& path) {
  FileReader file(path);
  std::string begin(size_t(std::min<int64_t>(file.size(), 16)), '\0');
  file.read(0, std::as_writable_bytes(std::span(begin)));
  return begin;
}

/// Opens the entries of one key.
class Opener {
 public:
  Opener(const RunConfig& config, std::shared_ptr<const Tokenizer> tokenizer)
      : context_(config.model.context), tokenizer_(std::move(tokenizer)) {
    options_.format = config.data.format;
    options_.token_type = config.data.token_type;
    options_.text_field = config.data.field;
    options_.notes = std::make_shared<SourceNotes>();
  }

  std::shared_ptr<const Dataset> open_files(const std::string& path, int64_t window_bytes) {
    std::vector<fs::path> files = find(path);
    files_.insert(files_.end(), files.begin(), files.end());
    bool text = is_text(path, files.front());
    for (const fs::path& file : files) {
      if (is_text(path, file) == text) continue;
      user_error("[data] expected files of tokens or of text in {}, got both: {} and {}; name them as two entries",
                 path, files.front().string(), file.string());
    }
    if (!text) return make_token_dataset(path, open_tokens(files, options_), context_);
    if (!tokenizer_)
      user_error(
          "[data] expected a tokenizer for the text of {}, got none; name the folder of its files with "
          "--data.tokenizer (--tokenizer of `eval`), or make a vocabulary with `tokamak prepare`",
          path);
    return open_text_dataset({path, files, context_, window_bytes}, tokenizer_);
  }

  /// What was noticed meanwhile.
  std::vector<std::string> notes() const {
    std::vector<std::string> notes = options_.notes->take();
    if (std::string warning = pooled_splits_warning(files_); !warning.empty()) notes.push_back(warning);
    for (const std::string& total : options_.notes->totals()) notes.push_back(total);
    return notes;
  }

 private:
  std::vector<fs::path> find(const std::string& path) const {
    require_exists(path);
    if (fs::path database = fs::path(path) / "data.mdb"; fs::exists(database)) return {database};  // a folder of LMDB's
    PassedOver passed_over;
    std::vector<fs::path> files = find_files(path, options_, &passed_over);
    if (std::string text = passed_over.describe(path); !text.empty()) note(options_, "passed over", text);
    // Folders of shards hold validation data as well.
    if (fs::is_directory(path))
      for (const fs::path& file : files)
        if (format_of(file, options_).tokens)
          user_error(
              "[data] expected {} in the folder {}, or only text, got {} ({}) without it; run `tokamak prepare`, or "
              "name the files of tokens themselves, such as {}",
              kIndexFile, path, file.string(), format_of(file, options_).name, (fs::path(path) / "*train*").string());
    return files;
  }

  bool is_text(const std::string& path, const fs::path& file) const {
    const SourceFormatInfo& format = format_of(file, options_);
    if (format.tokens) return false;
    if (format.name == "text" && !is_named_compressed(file)) {
      if (options_.format == "auto") look_at_text(file);
      return true;
    }
    user_error(
        "[data] expected a folder made by `tokamak prepare`, tokens or plain text as data, got {} ({}{}), in which no "
        "place can be found without reading all before it; run `tokamak prepare {}` and train on the folder it makes",
        file.string(), format.name, is_named_compressed(file) ? ", compressed" : "", path);
  }

  void look_at_text(const fs::path& file) const {
    if (is_compressed(read_begin(file)))
      user_error("[data] {}: expected text, got compressed bytes; unpack it, or run `tokamak prepare` on it",
                 file.string());
    look_ahead(file, options_);
  }

  int64_t context_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  SourceOptions options_;
  std::vector<fs::path> files_;  // of all entries so far
};

void check_vocabulary(const Corpus& corpus, int64_t vocab) {
  int64_t needed = corpus.needed_vocab();
  if (needed > vocab)
    user_error(
        "[data] the model's vocabulary is too small for the data: expected at least {}, got {}; set model.vocab to "
        "{} (or 0 for the data's), or prepare the data with a smaller vocabulary",
        needed, vocab, needed);
}

/// Without weights each dataset counts by its size, as if they were one.
std::vector<double> weights_of(const std::vector<DataPath>& paths, const Corpus::Datasets& datasets) {
  std::vector<double> weights;
  for (size_t i = 0; i < paths.size(); ++i) weights.push_back(paths[i].weight.value_or(double(datasets[i]->windows())));
  return weights;
}

/// Entries without weights are to have the shares of their sizes, however small; a run goes on with the block that it
/// began with.
int64_t block_of(const std::vector<DataPath>& paths, const std::vector<double>& weights, const DataRecord* began) {
  if (began) return began->block_size();
  return paths.front().weight ? kMixtureBlock : mixture_block(weights);
}

const SplitIndex& validation_split(const TokenShardIndex& index, bool named) {
  return named && index.val.tokens() == 0 ? index.train : index.val;
}

}  // namespace

Corpus open_training_data(const RunConfig& config, std::shared_ptr<const Tokenizer> tokenizer, const DataRecord* began,
                          bool verify) {
  Opener opener(config, std::move(tokenizer));
  std::vector<DataPath> paths = parse_data_paths(config.data.path, "data.path");
  Corpus::Datasets datasets;
  for (const DataPath& path : paths) {
    if (is_prepared(path.path)) {
      TokenShardIndex index = read_token_shard_index(path.path);
      datasets.push_back(open_prepared(path.path, index, index.train, config.model.context, verify));
    } else {
      size_t i = datasets.size();
      datasets.push_back(
          opener.open_files(path.path, began && i < began->datasets.size() ? began->datasets[i].window_bytes : 0));
    }
  }
  std::vector<double> weights = weights_of(paths, datasets);
  Corpus corpus(datasets, weights, config.model.context, uint64_t(config.train.seed), block_of(paths, weights, began));
  check_vocabulary(corpus, config.model.vocab);
  corpus.set_notes(opener.notes());
  return corpus;
}

std::optional<Corpus> open_validation_data(const RunConfig& config, std::shared_ptr<const Tokenizer> tokenizer,
                                           bool verify) {
  Opener opener(config, std::move(tokenizer));
  bool named = !config.data.val_path.empty();
  std::vector<DataPath> paths =
      named ? parse_data_paths(config.data.val_path, "data.val_path") : parse_data_paths(config.data.path, "data.path");
  std::vector<DataPath> kept;
  Corpus::Datasets datasets;
  for (const DataPath& path : paths) {
    if (is_prepared(path.path)) {
      TokenShardIndex index = read_token_shard_index(path.path);
      const SplitIndex& split = validation_split(index, named);
      if (!named && split.tokens() <= config.model.context) continue;
      datasets.push_back(open_prepared(path.path, index, split, config.model.context, verify));
    } else {
      if (!named) continue;
      datasets.push_back(opener.open_files(path.path, 0));
    }
    kept.push_back(path);
  }
  if (datasets.empty()) return std::nullopt;
  std::vector<double> weights = weights_of(kept, datasets);
  Corpus corpus(datasets, weights, config.model.context, uint64_t(config.train.seed), block_of(kept, weights, nullptr));
  check_vocabulary(corpus, config.model.vocab);
  corpus.set_notes(opener.notes());
  return corpus.sequential();
}

std::vector<std::string> checksum_warnings(const DataConfig& config) {
  std::vector<std::string> warnings;
  for (const DataPath& path : parse_data_paths(config.path, "data.path"))
    if (is_prepared(path.path) && !read_token_shard_index(path.path).sealed)
      warnings.push_back(
          fmt::format("warning: {} has an index of an earlier version, without checksums of itself and of the "
                      "tokenizer; `tokamak prepare` makes one with them",
                      path.path));
  return warnings;
}

}  // namespace tokamak
