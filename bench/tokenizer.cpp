// Speed of encoding and of training a vocabulary. Without arguments: a table for ../shared/data, where that is. For
// bench/peers_tokenizer.py, one line of: what, tokens, bytes, seconds, CPU seconds of all threads:
//   bench_tokenizer encode VOCAB FILE THREADS
//   bench_tokenizer train SIZE FILE THREADS      a line after counting words, one after merging
#include <fmt/core.h>
#include <time.h>

#include <filesystem>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/file.h"
#include "data/bpe_trainer.h"
#include "data/tokenizer_files.h"

using namespace tokamak;

namespace {

double seconds(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

/// Wall and CPU time of the process since it was made.
struct Stopwatch {
  double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
  void print(std::string_view what, size_t tokens, size_t bytes) const {
    fmt::print("{:<7}{:>9}{:>11}{:>10.4f}{:>10.4f}\n", what, tokens, bytes, seconds(CLOCK_MONOTONIC) - wall,
               seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
  }
};

/// The text in `count` parts that begin where words of every pattern do: at a space after something else.
std::vector<std::string_view> cut(std::string_view text, size_t count) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0, i = 1; i <= count; ++i) {
    size_t end = std::max(begin, text.size() * i / count);
    while (end < text.size() && !(text[end] == ' ' && uint8_t(text[end - 1]) > ' ' && uint8_t(text[end - 1]) < 0x7F))
      ++end;
    parts.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return parts;
}

template <typename Body>
void on_threads(size_t count, Body body) {
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < count; ++i) threads.emplace_back([&, i] { body(i); });
}

void encode(const std::string& vocab, std::string_view text, size_t threads) {
  Tokenizer tokenizer = load_tokenizer(vocab);
  auto parts = cut(text, threads);
  std::vector<size_t> tokens(threads);
  Stopwatch watch;
  on_threads(threads, [&](size_t i) {
    Encoder encoder(tokenizer);
    std::vector<int32_t> ids;
    for (size_t at = 0; at < parts[i].size();) {
      ids.clear();
      at = encoder.append_part(parts[i], at, at + (size_t(1) << 20), ids);
      tokens[i] += ids.size();
    }
  });
  watch.print("encode", std::reduce(tokens.begin(), tokens.end()), text.size());
}

void train(int64_t size, std::string_view text, size_t threads) {
  auto parts = cut(text, threads);
  std::vector<WordCounts> counts(threads);
  Stopwatch watch;
  on_threads(threads, [&](size_t i) { counts[i].add(parts[i]); });
  for (size_t i = 1; i < threads; ++i) counts[0].merge(counts[i]);
  watch.print("count", counts[0].counts().size(), text.size());
  watch.print("train", train_bpe(counts[0], size).tokens.size(), text.size());
}

/// What `make bench` shows.
void table(const std::filesystem::path& data) {
  std::filesystem::path file = data / "wikitext-2/train.txt", vocab = data / "gpt2";
  if (!std::filesystem::exists(file) || !std::filesystem::exists(vocab)) {
    fmt::print("skipped: needs {} and {}\n", file.string(), vocab.string());
    return;
  }
  std::string text = read_file(file);
  for (size_t threads : {1, 2}) {
    fmt::print("{} threads\n{:<7}{:>9}{:>11}{:>10}{:>10}\n", threads, "", "tokens", "bytes", "seconds", "CPU");
    encode(vocab.string(), text, threads);
    train(32000, text, threads);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  if (args.empty()) {
    table("../shared/data");
  } else if (args.size() == 4 && args[0] == "encode") {
    encode(args[1], read_file(args[2]), std::stoul(args[3]));
  } else if (args.size() == 4 && args[0] == "train") {
    train(std::stoll(args[1]), read_file(args[2]), std::stoul(args[3]));
  } else {
    fmt::print(stderr, "usage: bench_tokenizer [encode VOCAB FILE THREADS | train SIZE FILE THREADS]\n");
    return 2;
  }
}
