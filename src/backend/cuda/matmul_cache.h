// Which algorithm each matmul was given, kept on disk: a choice is timed once, and as another algorithm may give other
// bits, a run that resumes makes the same choices. Tests: tests/backend/cuda/matmul_cache_test.cpp
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tokamak::cuda {

struct MatmulChoice {
  std::array<uint64_t, 8> algorithm{};  // the content of a cublasLtMatmulAlgo_t
  double seconds = 0;                   // as measured
  double tflops = 0;                    // TFLOP/s; what follows is for readers of the file only
  double runner_up_tflops = 0;          // of the next best; 0: there was none
  int64_t tried = 0;                    // candidates
  bool operator==(const MatmulChoice&) const = default;
};

/// What choices are good for: one kind of GPU with one version of the library.
struct MatmulMachine {
  std::string device;
  uint64_t library_version = 0;
};

using MatmulChoices = std::map<std::string, MatmulChoice>;  // by MatmulProblem::key

/// JSON text, and back; nothing when the text is damaged or was made for another machine.
std::string print_matmul_choices(const MatmulMachine& machine, const MatmulChoices& choices);
std::optional<MatmulChoices> parse_matmul_choices(const MatmulMachine& machine, std::string_view text);

class MatmulCache {
 public:
  /// Reads matmul-<device>-<version>.json of the folder; empty: keeps choices in memory only.
  MatmulCache(const std::filesystem::path& folder, MatmulMachine machine);

  /// What is found counts as used.
  const MatmulChoice* find(const std::string& problem);
  void put(const std::string& problem, const MatmulChoice& choice);
  /// Writes what is new, next to what other processes have written meanwhile. A cache that cannot be written costs time
  /// at the next start, no more.
  void save();

  /// The choices that were put, found and adopted so far, as print_matmul_choices does.
  std::string print_used() const;
  /// Takes such choices over, before all others; they are not saved. False when the text is not of this machine.
  bool adopt(std::string_view text);

  const std::filesystem::path& path() const { return path_; }  // empty: none

 private:
  MatmulChoices read() const;

  MatmulMachine machine_;
  std::filesystem::path path_;
  MatmulChoices choices_, unsaved_, used_;
};

}  // namespace tokamak::cuda
