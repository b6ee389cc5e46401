#include "base/store_values.h"

#include <algorithm>

#include "base/error.h"

namespace tokamak {

void StoreValues::set(const std::string& key, const std::string& value) {
  values_[key] = value;
  auto waiting = key_waiters_.extract(key);
  if (waiting.empty()) return;
  for (const StoreWaiter& waiter : waiting.mapped()) get(key, waiter);
}

void StoreValues::get(const std::string& key, const StoreWaiter& waiter) {
  auto found = values_.find(key);
  if (found == values_.end()) return key_waiters_[key].push_back(waiter);
  reply_(waiter, {found->second});
  if (waiter.take) values_.erase(found);
}

std::string StoreValues::exchange(const std::string& key, int index, int size, const std::string& value,
                                  const StoreWaiter& waiter) {
  Exchange& all = exchanges_[key];
  if (all.values.empty()) all.values.resize(size_t(size));
  if (int(all.values.size()) != size || all.values[size_t(index)])
    return fmt::format(
        "[rendezvous] expected one text of each of {} ranks for '{}', got two of one, or another number of ranks, from "
        "rank {}",
        all.values.size(), key, waiter.rank);
  all.values[size_t(index)] = value;
  all.waiters.push_back(waiter);
  if (int(all.waiters.size()) < size) return "";
  Exchange complete = std::move(exchanges_.extract(key).mapped());
  Frame values;
  for (std::optional<std::string>& one : complete.values) values.push_back(std::move(*one));
  for (const StoreWaiter& one : complete.waiters) reply_(one, values);
  return "";
}

// "1, 3": those that have not come.
std::string StoreValues::missing(const Exchange& exchange) {
  std::string text;
  for (size_t i = 0; i < exchange.values.size(); ++i)
    if (!exchange.values[i]) text += fmt::format("{}{}", text.empty() ? "" : ", ", i);
  return text;
}

std::string StoreValues::overdue() const {
  for (const auto& [key, exchange] : exchanges_)
    for (const StoreWaiter& waiter : exchange.waiters)
      if (milliseconds_left(waiter.deadline) == 0)
        return fmt::format(
            "[rendezvous] expected {} ranks for '{}' in time, but these have not come: {}; see whether they were "
            "started, and what they say",
            exchange.values.size(), key, missing(exchange));
  for (const auto& [key, waiters] : key_waiters_)
    for (const StoreWaiter& waiter : waiters)
      if (milliseconds_left(waiter.deadline) == 0)
        return fmt::format("[rendezvous] rank {} has waited too long for '{}'", waiter.rank, key);
  return "";
}

int StoreValues::next_wake(int most) const {
  int wake = most;
  for (const auto& [key, exchange] : exchanges_)
    for (const StoreWaiter& waiter : exchange.waiters) wake = std::min(wake, milliseconds_left(waiter.deadline));
  for (const auto& [key, waiters] : key_waiters_)
    for (const StoreWaiter& waiter : waiters) wake = std::min(wake, milliseconds_left(waiter.deadline));
  return wake;
}

void StoreValues::forget_waits() {
  exchanges_.clear();
  key_waiters_.clear();
}

}  // namespace tokamak
