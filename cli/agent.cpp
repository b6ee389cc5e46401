#include "cli/agent.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "backend/cuda/cuda_backend.h"
#include "base/error.h"
#include "base/file.h"
#include "base/machine_roster.h"
#include "base/printable.h"
#include "base/rank_place.h"
#include "base/signals.h"
#include "base/socket.h"
#include "base/store_client.h"
#include "base/store_server.h"
#include "base/system.h"
#include "cli/agent_ranks.h"
#include "cli/end_times.h"
#include "cli/join_watch.h"
#include "cli/machine.h"
#include "cli/restart_budget.h"
#include "cli/run_token.h"
#include "cli/streams.h"
#include "config/json.h"
#include "config/validate.h"
#include "passes/step_mesh.h"

namespace tokamak {
namespace {

constexpr std::chrono::milliseconds kLook{20};
constexpr const char* kOrder = "order";

std::string report_key(int machine) { return fmt::format("machine.{}", machine); }

std::string variable(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? value : otherwise;
}

struct Address {
  std::string host;
  int port = 0;
};

// "host:port"; of IPv6 the last colon counts, and brackets may stand around the host.
Address parse_address(const std::string& text) {
  size_t colon = text.rfind(':');
  std::string host = text.substr(0, colon), port = colon == text.npos ? "" : text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  bool is_number = !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == port.npos;
  if (host.empty() || !is_number || std::stoi(port) > 65535)
    user_error("[agents.address] expected the first machine as host:port, say node0:29400, got '{}'", text);
  return {host, std::stoi(port)};
}

// Where all agents meet for one start. It fails for all when that has ended.
struct Meeting {
  std::unique_ptr<StoreServer> server;  // of the first machine; outlives its client
  std::unique_ptr<StoreClient> client;
};

class Agent {
 public:
  Agent(const RunConfig& run, const AgentOptions& options, int64_t restarts, const std::vector<std::string>& variables)
      : run_(run), options_(options), variables_(variables), address_(parse_address(options.address)),
        roster_(int(options.machines)), budget_(run.train.out, restarts), place_(place()) {}

  int run() {
    while (true) {
      std::optional<StartEnd> end = take_part();
      if (end && end->kind == StartEnd::Kind::kEnded) return end->status;
      if (stop_.requested()) return stopped_status();
      if (end && leads()) note(*end);
      is_first_ = false;
    }
  }

 private:
  bool leads() const { return options_.number == 0; }

  RankPlace place() const {
    RunConfig same = run_;  // on all machines
    same.mesh.interface.clear();
    same.threads = 0;
    RankPlace place{.launcher = "tokamak",
                    .rank = int(options_.number),
                    .world = int(options_.machines),
                    .host = address_.host,
                    .port = address_.port,
                    .token = variable("TOKAMAK_TOKEN", run_token(same, int(options_.machines)))};
    place.join_seconds = std::atof(variable("TOKAMAK_JOIN_SECONDS", std::to_string(place.join_seconds)).c_str());
    return place;
  }

  double seconds_to_come() const { return is_first_ ? place_.join_seconds : double(options_.wait_seconds); }

  // One start; how it ended. Nothing: the machines could not meet.
  std::optional<StartEnd> take_part() {
    Meeting meeting;
    StartOrder order;
    try {
      if (leads()) meeting.server = std::make_unique<StoreServer>(place_.host, place_.port, place_.world, place_.token);
      RankPlace waits = place_;
      waits.join_seconds = seconds_to_come();
      JoinWatch watch(waits, meeting.server.get(), JoinWatch::kMachines);
      meeting.client = join();
      meeting.client->set(report_key(place_.rank), to_text(report(meeting)));
      order = leads() ? give_order(meeting) : parse_start_order(meeting.client->get(kOrder));
    } catch (const CommunicationError& error) {
      StartEnd end = parse_start_end(error.what());
      return leads() || end.machine != 0 ? std::optional(end) : std::nullopt;
    }
    if (order.status) return StartEnd{.kind = StartEnd::Kind::kEnded, .status = *order.status};
    if (auto out = order.left_out.find(place_.rank); out != order.left_out.end() && !leads()) {
      meeting.client.reset();  // which leaves; with an exception under way it would end the run for the others
      user_error("[agents] expected machine {} ({}) to work, but it has failed twice and is left out: {}; see to it",
                 place_.rank, host_name(), out->second);
    }
    StartEnd end = train(order, *meeting.client);
    if (leads()) note_who_came(*meeting.server);
    return end;
  }

  // Also while others trained; they are waited for then.
  void note_who_came(const StoreServer& server) {
    std::vector<int> missing = server.missing();
    for (int machine = 0; machine < place_.world; ++machine)
      if (std::ranges::find(missing, machine) == missing.end()) roster_.came(machine);
  }

