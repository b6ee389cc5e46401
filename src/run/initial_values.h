// A model's initial parameters, drawn on a thread of its own: with some hundred million of them that takes as long as
// opening a GPU, which can go on meanwhile. Tests: tests/run/initial_values_test.cpp.
#pragma once

#include "model/model.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

namespace tokamak {

class InitialValues {
 public:
  struct Values {
    std::unique_ptr<float[]> data;
    int64_t count = 0;
  };

  InitialValues(std::vector<ParameterInfo> parameters, int64_t seed);
  /// Waits for the parameter that is being drawn, not for those after it.
  ~InitialValues();
  InitialValues(const InitialValues&) = delete;
  InitialValues& operator=(const InitialValues&) = delete;

  /// What init_parameter gives for the next parameter: the first call for the first one. Waits for it.
  Values take();

 private:
  void work();
  void draw_all();

  std::vector<ParameterInfo> parameters_;
  int64_t seed_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Values> ready_;
  int64_t ready_bytes_ = 0;
  bool closing_ = false;
  std::exception_ptr error_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace tokamak
