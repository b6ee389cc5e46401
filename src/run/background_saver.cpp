#include "run/background_saver.h"

#include "base/error.h"

#include <chrono>
#include <utility>

namespace tokamak {
namespace {

struct Abandoned {};

}  // namespace

BackgroundSaver::BackgroundSaver(const TensorStore& store, Backend& backend)
    : backend_(backend), copies_(backend.make_host_copies()), copy_(store, backend, *copies_), store_(store) {
  if (store.ranks()) channel_ = store.ranks()->world().open_channel("saves");
}

BackgroundSaver::~BackgroundSaver() = default;

// Nothing is thrown there: training waits for saves, then.
void BackgroundSaver::reserve() {
  tasks_.submit([this] {
    try {
      backend_.use_in_this_thread();
      lack_ = copy_.reserve() ? "" : "the system has no more";
    } catch (const std::exception& error) {
      lack_ = error.what();
    }
  });
}

std::string BackgroundSaver::lacks_memory() {
  tasks_.wait();
  return lack_;
}

bool BackgroundSaver::begin(const std::filesystem::path& out, const CheckpointState& state, const KeepRule& keep) {
  TOKAMAK_CHECK(!open_, "a save has begun already");
  begin_ = std::chrono::steady_clock::now();
  CompleteSave complete =
      begin_save(out, state, store_, keep, [this](std::string_view mine) { return channel_->exchange(mine); });
  if (!complete) return false;
  tasks_.wait();  // there is memory
  copy_.begin();
  copy_.wait();
  open_ = true;
  ended_ = false;
  tasks_.submit([this, complete = std::move(complete)] { write(complete); });
  return true;
}

// Nothing is thrown here: who asks for the end gets it.
void BackgroundSaver::write(const CompleteSave& complete) {
  std::exception_ptr error;
  std::string failure;
  try {
    complete(copy_.slices(), [this, read = copy_.reader()](const StateSlice& slice, int64_t at, int64_t count) {
      if (abandoned_) throw Abandoned();
      return read(slice, at, count);
    });
  } catch (const std::exception& caught) {
    error = std::current_exception();
    failure = caught.what();
  } catch (const Abandoned&) {
    error = std::current_exception();
  }
  std::lock_guard lock(mutex_);
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  error_ = error;
  failure_ = failure;
  ended_ = true;
}

std::string BackgroundSaver::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

double BackgroundSaver::take() {
  tasks_.wait();
  open_ = false;
  std::lock_guard lock(mutex_);
  failure_.clear();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  return seconds_;
}

bool BackgroundSaver::abandon() {
  abandoned_ = true;
  tasks_.wait();
  open_ = false;
  std::lock_guard lock(mutex_);
  return !error_;
}

}  // namespace tokamak
