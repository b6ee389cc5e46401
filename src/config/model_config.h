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

  // Of the families llama and modern.
  int64_t kv_heads = 0;    // 0: as many as heads
  int64_t head_width = 0;  // 0: width / heads
  int64_t hidden = 0;      // 0: see mlp_width
  int64_t window = 0;      // 0: none
  bool qkv_bias = false;   // of llama alone
  bool qk_norm = false;
  double norm_eps = 1e-5;
  double rope_theta = 10000;
  std::string rope_scaling = "none";  // of kRopeScalings
  double rope_factor = 1;
  double rope_low_freq = 1;
  double rope_high_freq = 4;
  int64_t rope_original_context = 8192;

  // Of the family modern alone.
  std::string activation = "relu2";  // of kActivations
  bool norm_weights = false;
  bool embedding_norm = false;
  bool zero_init = false;
  double softcap = 0;  // of the logits; 0: none
  double softcap_shift = 0;
  double softcap_width = 0;          // 0: softcap
  std::string window_pattern = "S";  // layers with model.window (S) and without (L), again and again
  int64_t window_warmup_steps = 0;   // of training
  int64_t value_embeddings = 0;      // every so many layers, from the last one on; 0: none
  bool skip_blocks = false;
  bool x0_mix = false;

  /// Whether keys and values may have heads of their own number and width, and the MLP a width of its own.
  bool has_free_sizes() const { return family == "llama" || family == "modern"; }
  /// What a token of this layer sees, as `window` says.
  int64_t window_of(int64_t layer) const {
    bool sees_all = family == "modern" && window_pattern[size_t(layer) % window_pattern.size()] == 'L';
    return sees_all ? 0 : window;
  }
  bool warms_windows() const { return family == "modern" && window_warmup_steps > 0; }
  /// What training's windows are of their length in this step (counted from 0): from a quarter to all.
  double window_share(int64_t step) const {
    constexpr double kFirst = 0.25;
    return step >= window_warmup_steps ? 1 : kFirst + (1 - kFirst) * double(step) / double(window_warmup_steps);
  }
  bool has_value_embedding(int64_t layer) const {
    return value_embeddings > 0 && (layers - 1 - layer) % value_embeddings == 0;
  }
  bool has_gate() const { return family == "llama" || activation == "silu"; }

  int64_t num_kv_heads() const { return kv_heads > 0 ? kv_heads : heads; }
  int64_t width_of_head() const { return head_width > 0 ? head_width : width / heads; }
  /// Hidden units of the MLP: 4 times the width, but of families with free sizes what is said, and where nothing is,
  /// with a gate, which takes a third matrix, 8/3 of it, up to a multiple of 256.
  int64_t mlp_width() const {
    if (!has_free_sizes()) return 4 * width;
    if (hidden > 0) return hidden;
    return has_gate() ? (8 * width / 3 + 255) / 256 * 256 : 4 * width;
  }
};

inline constexpr const char* kActivations[] = {"relu2", "gelu", "silu"};
inline constexpr const char* kRopeScalings[] = {"none", "linear", "llama3"};

}  // namespace tokamak
