#include "run/initial_values.h"

namespace tokamak {
namespace {

// Of values that nobody has taken yet; one parameter more may be under way.
constexpr int64_t kMostAheadBytes = int64_t(1) << 30;

}  // namespace

InitialValues::InitialValues(std::vector<ParameterInfo> parameters, int64_t seed)
    : parameters_(std::move(parameters)), seed_(seed), thread_([this] { work(); }) {}

InitialValues::~InitialValues() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

InitialValues::Values InitialValues::take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !ready_.empty() || error_; });
  if (ready_.empty()) std::rethrow_exception(error_);
  Values values = std::move(ready_.front());
  ready_.pop_front();
  ready_bytes_ -= values.count * int64_t(sizeof(float));
  changed_.notify_all();
  return values;
}

void InitialValues::work() {
  std::exception_ptr error;
  try {
    draw_all();
    return;
  } catch (...) {
    error = std::current_exception();
  }
  std::lock_guard lock(mutex_);
  error_ = error;
  changed_.notify_all();
}

void InitialValues::draw_all() {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Values values;
    values.count = num_elements(parameters_[i].shape);
    values.data = std::make_unique_for_overwrite<float[]>(size_t(values.count));
    init_parameter(parameters_[i], int64_t(i), seed_, {values.data.get(), size_t(values.count)});
    std::unique_lock lock(mutex_);
    ready_bytes_ += values.count * int64_t(sizeof(float));
    ready_.push_back(std::move(values));
    changed_.notify_all();
    changed_.wait(lock, [&] { return ready_bytes_ < kMostAheadBytes || closing_; });
    if (closing_) return;
  }
}

}  // namespace tokamak
