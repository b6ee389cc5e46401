// Throughput that others measured and published, each run with its layout: a test of the planner that nobody here has
// made. Values stand as they were read at their source, or where that could not be opened, in a transcription of it.
// Tests: tests/advise/published_test.cpp.
#pragma once

#include "config/cluster_config.h"

#include <span>
#include <string_view>

namespace tokamak {

/// What a program did otherwise than ours, as far as it is known and can be counted.
struct Software {
  std::string_view name;
  std::string_view about;
  bool matrices = false;        // whole attention matrices: predicted by advise/megatron.h
  double attention_ampere = 0;  // share of the peak that its attention reached on an A100; 0: as ours
  double attention_hopper = 0;  // the same on an H100
  double forward_bytes = 0;     // more bytes than ours moves, of an element of the residual stream in a block, forward
  double backward_bytes = 0;    // and backward,
  double logit_bytes = 0;       // and of a logit,
  double parameter_bytes = 0;   // and of a parameter, for each micro-batch
};

/// What is computed again beside what the layout says: shares of the blocks' forward pass.
struct ComputedAgain {
  double products = 0, attention = 0;
  double bytes = 0;  // that its other kernels move, of an element of the residual stream in a block
};

struct PublishedSource {
  std::string_view name;
  std::string_view where;
  bool opened = true;  // false: read in a transcription
};

struct PublishedRun {
  const PublishedSource* source = nullptr;
  const Software* software = nullptr;
  std::string_view name;
  std::string_view cluster;        // published_cluster()
  std::string_view model, layout;  // keys of a run, as in a TOML file, with blanks for line ends
  double rate = 0, seconds = 0;    // what is published: tokens/s of all GPUs, or seconds of a step
  std::string_view apart = {};     // why it does not count in the mean: what is known to be otherwise
  ComputedAgain again = {};
};

std::span<const PublishedRun> published_runs();

/// A cluster that --clusters lists, or one of those runs that is like such a one but for what is said there.
ClusterConfig published_cluster(std::string_view name);

}  // namespace tokamak
