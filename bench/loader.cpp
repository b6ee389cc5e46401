// How fast the loader is, from page cache: tokens of .bin shards in shuffled order, text that is encoded as it is read,
// and the memory that it takes on a file far larger than memory. Files are made in a temporary folder.
// Usage: bench_loader [TEXT VOCABULARY]: a plain text file and the folder of a tokenizer's files for the second part.
#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "base/random.h"
#include "base/system.h"
#include "data/loader.h"
#include "data/open_source.h"
#include "data/text_dataset.h"
#include "data/token_dataset.h"
#include "data/token_shard.h"
#include "data/tokenizer_files.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kContext = 1024;
constexpr int64_t kBatch = 64;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Tokens a second through next().
double measure(std::shared_ptr<const Corpus> corpus, int64_t workers, double seconds) {
  Loader loader(corpus, {.batch = kBatch, .vocab_size = 50257, .workers = workers, .prefetch = 4 + workers});
  Batch batch;
  for (int64_t i = 0; i < 4 + workers; ++i) loader.next(batch);  // what was made ahead counts not
  auto begin = std::chrono::steady_clock::now();
  int64_t tokens = 0;
  while (seconds_since(begin) < seconds) {
    loader.next(batch);
    tokens += int64_t(batch.tokens.size());
  }
  return double(tokens) / seconds_since(begin);
}

std::shared_ptr<const Corpus> corpus_of(std::vector<std::shared_ptr<const Dataset>> datasets) {
  std::vector<double> weights(datasets.size(), 1.0);
  return std::make_shared<const Corpus>(std::move(datasets), weights, kContext, 1);
}

std::shared_ptr<const Dataset> tokens_of(const std::vector<fs::path>& files, const char* format) {
  return make_token_dataset("bench", open_tokens(files, {.format = format}), kContext);
}

void write_shard(const fs::path& path, int64_t tokens) {
  std::vector<int32_t> ids(size_t(tokens), 0);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = int32_t(philox4x32(1, i)[0] % 50257);
  TokenShardWriter writer(path, tokens, 2);
  writer.append(ids);
  writer.finish();
  writer.commit();
}

void bench_bin(const fs::path& folder) {
  std::vector<fs::path> files = {folder / "a.bin", folder / "b.bin"};
  for (const fs::path& file : files) write_shard(file, 50'000'000);
  auto one = corpus_of({tokens_of(files, "bin")});
  auto two = corpus_of({tokens_of({files[0]}, "bin"), tokens_of({files[1]}, "bin")});
  for (int64_t workers : {0, 1, 2}) {
    fmt::print("{:<44} {:>8.1f} M tokens/s\n", fmt::format(".bin, shuffled, {} workers", workers),
               measure(one, workers, 2) * 1e-6);
    fmt::print("{:<44} {:>8.1f} M tokens/s\n", fmt::format("mixture of two, {} workers", workers),
               measure(two, workers, 2) * 1e-6);
  }
}

void bench_text(const fs::path& text, const fs::path& vocabulary) {
  auto tokenizer = std::make_shared<const Tokenizer>(load_tokenizer(vocabulary));
  std::ifstream file(text);
  std::string content(std::istreambuf_iterator<char>(file), {});
  // The encoder alone, in pieces of about a window with one memory of words, as the loader has it.
  Encoder encoder(*tokenizer);
  std::vector<int32_t> ids;
  auto begin = std::chrono::steady_clock::now();
  encoder.append(content, ids);
  double alone = double(ids.size()) / seconds_since(begin);
  fmt::print("{:<44} {:>8.2f} M tokens/s\n", "encoder alone, one thread, in order", alone * 1e-6);
  auto corpus = corpus_of({open_text_dataset({text.string(), {text}, kContext, 0}, tokenizer)});
  for (int64_t workers : {0, 1, 2}) {
    double rate = measure(corpus, workers, 3);
    fmt::print("{:<44} {:>8.2f} M tokens/s = {:.2f} of the encoder alone\n",
               fmt::format("text encoded on the fly, {} workers", workers), rate * 1e-6, rate / alone);
  }
}

void bench_memory(const fs::path& folder) {
  for (int64_t gigabytes : {1, 200}) {
    fs::path path = folder / fmt::format("sparse{}.u16", gigabytes);
    std::ofstream(path).close();
    fs::resize_file(path, uintmax_t(gigabytes) * 1'000'000'000);
    auto corpus = corpus_of({tokens_of({path}, "raw")});
    int64_t before = resident_bytes();
    double rate = measure(corpus, 2, 5);
    fmt::print("{:<44} {:>8.1f} M tokens/s, resident memory grew by {:.1f} MB\n",
               fmt::format("sparse raw file of {} GB, 2 workers", gigabytes), rate * 1e-6,
               double(resident_bytes() - before) * 1e-6);
    fs::remove(path);
  }
}

}  // namespace
}  // namespace tokamak

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  fs::path folder = fs::temp_directory_path() / fmt::format("bench_loader_{}", ::getpid());
  fs::create_directories(folder);
  fmt::print("batches of {} x {} tokens\n", tokamak::kBatch, tokamak::kContext);
  tokamak::bench_bin(folder);
  tokamak::bench_memory(folder);
  if (argc > 2) tokamak::bench_text(argv[1], argv[2]);
  fs::remove_all(folder);
}
