// The sizes of the model.
#pragma once

#include <cstdint>
#include <string>

namespace tokamak {

struct ModelConfig {
  std::string preset;           // small, gpt2-124m, gpt2-355m, ...; empty: the sizes below
  std::string from;             // a model whose weights training begins with; empty: none
  std::string family = "gpt2";  // see model/model.h
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t width = 768;     // C
  int64_t context = 1024;  // T
  int64_t vocab = 50257;   // V; 0: the data's
  bool bias = true;
  bool tie_weights = true;
  double dropout = 0.0;
};

}  // namespace tokamak
