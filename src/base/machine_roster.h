// Machines that train together, each with an agent that starts its ranks: what agents tell each other, and which
// machines take part when the run starts again. It knows no sockets. Tests: tests/base/machine_roster_test.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tokamak {

/// What an agent says of its machine when it comes.
struct MachineReport {
  std::string host;     // what the machine calls itself
  std::string address;  // by which others reach it
  int port = 0;         // that is free there, for rank 0
  int ranks = 1;        // that it can start
  bool operator==(const MachineReport&) const = default;
};
std::string to_text(const MachineReport& report);
MachineReport parse_machine_report(const std::string& text);

/// One start of all ranks, on those machines that take part.
struct StartOrder {
  struct Member {
    int machine = 0, first_rank = 0, ranks = 0;
    bool operator==(const Member&) const = default;
  };
  std::vector<Member> members;
  int world = 0;
  std::string host;  // where rank 0 serves the ranks' store
  int port = 0;
  std::string token;
  std::map<int, std::string> left_out;  // machines that must not come again, and why
  std::optional<int> status;            // nothing starts: all agents end with it
  const Member* member(int machine) const;
  bool operator==(const StartOrder&) const = default;
};
std::string to_text(const StartOrder& order);
StartOrder parse_start_order(const std::string& text);

/// How a start ended, as the first agent that knows tells the others.
struct StartEnd {
  enum class Kind {
    kEnded,  // rank 0 ended with `status`, and there is nothing to start again
    kDied,   // a rank of `machine` died by itself
    kLost,   // ranks have lost others, or the agent of `machine` is gone
  };
  Kind kind = Kind::kLost;
  int status = 0;
  std::optional<int> machine;  // whose fault it is, where that is known
  std::string cause;
  bool operator==(const StartEnd&) const = default;
};
std::string to_text(const StartEnd& end);
/// Of other texts (the store's own, "rank 2 on node7 is gone", where ranks are machines) an end by the loss of that
/// machine.
StartEnd parse_start_end(const std::string& text);

/// The rank that a failure's message names first; nothing: none.
std::optional<int> blamed_rank(const std::string& message);

/// What the first machine knows of all.
class MachineRoster {
 public:
  explicit MachineRoster(int machines) : machines_(machines) {}

  /// Those that are waited for: not left out, and not given up before.
  std::vector<int> expected() const;
  /// A machine that did not come in time is waited for no more until it has come.
  void give_up(int machine) { given_up_.insert(machine); }
  void came(int machine) { given_up_.erase(machine); }
  /// It has failed, the second time for good: then true.
  bool note_failure(int machine, const std::string& cause);
  const std::map<int, std::string>& left_out() const { return left_out_; }

 private:
  int machines_;
  std::set<int> given_up_;
  std::map<int, int> failures_;
  std::map<int, std::string> left_out_;
};

/// Of those machines that have come the most of which the mesh can be made: `fits` throws a UserError where it cannot
/// be made of so many ranks. Throws that of all of them where none fits. Members alone are filled in. The others wait.
/// What a machine has in memory is also on the next of `last`, those that took part in the start before, in their order
/// (checkpoint/rank_machines.h); so of these wait, as far as that is enough, only ones whose next and whose one before
/// take part: nothing is lost with them. Else, and of new ones, the last wait.
StartOrder choose_machines(const std::map<int, MachineReport>& come, const std::vector<int>& last,
                           const std::function<void(int ranks)>& fits);

}  // namespace tokamak
