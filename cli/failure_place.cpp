#include "cli/failure_place.h"

#include <fmt/core.h>

#include <optional>
#include <regex>
#include <set>
#include <stdexcept>
#include <system_error>

#include "base/communication_error.h"
#include "base/error.h"

namespace tokamak {
namespace {

template <typename Type>
bool is_a(const std::exception& error) {
  return dynamic_cast<const Type*>(&error) != nullptr;
}

// Where what names the rank ends: its number's end, or behind its host or device. Nothing: on another host than it is.
std::optional<size_t> end_of_name(const std::string& text, size_t at, size_t number_end, const std::string& name) {
  std::string without_device = name.substr(0, name.rfind(" ("));
  for (const std::string& form : {name, without_device})
    if (text.compare(at, form.size(), form) == 0) return at + form.size();
  if (text.compare(number_end, 4, " on ") == 0) return std::nullopt;
  return number_end;
}

}  // namespace

std::string name_ranks(const std::string& text, const std::vector<std::string>& names) {
  static const std::regex pattern("\\brank ([0-9]{1,7})\\b");
  std::string named;
  std::set<size_t> seen;
  size_t done = 0;
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match) {
    size_t at = size_t(match->position()), rank = std::stoul((*match)[1]);
    if (rank >= names.size() || !seen.insert(rank).second) continue;
    std::optional<size_t> name_end = end_of_name(text, at, at + size_t(match->length()), names[rank]);
    if (!name_end) continue;
    named += text.substr(done, at - done) + names[rank];
    done = *name_end;
  }
  return named + text.substr(done);
}

std::string FailurePlace::of_own(const std::string& cause) const {
  int64_t step = progress_->report().step;
  return fmt::format("{} failed{}: {}", names_[rank_], step > 0 ? fmt::format(" in step {}", step) : "", cause);
}

std::string FailurePlace::of_other(const std::string& why) const {
  std::string all = name_ranks(why, names_);
  int64_t step = progress_->report().step;
  if (step == 0 || all.find(" step ") != all.npos) return all;
  return fmt::format("{}; {} was in step {}", all, names_[rank_], step);
}

bool is_device_failure(const std::exception& error) {
  return is_a<std::runtime_error>(error) && !is_a<UserError>(error) && !is_a<CommunicationError>(error) &&
         !is_a<std::system_error>(error);
}

}  // namespace tokamak
