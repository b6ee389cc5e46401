// The optimizer and its schedule.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tokamak {

struct OptimizerConfig {
  std::string name = "adamw";      // see autodiff/optimizer_rule.h
  std::string state_type = "f32";  // or bf16
  double lr = 6e-4;
  double min_lr_ratio = 0.1;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double momentum = 0.9;  // sgd's
  double muon_momentum = 0.95;
  std::string muon_scale = "rms";  // or original
  double adamw_lr_ratio = 1;
  double weight_decay = 0.1;  // matrices only
  bool nesterov = true;       // with muon
  bool cautious_decay = false;
  std::vector<std::string> groups;  // see autodiff/rate_groups.h
  double clip = 1.0;                // global gradient norm; 0: off
  double ema = 0;                   // decay of the weights' mean; 0: none is kept
  int64_t warmup_steps = 100;
  std::string schedule = "cosine";  // see run/learning_rate.h
  int64_t schedule_steps = 0;       // 0: those of the run
  double wsd_decay_share = 0.2;
  std::string wsd_decay = "1-sqrt";
};

}  // namespace tokamak
