#include "cli/join_watch.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "base/signals.h"
#include "base/socket.h"
#include "cli/ranks.h"
#include "cli/streams.h"

namespace tokamak {
namespace {

// "1, 3, 5 and 20 more"
std::string list(const std::vector<int>& ranks) {
  constexpr size_t kShown = 16;
  std::span<const int> shown = std::span(ranks).first(std::min(ranks.size(), kShown));
  std::string more = ranks.size() > kShown ? fmt::format(" and {} more", ranks.size() - kShown) : "";
  return fmt::format("{}{}", fmt::join(shown, ", "), more);
}

void tell(const RankPlace& place, const StoreServer* store, Deadline end, const JoinWatch::Words& words) {
  std::vector<int> missing = store ? store->missing() : std::vector<int>();
  print_to_stderr(fmt::format("{}waiting until all {} {} have come to port {} of {}{}{}; for {} s more ({})\n",
                              rank_prefix(), place.world, words.who, place.port, place.host,
                              missing.empty() ? "" : "; not there yet: ", list(missing), milliseconds_left(end) / 1000,
                              words.limit));
}

}  // namespace

JoinWatch::JoinWatch(const RankPlace& place, const StoreServer* store, const Words& words)
    : thread_([=](const std::stop_token& joined) {
        constexpr auto kTick = std::chrono::milliseconds(50);
        constexpr double kFirstPause = 3, kLongestPause = 30;
        Deadline end = deadline_in(place.join_seconds), next = deadline_in(kFirstPause);
        for (double pause = kFirstPause; !joined.stop_requested(); std::this_thread::sleep_for(kTick)) {
          if (int status = stopped_status()) std::_Exit(status);
          if (milliseconds_left(next) > 0) continue;
          tell(place, store, end, words);
          next = deadline_in(pause);
          pause = std::min(2 * pause, kLongestPause);
        }
      }) {}

}  // namespace tokamak
