#include "data/loader.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/start_threads.h"

namespace tokamak {

namespace {

void check_options(const LoaderOptions& options) {
  TOKAMAK_CHECK(options.batch > 0 && options.workers >= 0, "batch {}, {} workers", options.batch, options.workers);
  TOKAMAK_CHECK(options.rank >= 0 && options.rank < options.world, "process {} of {}", options.rank, options.world);
}

}  // namespace

/// A ring of slots between the threads that make batches and the loop that takes them. Each thread claims the next
/// batch number and puts the batch, or what went wrong, into the number's slot; the loop takes them in the order of
/// numbers. Numbers are counted from the last seek, which also makes threads drop what they have under way.
class Loader::State {
 public:
  State(std::shared_ptr<const Corpus> corpus, const LoaderOptions& options)
      : corpus_(std::move(corpus)), options_(options), maker_(corpus_, options.vocab_size, options.end_of_text),
        slots_(size_t(std::max({options.prefetch, options.workers, int64_t(1)}))) {
    threads_ = start_threads(int(options.workers), [this](int worker) { work(worker); });
  }

  ~State() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wanted_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void next(Batch& batch) {
    if (threads_.empty()) {
      maker_.make(first_sample(taken_), options_.batch, batch);
      ++taken_;
      return;
    }
    {
      std::unique_lock lock(mutex_);
      Slot& slot = slot_of(taken_);
      made_.wait(lock, [&] { return slot.number == taken_; });
      if (slot.error) std::rethrow_exception(slot.error);
      std::swap(batch, slot.batch);
      slot.number = -1;
      ++taken_;
    }
    wanted_.notify_one();
  }

  void seek(int64_t sample) {
    TOKAMAK_CHECK(sample >= 0, "sample {}", sample);
    {
      std::lock_guard lock(mutex_);
      origin_ = sample;
      taken_ = claimed_ = 0;
      ++generation_;
      for (Slot& slot : slots_) slot.number = -1, slot.error = nullptr;
    }
    wanted_.notify_all();
  }

  void watch(BatchWatcher watcher) {
    std::lock_guard lock(mutex_);
    watcher_ = std::move(watcher);
  }

  int64_t position() const { return origin_ + taken_ * options_.world * options_.batch; }
  const Corpus& corpus() const { return *corpus_; }

 private:
  struct Slot {
    int64_t number = -1;  // of the batch that is ready in it
    Batch batch;
    std::exception_ptr error;
  };

  Slot& slot_of(int64_t number) { return slots_[size_t(number) % slots_.size()]; }
  int64_t first_sample(int64_t number) const {
    return origin_ + (number * options_.world + options_.rank) * options_.batch;
  }

  void work(int worker) {
    BatchMaker maker(corpus_, options_.vocab_size, options_.end_of_text);
    std::unique_lock lock(mutex_);
    for (;;) {
      wanted_.wait(lock, [&] { return stop_ || claimed_ < taken_ + int64_t(slots_.size()); });
      if (stop_) return;
      int64_t number = claimed_++, generation = generation_, sample = first_sample(number);
      Batch batch = std::move(slot_of(number).batch);
      BatchWatcher watcher = watcher_;
      lock.unlock();
      std::exception_ptr error = make_watched(maker, sample, batch, watcher, worker);
      lock.lock();
      if (generation != generation_) continue;  // a seek came between
      slot_of(number) = {number, std::move(batch), error};
      made_.notify_all();
    }
  }

  std::exception_ptr make_watched(BatchMaker& maker, int64_t sample, Batch& batch, const BatchWatcher& watcher,
                                  int worker) const {
    if (!watcher) return make(maker, sample, batch);
    MadeBatch made{.worker = worker, .begin = std::chrono::steady_clock::now()};
    std::exception_ptr error = make(maker, sample, batch);
    made.end = std::chrono::steady_clock::now();
    watcher(made);
    return error;
  }

  std::exception_ptr make(BatchMaker& maker, int64_t sample, Batch& batch) const noexcept {
    try {
      maker.make(sample, options_.batch, batch);
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }

  std::shared_ptr<const Corpus> corpus_;
  LoaderOptions options_;
  BatchMaker maker_;  // of the loop's thread, when there are no others

  std::mutex mutex_;  // guards what follows; origin_ and taken_ are written by the loop's thread only
  std::condition_variable wanted_, made_;
  std::vector<Slot> slots_;
  int64_t origin_ = 0;      // position of batch 0
  int64_t taken_ = 0;       // number of the batch that next() gives
  int64_t claimed_ = 0;     // number of the next batch to make
  int64_t generation_ = 0;  // counts seeks
  bool stop_ = false;
  BatchWatcher watcher_;
  std::vector<std::thread> threads_;
};

Loader::Loader(std::shared_ptr<const Corpus> corpus, LoaderOptions options) {
  check_options(options);
  state_ = std::make_unique<State>(std::move(corpus), options);
}

Loader::Loader(Loader&&) noexcept = default;
Loader::~Loader() = default;

void Loader::next(Batch& batch) { state_->next(batch); }

Batch Loader::next() {
  Batch batch;
  state_->next(batch);
  return batch;
}

void Loader::watch(BatchWatcher watcher) { state_->watch(std::move(watcher)); }
void Loader::seek(int64_t sample) { state_->seek(sample); }
int64_t Loader::position() const { return state_->position(); }
const Corpus& Loader::corpus() const { return state_->corpus(); }

}  // namespace tokamak
