// Every architecture for which device code is made, and compiling for them, which needs no GPU.
#pragma once

#include "backend/cuda/nvrtc.h"

#include <gtest/gtest.h>

#include <elf.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <future>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak::test {

/// Of A100, RTX 30, RTX 40, H100, B200 and RTX 50. A compiler that is older than one of them makes PTX for it.
inline std::vector<cuda::Architecture> all_architectures() {
  return {{8, 0}, {8, 6}, {8, 9}, {9, 0}, {10, 0}, {12, 0}};
}

/// Those for which the texts of kernels are compiled here: with TOKAMAK_ALL_ARCHITECTURES set, as .ci/run does, one of
/// each set of instructions (no text asks for 8.6 or 8.9, which have that of 8.0); else the oldest, and the one with
/// ways of its own.
inline std::vector<cuda::Architecture> checked_architectures() {
  if (std::getenv("TOKAMAK_ALL_ARCHITECTURES")) return {{8, 0}, {9, 0}, {10, 0}, {12, 0}};
  return {{8, 0}, {9, 0}};
}

/// That of the other variants of a text that compiles everywhere.
inline std::vector<cuda::Architecture> one_architecture() { return {{9, 0}}; }

/// Every kernel of the text waits for those before it (kernels/begin_kernel.cuh), for it is launched early.
inline void expect_waits(const std::string& source) {
  constexpr std::string_view kKernel = "__global__";
  for (size_t at = source.find(kKernel); at != std::string::npos;) {
    size_t next = source.find(kKernel, at + kKernel.size());
    std::string kernel = source.substr(at, next - at);
    EXPECT_NE(kernel.find("begin_kernel();"), std::string::npos) << kernel;
    at = next;
  }
}

/// Bytes of static shared memory of the function of machine code that has most; 0 of PTX.
inline int64_t static_shared_bytes(const std::string& code) {
  Elf64_Ehdr file;
  if (!code.starts_with(ELFMAG)) return 0;
  std::memcpy(&file, code.data(), sizeof file);
  auto section = [&](size_t i) {
    Elf64_Shdr header;
    std::memcpy(&header, code.data() + file.e_shoff + i * file.e_shentsize, sizeof header);
    return header;
  };
  int64_t most = 0;
  const char* names = code.data() + section(file.e_shstrndx).sh_offset;
  for (size_t i = 0; i < file.e_shnum; ++i)
    if (std::string_view(names + section(i).sh_name).starts_with(".nv.shared."))
      most = std::max(most, int64_t(section(i).sh_size));
  return most;
}

/// The text compiles, at the same time for all of them, and has the functions.
inline void expect_compiles(const std::string& source, const std::vector<std::string>& functions,
                            const std::vector<cuda::Architecture>& architectures) {
  expect_waits(source);
  std::vector<std::future<std::string>> codes;
  for (cuda::Architecture a : architectures)
    codes.push_back(std::async(std::launch::async, [&source, a] { return cuda::compile_device_code(source, a); }));
  for (size_t i = 0; i < codes.size(); ++i) {
    std::string code = codes[i].get();
    EXPECT_LE(static_shared_bytes(code), 48 << 10) << "more than a launch takes, of\n" << source;
    for (const std::string& function : functions)
      EXPECT_NE(code.find(function), std::string::npos)
          << function << " for " << architectures[i].major << '.' << architectures[i].minor << " of\n"
          << source;
  }
}

}  // namespace tokamak::test
