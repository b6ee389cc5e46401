#include "run/background_saver.h"

#include "base/error.h"
#include "checkpoint/kept_save.h"

#include <chrono>
#include <utility>

namespace tokamak {
namespace {

struct Abandoned {};

}  // namespace

BackgroundSaver::BackgroundSaver(Session& session, Backend& backend)
    : backend_(backend), copy_(session.store(), backend, session.copies()), store_(session.store()) {
  if (store_.ranks()) channel_ = store_.ranks()->world().open_channel("saves");
}

// Copies that nobody writes any more come to an end before their memory goes.
BackgroundSaver::~BackgroundSaver() {
  try {
    tasks_.wait();
    copy_.wait();
  } catch (const std::exception&) {
    // The device is lost, and copies nothing.
  }
}

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

bool BackgroundSaver::use_memory(CopyMemory memory) {
  bool fits = copy_.use_memory(std::move(memory));
  if (fits) lack_.clear();
  return fits;
}

CopyMemory BackgroundSaver::release_memory() {
  TOKAMAK_CHECK(!open_, "a save is under way");
  tasks_.wait();
  return lack_.empty() ? copy_.release_memory() : CopyMemory();
}

std::string BackgroundSaver::lacks_memory() {
  tasks_.wait();
  return lack_;
}

void BackgroundSaver::copy() {
  TOKAMAK_CHECK(!open_, "a save has begun already");
  begin_ = std::chrono::steady_clock::now();
  tasks_.wait();  // there is memory
  copy_.begin();
  open_ = true;
  ended_ = false;
}

bool BackgroundSaver::write(const std::filesystem::path& out, const CheckpointState& state, const KeepRule& keep) {
  return write([&](const Exchange& exchange) { return begin_save(out, state, store_, keep, exchange); });
}

bool BackgroundSaver::write(const std::filesystem::path& folder, const CheckpointState& state,
                            const RankMachines& machines, Communicator& links) {
  return write(
      [&](const Exchange& exchange) { return begin_kept_save(folder, state, store_, machines, links, exchange); });
}

bool BackgroundSaver::write(const Begin& begin) {
  TOKAMAK_CHECK(open_, "nothing was copied");
  open_ = false;
  CompleteSave complete = begin([this](std::string_view mine) { return channel_->exchange(mine); });
  if (!complete) return false;
  open_ = true;
  tasks_.submit([this, complete = std::move(complete)] { this->complete(complete); });
  return true;
}

// Nothing is thrown here: who asks for the end gets it.
void BackgroundSaver::complete(const CompleteSave& complete) {
  std::exception_ptr error;
  std::string failure;
  try {
    copy_.wait();
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
