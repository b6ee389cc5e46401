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

  // Of the family llama alone.
  int64_t kv_heads = 0;    // 0: as many as heads
  int64_t head_width = 0;  // 0: width / heads
  int64_t hidden = 0;      // 0: see mlp_width
  int64_t window = 0;      // 0: none
  bool qkv_bias = false;
  bool qk_norm = false;
  double norm_eps = 1e-5;
  double rope_theta = 10000;
  std::string rope_scaling = "none";  // of kRopeScalings
  double rope_factor = 1;
  double rope_low_freq = 1;
  double rope_high_freq = 4;
  int64_t rope_original_context = 8192;

  int64_t num_kv_heads() const { return kv_heads > 0 ? kv_heads : heads; }
  int64_t width_of_head() const { return head_width > 0 ? head_width : width / heads; }
  /// Hidden units of the MLP: 8/3 of the width, up to a multiple of 256, where nothing is said.
  int64_t mlp_width() const { return hidden > 0 ? hidden : (8 * width / 3 + 255) / 256 * 256; }
};

inline constexpr const char* kRopeScalings[] = {"none", "linear", "llama3"};

}  // namespace tokamak
