#include "data/prepare_words.h"

#include "base/error.h"
#include "base/ordered_pipeline.h"
#include "data/prepare_reader.h"
#include "data/source_notes.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

struct WordBatch {
  PrepareBatch input;
  WordCounts words;
};

/// The text that may be taken up to the end of each file, if that is less than all of it.
std::vector<int64_t> text_limits(const std::vector<fs::path>& files, int64_t most_bytes) {
  std::vector<int64_t> limits;
  int64_t total = 0;
  for (const fs::path& file : files) limits.push_back(total += input_size(file));
  if (most_bytes == 0) return {};
  // Sizes may be those of compressed files, so there may be more text than bytes.
  double share = total > 0 ? double(most_bytes) / double(total) : 0;
  for (int64_t& limit : limits) limit = std::max<int64_t>(int64_t(double(limit) * share), 1);
  return limits;
}

void count_batch(const std::vector<fs::path>& files, WordBatch& batch) {
  batch.words = {};
  std::string_view text = batch.input.text;
  for (const PrepareBatch::Part& part : batch.input.parts) {
    if (part.given > 0)
      user_error(
          "[prepare] {}: expected text to train a tokenizer on, got tokens; name the tokenizer that made them with "
          "--vocab",
          files[size_t(part.place.file)].string());
    batch.words.add(text.substr(0, part.text_bytes));
    text.remove_prefix(part.text_bytes);
  }
}

}  // namespace

WordCounts count_words(const std::vector<fs::path>& files, const PrepareOptions& options, const PrepareHooks& hooks) {
  std::vector<int64_t> limits = text_limits(files, options.vocab_bytes);
  int64_t total = 0;
  for (const fs::path& file : files) total += input_size(file);
  PrepareReader reader(files, {.sources = options.sources, .batch_bytes = options.batch_bytes, .text_limits = limits});
  auto fill = [&](WordBatch& batch) { return reader.fill(batch.input); };
  auto count = [&](WordBatch& batch, int) { count_batch(files, batch); };
  OrderedPipeline<WordBatch> pipeline(options.threads, fill, count);
  WordCounts words;
  for (WordBatch batch; pipeline.next(batch);) {
    words.merge(batch.words);
    if (int64_t(words.counts().size()) > options.vocab_words) words.drop_rare(size_t(options.vocab_words / 2));
    tell_notes(options.sources, hooks.note);
    hooks.progress({"counting words", batch.input.bytes_read, total});
    if (hooks.stop()) user_error("[prepare] stopped while words were counted for the tokenizer");
  }
  return words;
}

}  // namespace tokamak
