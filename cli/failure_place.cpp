#include "cli/failure_place.h"

#include <fmt/core.h>

#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "base/communication_error.h"
#include "base/error.h"
#include "base/machine_roster.h"

namespace tokamak {
namespace {

template <typename Type>
bool is_a(const std::exception& error) {
  return dynamic_cast<const Type*>(&error) != nullptr;
}

}  // namespace

std::string FailurePlace::of_own(const std::string& cause) const {
  int64_t step = progress_->report().step;
  return fmt::format("{} failed{}: {}", names_[rank_], step > 0 ? fmt::format(" in step {}", step) : "", cause);
}

std::string FailurePlace::of_other(std::string why) const {
  if (std::optional<int> blamed = blamed_rank(why); blamed && size_t(*blamed) < names_.size()) {
    const std::string& name = names_[size_t(*blamed)];
    std::string without_device = name.substr(0, name.rfind(" ("));
    size_t at = why.find(without_device);
    if (at != why.npos && why.compare(at, name.size(), name) != 0) why.replace(at, without_device.size(), name);
  }
  int64_t step = progress_->report().step;
  if (step == 0 || why.find(" step ") != why.npos) return why;
  return fmt::format("{}; {} was in step {}", why, names_[rank_], step);
}

bool is_device_failure(const std::exception& error) {
  return is_a<std::runtime_error>(error) && !is_a<UserError>(error) && !is_a<CommunicationError>(error) &&
         !is_a<std::system_error>(error);
}

}  // namespace tokamak
