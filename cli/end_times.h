// How long processes of a run live on when it is over: one place, as each of these times counts on another.
#pragma once

#include <chrono>

namespace tokamak::end_times {

/// A rank of a run that has failed, to end by itself; then it says why and ends at once (a GPU may hang).
inline constexpr std::chrono::milliseconds kByItself{1500};
/// A rank that LocalRanks has started and whose leader is gone; longer, so that it can say why before the system ends
/// it.
inline constexpr std::chrono::seconds kWithoutLeader{2};
static_assert(kByItself < kWithoutLeader);
/// Both of them instead, for a rank that saves what the others cannot.
inline constexpr std::chrono::seconds kToSave{60};
/// A leader for the ranks that it has started: of a run that went well, which may still save, and of one that failed.
inline constexpr std::chrono::seconds kForOthers{20}, kForOthersAfterFailure{2};
/// One that was killed, to be gone; the system may not let it go (a file system, a device, a debugger).
inline constexpr std::chrono::seconds kForKilled{2};
/// A rank whose launcher is gone, after SIGTERM.
inline constexpr std::chrono::milliseconds kWithoutLauncher{2500};

}  // namespace tokamak::end_times
