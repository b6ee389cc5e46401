#include "base/shared_memory.h"

#include "base/file.h"
#include "base/store_server.h"  // random_nonce

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <utility>

namespace tokamak {

SharedMemory::SharedMemory(std::string name, int64_t bytes, int fd, bool created)
    : name_(std::move(name)), bytes_(bytes), named_(created) {
  void* mapped = ::mmap(nullptr, size_t(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped != MAP_FAILED) data_ = static_cast<std::byte*>(mapped);
}

SharedMemory::~SharedMemory() {
  forget_name();
  if (data_) ::munmap(data_, size_t(bytes_));
}

std::unique_ptr<SharedMemory> SharedMemory::create(int64_t bytes) {
  std::string name = "/tokamak-" + random_nonce();
  FileDescriptor fd(::shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600));
  if (!fd.is_open()) return nullptr;
  bool has_room = ::posix_fallocate(fd.get(), 0, bytes) == 0;  // else writing to it could end the process
  std::unique_ptr<SharedMemory> memory(new SharedMemory(name, bytes, fd.get(), true));
  return has_room && memory->data_ ? std::move(memory) : nullptr;
}

std::unique_ptr<SharedMemory> SharedMemory::open(const std::string& name, int64_t bytes) {
  FileDescriptor fd(::shm_open(name.c_str(), O_RDWR, 0));
  struct stat status {};
  if (!fd.is_open() || ::fstat(fd.get(), &status) != 0 || status.st_size < bytes) return nullptr;
  std::unique_ptr<SharedMemory> memory(new SharedMemory(name, bytes, fd.get(), false));
  return memory->data_ ? std::move(memory) : nullptr;
}

void SharedMemory::forget_name() {
  if (std::exchange(named_, false)) ::shm_unlink(name_.c_str());
}

}  // namespace tokamak
