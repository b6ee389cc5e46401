// How long a run trains, and what it does on the way.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tokamak {

struct TrainConfig {
  std::string out = "run";  // run folder
  // The length of the run, by one of three: the others are 0. What is resolved has steps (run/train_length.h).
  int64_t steps = 1000;
  double epochs = 0;              // passes over the windows of the training data
  int64_t tokens = 0;             // that are trained on
  int64_t batch = 4;              // B, sequences in a micro-batch
  int64_t total_batch = 0;        // tokens per optimizer step; 0: one micro-batch
  std::vector<std::string> ramp;  // smaller steps, or shorter sequences, at the beginning; see config/train_ramp.h
  int64_t seed = 1337;
  int64_t eval_every = 250;  // steps; 0: never
  int64_t eval_batches = 20;
  std::vector<std::string> tasks;   // KIND:FILE; see evaluate/task.h
  int64_t tasks_every = 0;          // steps; 0: only at the end
  int64_t tasks_limit = 0;          // questions of each; 0: all
  bool tasks_cut_contexts = false;  // where they are too long; else they are refused
  int64_t patience = 0;             // evaluations without an improvement, after which training ends; 0: it does not
  double min_improvement = 0;       // nats
  int64_t sample_every = 0;
  int64_t sample_tokens = 128;
  int64_t checkpoint_every = 250;
  int64_t keep_checkpoints = 2;
  int64_t keep_every = 0;  // steps, whose multiples are kept, too; 0: none
  bool keep_best = false;
  bool background_saves = true;  // whether steps go on while a copy of the state is written
  std::string archive;           // a folder that finished checkpoints are copied to; empty: none
  int64_t log_every = 1;
  bool tensorboard = false;   // event files beside metrics.jsonl
  int64_t digest_every = 0;   // steps; 0: never
  int64_t verify_every = 0;   // steps, of which slots are computed again by other ranks (run/slot_check.h); 0: none
  int64_t shadow_every = 0;   // with fp8: steps, between which gradients are compared with bf16's; 0: none
  double shadow_bound = 0.9;  // the least cosine of the two (run/shadow.h)
  int64_t grace_seconds = 0;  // from a request to stop to a kill; 0: not known
  bool resume = true;         // continue from the newest good checkpoint in `out`
};

}  // namespace tokamak
