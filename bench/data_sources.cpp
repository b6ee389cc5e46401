// Tokens read per second from page cache in shuffled windows of 1025 tokens, by two threads, for each format that is
// read by place: by the clock, and as two cores would give it that do nothing else (from the threads' CPU time).
#include <fmt/core.h>
#include <sys/resource.h>

#include <chrono>
#include <thread>

#include "base/random.h"
#include "base/system.h"
#include "bench/data_files.h"
#include "data/open_source.h"
#include "data/permutation.h"
#include "tests/support/temporary_folder.h"

using namespace tokamak;

namespace {

constexpr int64_t kTokens = 100'000'000, kWindow = 1025, kThreads = 2;
constexpr double kSeconds = 1.0;  // of each of the measurements, the best of which counts
constexpr int kMeasurements = 3;

struct Rate {
  double clock = 0;  // tokens per second
  double cpu = 0;    // tokens per second of CPU time, times kThreads
};

double seconds(const timeval& time) { return double(time.tv_sec) + 1e-6 * double(time.tv_usec); }

double thread_cpu_seconds() {
  rusage usage;
  ::getrusage(RUSAGE_THREAD, &usage);
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Ids as a text has them, some far more frequent than others.
std::vector<int32_t> make_ids() {
  std::vector<int32_t> ids(kTokens);
  for (size_t i = 0; i < ids.size(); ++i) {
    float u = uniform_float(philox4x32(1, i)[0]);
    ids[i] = int32_t(50'257 * u * u * u);
  }
  return ids;
}

Rate measure(const TokenArray& tokens, uint64_t epoch) {
  using Clock = std::chrono::steady_clock;
  int64_t windows = tokens.size() / kWindow;
  Permutation order(windows, 1, epoch);
  std::vector<double> cpu(kThreads);
  std::vector<int64_t> read(kThreads);
  Clock::time_point begin = Clock::now();
  auto work = [&](int64_t thread) {
    std::vector<int32_t> out(kWindow);
    for (int64_t i = thread; Clock::now() - begin < std::chrono::duration<double>(kSeconds); i += kThreads) {
      tokens.read(order(i % windows) * kWindow, out);
      read[size_t(thread)] += kWindow;
    }
    cpu[size_t(thread)] = thread_cpu_seconds();
  };
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < kThreads; ++t) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();
  double elapsed = std::chrono::duration<double>(Clock::now() - begin).count();
  double total = double(read[0] + read[1]);
  return {total / elapsed, total / (cpu[0] + cpu[1]) * kThreads};
}

/// Opens the file, reads it once so that it is in the page cache, and measures.
void report(const TokenFileKind& kind, const std::filesystem::path& path) {
  auto begin = std::chrono::steady_clock::now();
  auto tokens = open_tokens({path}, {});
  double opening = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::vector<int32_t> piece(1'000'000);
  for (int64_t at = 0; at < kTokens; at += int64_t(piece.size())) tokens->read(at, piece);
  Rate best;
  for (int i = 0; i < kMeasurements; ++i) {
    Rate rate = measure(*tokens, uint64_t(i));
    best = {std::max(best.clock, rate.clock), std::max(best.cpu, rate.cpu)};
  }
  fmt::print("{:<26}{:>10.0f}{:>12.0f}{:>12.1f}{:>12.0f}\n", kind.name, best.clock / 1e6, best.cpu / 1e6, opening * 1e3,
             double(resident_bytes()) / 1e6);
}

}  // namespace

int main() {
  TemporaryFolder folder;
  fmt::print("million tokens/s of windows of {} from {} million uint16, {} threads, best of {}\n", kWindow,
             kTokens / 1'000'000, kThreads, kMeasurements);
  fmt::print("{:<26}{:>10}{:>12}{:>12}{:>12}\n", "format", "by clock", "by CPU time", "open, ms", "RSS, MB");
  for (const TokenFileKind& kind : token_file_kinds()) {
    std::filesystem::path path = folder / ("tokens" + kind.ending);
    kind.write(path, make_ids());
    report(kind, path);
    std::filesystem::remove(path);
  }
}
