#include "data/loader.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "data/document_starts.h"
#include "data/permutation.h"

namespace tokamak {

namespace {

void check_options(const ShardIndex& index, const SplitIndex& split, const LoaderOptions& options) {
  TOKAMAK_CHECK(options.batch > 0 && options.context > 0, "batch {}, context {}", options.batch, options.context);
  int64_t needed = options.context + 1;
  if (split.tokens() < needed)
    user_error(
        "[data] expected at least {} tokens (model.context + 1), got {}; lower model.context to {} or less, or "
        "prepare more text",
        needed, split.tokens(), std::max<int64_t>(split.tokens() - 1, 0));
  int64_t needed_vocab = std::max(index.vocab_size, split.max_token() + 1);
  if (options.vocab_size > 0 && needed_vocab > options.vocab_size)
    user_error(
        "[data] the model's vocabulary is too small for the data: expected at least {}, got {}; set model.vocab to "
        "{} (or 0 for the data's), or prepare the data with a smaller vocabulary",
        needed_vocab, options.vocab_size, needed_vocab);
}

/// Makes batches from sample numbers; knows nothing of threads.
class BatchMaker {
 public:
  BatchMaker(TokenStream stream, const LoaderOptions& options)
      : stream_(std::move(stream)), options_(options), windows_((stream_.size() - 1) / options.context) {}

  int64_t windows() const { return windows_; }

  void make(int64_t first_sample, Batch& batch) {
    size_t length = size_t(options_.context);
    batch.first_sample = first_sample;
    batch.tokens.resize(size_t(options_.batch) * length);
    batch.targets.resize(batch.tokens.size());
    window_.resize(length + 1);
    for (int64_t b = 0; b < options_.batch; ++b) {
      stream_.read(window_of(first_sample + b) * options_.context, window_);
      check_window(first_sample + b);
      std::copy_n(window_.begin(), length, batch.tokens.begin() + b * options_.context);
      std::copy_n(window_.begin() + 1, length, batch.targets.begin() + b * options_.context);
    }
    if (options_.end_of_text >= 0) keep_apart(batch);
  }

 private:
  void keep_apart(Batch& batch) const {
    batch.documents = document_starts(batch.tokens, options_.context, options_.end_of_text);
    hide_first_tokens(batch.tokens, options_.end_of_text, batch.targets);
  }

  /// A damaged shard must not become an index out of an embedding table.
  void check_window(int64_t sample) const {
    int32_t largest = 0;
    for (int32_t id : window_) largest = std::max(largest, id);
    if (options_.vocab_size > 0 && largest >= options_.vocab_size)
      user_error(
          "[data] expected token ids below {}, got {} in window {}; a shard is damaged: copy it again or run "
          "`prepare` again",
          options_.vocab_size, largest, window_of(sample));
  }

  int64_t window_of(int64_t sample) const {
    int64_t epoch = sample / windows_, place = sample % windows_;
    return options_.sequential ? place : Permutation(windows_, options_.seed, uint64_t(epoch))(place);
  }

  TokenStream stream_;
  LoaderOptions options_;
  int64_t windows_;
  std::vector<int32_t> window_;  // (T + 1)
};

}  // namespace

/// The queue between the thread that makes batches and the loop that takes them. Batches are made strictly in order; a
/// seek empties the queue and tells the thread where to go on.
class Loader::State {
 public:
  State(TokenStream stream, const LoaderOptions& options)
      : maker_(std::move(stream), options), batch_(options.batch), capacity_(size_t(options.prefetch)) {
    if (capacity_ > 0) thread_ = std::thread([this] { run(); });
  }

  ~State() {
    if (!thread_.joinable()) return;
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void next(Batch& batch) {
    if (capacity_ == 0) {
      maker_.make(position_, batch);
    } else {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !ready_.empty() || error_; });
      if (error_) std::rethrow_exception(error_);
      std::swap(batch, ready_.front());
      spare_.push_back(std::move(ready_.front()));
      ready_.pop_front();
    }
    changed_.notify_all();
    position_ += batch_;
  }

  void seek(int64_t sample) {
    TOKAMAK_CHECK(sample >= 0, "sample {}", sample);
    std::lock_guard lock(mutex_);
    position_ = sample;
    to_make_ = sample;
    ++generation_;
    ready_.clear();
    changed_.notify_all();
  }

  int64_t position() const { return position_; }
  int64_t windows() const { return maker_.windows(); }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stop_ || ready_.size() < capacity_; });
      if (stop_) return;
      int64_t sample = to_make_, generation = generation_;
      Batch batch;
      if (!spare_.empty()) {
        batch = std::move(spare_.back());
        spare_.pop_back();
      }
      lock.unlock();
      std::exception_ptr error = make_batch(sample, batch);
      lock.lock();
      if (error) {
        error_ = error;
        changed_.notify_all();
        return;
      }
      if (generation != generation_) continue;  // a seek came between
      ready_.push_back(std::move(batch));
      to_make_ = sample + batch_;
      changed_.notify_all();
    }
  }

  std::exception_ptr make_batch(int64_t sample, Batch& batch) noexcept {
    try {
      maker_.make(sample, batch);
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }

  BatchMaker maker_;
  int64_t batch_;
  size_t capacity_;
  int64_t position_ = 0;  // of the loop; only its thread uses it

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Batch> ready_;
  std::vector<Batch> spare_;  // memory to use again
  int64_t to_make_ = 0;       // first sample of the next batch to make
  int64_t generation_ = 0;    // counts seeks
  bool stop_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

Loader::Loader(const std::filesystem::path& folder, const ShardIndex& index, const SplitIndex& split,
               LoaderOptions options) {
  check_options(index, split, options);
  state_ = std::make_unique<State>(TokenStream(folder, split), options);
}

Loader::Loader(Loader&&) noexcept = default;
Loader::~Loader() = default;

void Loader::next(Batch& batch) { state_->next(batch); }

Batch Loader::next() {
  Batch batch;
  state_->next(batch);
  return batch;
}

void Loader::seek(int64_t sample) { state_->seek(sample); }
int64_t Loader::position() const { return state_->position(); }
int64_t Loader::windows() const { return state_->windows(); }

}  // namespace tokamak
