#include "checkpoint/checkpoint_file.h"

#include "base/parallel.h"

#include <exception>
#include <mutex>

namespace tokamak {

void CheckpointFile::read(std::span<const std::byte> part, std::span<std::byte> out) const {
  constexpr int64_t kGrain = int64_t(1) << 20;
  int64_t offset = part.data() - bytes().data();
  std::exception_ptr error;
  std::mutex mutex;
  parallel_for(int64_t(out.size()), kGrain, [&](int64_t begin, int64_t end, int) {
    try {
      reader_.read(offset + begin, out.subspan(size_t(begin), size_t(end - begin)));
    } catch (...) {
      std::lock_guard lock(mutex);
      error = std::current_exception();
    }
  });
  if (error) std::rethrow_exception(error);
}

}  // namespace tokamak
