#include "base/machine_roster.h"

#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/error.h"
#include "base/json.h"

namespace tokamak {
namespace {

constexpr int kMostFailures = 2;  // of a machine that is left out then

using Json = nlohmann::json;

Json parsed(const std::string& text) {
  Json json = parse_json(text);
  return json.is_object() ? json : Json::object();
}

std::optional<int> first_number(const std::string& text, const std::regex& pattern) {
  std::smatch found;
  return std::regex_search(text, found, pattern) ? std::optional(std::stoi(found[1])) : std::nullopt;
}

bool has(const std::vector<int>& machines, int machine) {
  return std::ranges::find(machines, machine) != machines.end();
}

// Whether all that it has in memory, its own and copies of the one before, is on others that are chosen, too.
bool takes_nothing_along(int machine, const std::vector<int>& chosen, const std::vector<int>& last) {
  auto place = std::ranges::find(last, machine);
  if (place == last.end()) return true;
  size_t at = size_t(place - last.begin()), count = last.size();
  return has(chosen, last[(at + 1) % count]) && has(chosen, last[(at + count - 1) % count]);
}

std::vector<int>::iterator one_to_wait(std::vector<int>& chosen, const std::vector<int>& last) {
  auto new_ones = [&](int machine) { return !has(last, machine); };
  auto harmless = [&](int machine) { return takes_nothing_along(machine, chosen, last); };
  for (const std::function<bool(int)>& may_wait :
       {std::function<bool(int)>(new_ones), std::function<bool(int)>(harmless)})
    for (auto one = chosen.end(); one != chosen.begin();)
      if (may_wait(*--one)) return one;
  return chosen.end() - 1;
}

StartOrder order_of(const std::vector<int>& chosen, const std::map<int, MachineReport>& come) {
  StartOrder order;
  for (int machine : chosen) {
    int ranks = come.at(machine).ranks;
    order.members.push_back({machine, order.world, ranks});
    order.world += ranks;
  }
  return order;
}

}  // namespace

std::string to_text(const MachineReport& report) {
  return format_json(
      Json{{"host", report.host}, {"address", report.address}, {"port", report.port}, {"ranks", report.ranks}});
}

MachineReport parse_machine_report(const std::string& text) {
  Json json = parsed(text);
  return {.host = json.value("host", ""),
          .address = json.value("address", ""),
          .port = json.value("port", 0),
          .ranks = json.value("ranks", 0)};
}

const StartOrder::Member* StartOrder::member(int machine) const {
  for (const Member& one : members)
    if (one.machine == machine) return &one;
  return nullptr;
}

std::string to_text(const StartOrder& order) {
  Json json = {{"world", order.world}, {"host", order.host}, {"port", order.port}, {"token", order.token}};
  json["members"] = Json::array();
  for (const StartOrder::Member& member : order.members)
    json["members"].push_back({member.machine, member.first_rank, member.ranks});
  json["left_out"] = Json::array();
  for (const auto& [machine, why] : order.left_out) json["left_out"].push_back({machine, why});
  if (order.status) json["status"] = *order.status;
  return format_json(json);
}

StartOrder parse_start_order(const std::string& text) {
  Json json = parsed(text);
  StartOrder order{.world = json.value("world", 0),
                   .host = json.value("host", ""),
                   .port = json.value("port", 0),
                   .token = json.value("token", "")};
  for (const Json& member : json.value("members", Json::array()))
    order.members.push_back({member.at(0).get<int>(), member.at(1).get<int>(), member.at(2).get<int>()});
  for (const Json& one : json.value("left_out", Json::array()))
    order.left_out[one.at(0).get<int>()] = one.at(1).get<std::string>();
  if (json.contains("status")) order.status = json["status"].get<int>();
  return order;
}

std::string to_text(const StartEnd& end) {
  Json json = {{"end", int(end.kind)}, {"status", end.status}, {"cause", end.cause}};
  if (end.machine) json["machine"] = *end.machine;
  return format_json(json);
}

StartEnd parse_start_end(const std::string& text) {
  Json json = parsed(text);
  constexpr std::string_view kRank = "rank ";
  if (!json.contains("end"))
    return {.machine = blamed_rank(text),
            .cause = text.starts_with(kRank) ? "machine " + text.substr(kRank.size()) : text};
  StartEnd end{.kind = StartEnd::Kind(json["end"].get<int>()),
               .status = json.value("status", 0),
               .cause = json.value("cause", "")};
  if (json.contains("machine")) end.machine = json["machine"].get<int>();
  return end;
}

std::optional<int> blamed_rank(const std::string& message) {
  static const std::regex pattern("\\brank ([0-9]{1,7})\\b");
  return first_number(message, pattern);
}

std::vector<int> MachineRoster::expected() const {
  std::vector<int> machines;
  for (int machine = 0; machine < machines_; ++machine)
    if (!left_out_.contains(machine) && !given_up_.contains(machine)) machines.push_back(machine);
  return machines;
}

bool MachineRoster::note_failure(int machine, const std::string& cause) {
  if (++failures_[machine] < kMostFailures) return false;
  left_out_.emplace(machine, cause);
  return true;
}

StartOrder choose_machines(const std::map<int, MachineReport>& come, const std::vector<int>& last,
                           const std::function<void(int ranks)>& fits) {
  std::vector<int> chosen;
  for (const auto& [machine, report] : come) chosen.push_back(machine);
  std::exception_ptr all_do_not;
  for (; !chosen.empty(); chosen.erase(one_to_wait(chosen, last))) try {
      StartOrder order = order_of(chosen, come);
      fits(order.world);
      return order;
    } catch (const UserError&) {
      if (!all_do_not) all_do_not = std::current_exception();
    }
  if (all_do_not) std::rethrow_exception(all_do_not);
  user_error("[agents] expected a machine on which the run can go on, got none: all have failed twice");
}

}  // namespace tokamak
