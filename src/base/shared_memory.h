// Memory that several processes of one machine have together. Tests: tests/base/shared_memory_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace tokamak {

class SharedMemory {
 public:
  /// Zeroed, with a name that nothing else has. Null: the system has none (no /dev/shm, or no room there).
  static std::unique_ptr<SharedMemory> create(int64_t bytes);
  /// What another process of this user has created and not forgotten; null: it is not found here.
  static std::unique_ptr<SharedMemory> open(const std::string& name, int64_t bytes);
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  const std::string& name() const { return name_; }
  std::byte* data() const { return data_; }
  /// From now on it is not found by its name; it lasts as long as someone has it. The creator's end does the same.
  void forget_name();

 private:
  SharedMemory(std::string name, int64_t bytes, int fd, bool created);

  std::string name_;
  int64_t bytes_;
  bool named_;  // and to be forgotten
  std::byte* data_ = nullptr;
};

}  // namespace tokamak
