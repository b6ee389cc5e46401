#include "exec/measure_links.h"

#include <algorithm>
#include <array>
#include <functional>

namespace tokamak {
namespace {

constexpr int kCalls = 4;  // timed together: ranks do not begin at the same moment
constexpr int kTimes = 3;

// The median, after one that warms up; recorded, as in a step, where the backend can.
double seconds_of(Backend& backend, const std::function<void()>& call) {
  auto calls = [&] {
    for (int i = 0; i < kCalls; ++i) call();
  };
  calls();
  std::unique_ptr<Recording> recording = backend.record(calls);
  auto again = [&] { recording ? recording->replay() : calls(); };
  again();
  std::array<double, kTimes> seconds{};
  for (double& s : seconds) s = backend.time(again) / kCalls;
  std::nth_element(seconds.begin(), seconds.begin() + kTimes / 2, seconds.end());
  return seconds[kTimes / 2];
}

}  // namespace

LinkSeconds measure_links(Backend& backend, Communicator& ranks) {
  constexpr auto kElement = int64_t(sizeof(float));
  std::unique_ptr<Memory> memory = backend.allocate(kLargeMessage);
  std::vector<std::byte> zeros(size_t(kLargeMessage), std::byte{0});
  backend.copy_in(memory->data(), zeros.data(), kLargeMessage);
  auto* data = static_cast<std::byte*>(memory->data());
  Queue queue = backend.queue(0);
  auto reduce = [&](int64_t bytes) {
    return seconds_of(
        backend, [&, bytes] { ranks.all_reduce(data, data, bytes / kElement, DType::kF32, Reduction::kSum, queue); });
  };
  int64_t piece = kLargeMessage / kElement / ranks.size();
  auto gather = [&] { ranks.all_gather(data + ranks.rank() * piece * kElement, data, piece, DType::kF32, queue); };
  return {reduce(kSmallMessage), reduce(kLargeMessage), seconds_of(backend, gather)};
}

// seconds = fixed + sent / bandwidth; of n ranks each sends (n - 1) / n of what it gathers, and twice that of what it
// reduces.
Target with_links(Target target, int64_t ranks, const LinkSeconds& seconds) {
  if (ranks < 2 || seconds.large_reduce <= seconds.small_reduce) return target;
  double others = double(ranks - 1) / double(ranks);
  double sent_small = 2 * others * double(kSmallMessage), sent_large = 2 * others * double(kLargeMessage);
  double beyond_small = (sent_large - sent_small) / (seconds.large_reduce - seconds.small_reduce);
  target.link_bandwidth = std::max(beyond_small, sent_large / seconds.large_reduce);  // where nothing is fixed
  target.link_seconds = std::max(seconds.small_reduce - sent_small / target.link_bandwidth, 0.0);
  if (seconds.large_gather > target.link_seconds)
    target.gather_share = sent_large / 2 / (seconds.large_gather - target.link_seconds) / target.link_bandwidth;
  return target;
}

}  // namespace tokamak