  // The store of the start before may still be there, and refuses.
  std::unique_ptr<StoreClient> join() const {
    constexpr double kRefused = 15;  // seconds; who has another token should know soon
    Deadline deadline = deadline_in(seconds_to_come()), refused = deadline_in(kRefused);
    while (true) try {
        return std::make_unique<StoreClient>(
            StoreClient::Options{.host = place_.host,
                                 .port = place_.port,
                                 .rank = place_.rank,
                                 .world = place_.world,
                                 .token = place_.token,
                                 .join_seconds = milliseconds_left(deadline) * 1e-3,
                                 .timeout_seconds = place_.join_seconds + double(options_.wait_seconds)});
      } catch (const UserError&) {
        if (milliseconds_left(std::min(refused, deadline)) == 0) throw;
        std::this_thread::sleep_for(5 * kLook);
      }
  }

  MachineReport report(const Meeting& meeting) const {
    std::string address = meeting.client->address();
    int64_t ranks = options_.ranks;
    if (ranks == 0) ranks = is_gpu_device(run_) ? cuda::device_count() : 1;
    return {.host = host_name(), .address = address, .port = port_of(listen_on(address, 0).get()), .ranks = int(ranks)};
  }

  // Of the first machine: who takes part. What keeps the run from going on ends all agents.
  StartOrder give_order(const Meeting& meeting) {
    StartOrder order;
    try {
      std::map<int, MachineReport> come = wait_for_machines(meeting);
      if (last_) budget_.take(last_->cause, left_one_out_);
      order = choose_machines(come, trained_, [this](int ranks) { check_fit(ranks); });
      trained_.clear();
      for (const StartOrder::Member& member : order.members) trained_.push_back(member.machine);
      int first = order.members[0].machine;
      order.host = first == 0 ? place_.host : come[first].address;
      order.port = come[first].port;
      order.token = random_nonce();
      order.left_out = roster_.left_out();
      tell_start(order, come);
    } catch (const UserError&) {
      meeting.client->set(kOrder, to_text(StartOrder{.status = 1}));
      throw;
    }
    meeting.client->set(kOrder, to_text(order));
    return order;
  }

  std::map<int, MachineReport> wait_for_machines(const Meeting& meeting) {
    Deadline deadline = deadline_in(seconds_to_come());
    std::vector<int> missing;
    for (;; std::this_thread::sleep_for(kLook)) {
      meeting.client->check();
      missing = meeting.server->missing();
      if (milliseconds_left(deadline) == 0) give_up(missing);
      auto is_there = [&](int machine) { return std::ranges::find(missing, machine) == missing.end(); };
      if (std::ranges::all_of(roster_.expected(), is_there)) break;
    }
    std::map<int, MachineReport> come;
    for (int machine = 0; machine < place_.world; ++machine) {
      if (std::ranges::find(missing, machine) != missing.end() || roster_.left_out().contains(machine)) continue;
      roster_.came(machine);
      come[machine] = parse_machine_report(meeting.client->get(report_key(machine)));
    }
    return come;
  }

  // At the first start it is rather a mistake.
  void give_up(const std::vector<int>& missing) {
    if (is_first_)
      user_error("[agents] expected {} machines to come within {} s, got none with --agents.number={}; start it there",
                 place_.world, place_.join_seconds, fmt::join(missing, ", "));
    for (int machine : roster_.expected())
      if (std::ranges::find(missing, machine) != missing.end()) {
        print_to_stderr(fmt::format("machine {} did not come back in {} s (agents.wait_seconds): it is left out\n",
                                    machine, options_.wait_seconds));
        roster_.give_up(machine);
      }
  }

  // UserError where the run has no mesh of so many ranks. It goes on with the slots that it began with.
  void check_fit(int ranks) const {
    RunConfig config = run_;
    std::filesystem::path kept = std::filesystem::path(run_.train.out) / "config.json";
    if (config.mesh.slots == 0 && std::filesystem::exists(kept))
      config.mesh.slots = run_config_from_json(read_file(kept), kept.string()).mesh.slots;
    config.mesh.data = step_mesh(config.mesh, ranks).size(kDataAxis);
    validate(config);
  }

  void tell_start(const StartOrder& order, const std::map<int, MachineReport>& come) const {
    if (!last_ && order.members.size() == come.size()) return;
    std::string why = last_ ? fmt::format(": {}", printable(last_->cause)) : "";
    print_to_stderr(fmt::format("{} on {} of {} machines, {} ranks{}\n",
                                last_ ? "starting again, from the newest good checkpoint," : "starting",
                                order.members.size(), place_.world, order.world, why));
    for (const auto& [machine, report] : come)
      if (!order.member(machine))
        print_to_stderr(fmt::format("machine {} ({}) waits: the mesh has no place for its ranks\n", machine,
                                    printable(report.host)));
  }

  StartEnd train(const StartOrder& order, StoreClient& client) {
    const StartOrder::Member* mine = order.member(place_.rank);
    std::unique_ptr<AgentRanks> ranks =
        mine ? std::make_unique<AgentRanks>(order, *mine, variables_) : std::make_unique<AgentRanks>();
    bool told_to_stop = false, told_of_end = false;
    std::optional<Deadline> late, lost;
    for (;; std::this_thread::sleep_for(kLook)) {
      std::string failure = client.failure();
      ranks->look(!failure.empty());
      if (!failure.empty() && ranks->have_ended()) return parse_start_end(failure);
      if (stop_.requested() && !std::exchange(told_to_stop, true)) ranks->send(SIGTERM);
      if (stop_.requested() && !mine) return {.kind = StartEnd::Kind::kEnded, .status = stopped_status()};
      if (!failure.empty()) {
        if (!std::exchange(told_of_end, true)) ranks->send(SIGTERM), late = deadline_in(seconds_to_save());
        if (milliseconds_left(*late) == 0) ranks->send(SIGKILL);
        continue;
      }
      if (ranks->have_lost_others() && !lost) lost = deadline_in(1);  // whose fault it is should be told first
      if (std::optional<StartEnd> end = end_of(*ranks, order, lost && milliseconds_left(*lost) == 0))
        client.fail(to_text(*end));
    }
  }

  // Ranks that are left have half of the time in which a machine may come back.
  double seconds_to_save() const {
    return std::min(double(end_times::kToSave.count()), double(options_.wait_seconds) / 2);
  }

  // What this agent has to tell the others.
  std::optional<StartEnd> end_of(const AgentRanks& ranks, const StartOrder& order, bool tells_loss) const {
    using Kind = StartEnd::Kind;
    if (std::optional<int> status = ranks.end_of_first()) return StartEnd{.kind = Kind::kEnded, .status = *status};
    if (std::string death = ranks.death(); !death.empty())
      return StartEnd{.kind = Kind::kDied,
                      .machine = place_.rank,
                      .cause = fmt::format("machine {} ({}): {}", place_.rank, host_name(), death)};
    if (!tells_loss) return std::nullopt;
    StartEnd end{.cause = cause_of_end(run_.train.out, "ranks have lost others")};
    if (std::optional<int> rank = blamed_rank(end.cause))
      for (const StartOrder::Member& member : order.members)
        if (*rank >= member.first_rank && *rank < member.first_rank + member.ranks) end.machine = member.machine;
    return end;
  }

  void note(const StartEnd& end) {
    last_ = end;
    left_one_out_ = end.machine && roster_.note_failure(*end.machine, end.cause);
    if (left_one_out_)
      print_to_stderr(
          fmt::format("machine {} has failed twice and is left out: {}\n", *end.machine, printable(end.cause)));
  }

  const RunConfig& run_;
  const AgentOptions& options_;
  const std::vector<std::string>& variables_;
  StopSignal stop_;
  Address address_;
  MachineRoster roster_;  // of the first machine, as are
  RestartBudget budget_;
  std::vector<int> trained_;      // machines of the start before
  std::optional<StartEnd> last_;  // why the run starts again
  bool left_one_out_ = false;     // for that
  RankPlace place_;               // of this machine among all
  bool is_first_ = true;          // meeting
};

}  // namespace

void visit(FieldList& v, AgentOptions& c) {
  v("machines", c.machines, "machines that train together, each with the same command; 1: this one alone", at_least(1));
  v("number", c.number, "of this machine, from 0; the first serves the others", at_least(0));
  v("address", c.address, "where they meet: the first machine and a free port of it, host:port");
  v("ranks", c.ranks, "that are started on this machine; 0: one on each GPU, on the CPU one", at_least(0));
  v("wait_seconds", c.wait_seconds, "that a machine has to come back before the run goes on without it", at_least(1));
}

void validate(const AgentOptions& options) {
  if (options.machines == 1) return;
  if (options.number >= options.machines)
    user_error("[agents.number] expected a number from 0 to {} for {} machines, got {}", options.machines - 1,
               options.machines, options.number);
  parse_address(options.address);
}

int run_agent(const RunConfig& run, const AgentOptions& options, int64_t restarts,
              const std::vector<std::string>& variables) {
  return Agent(run, options, restarts, variables).run();
}

}  // namespace tokamak
