// All that a program needs which builds a model of ops and trains it: one header for those who use the libraries from
// outside. A model is a function that appends ops to a graph; passes make it fast, a plan gives all a place, and a
// program runs it on a backend. examples/own_model has one from text to samples.
#pragma once

// Graphs, and the ops to build them of.
#include "graph/builder.h"
#include "graph/text.h"
#include "ops/argmax.h"
#include "ops/attention.h"
#include "ops/cross_entropy.h"
#include "ops/dropout.h"
#include "ops/embedding.h"
#include "ops/generate.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/norm.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/rms_norm.h"
#include "ops/rotary.h"

// Gradients, and the update of a step.
#include "autodiff/differentiate.h"
#include "autodiff/optimizer.h"
#include "config/optimizer_config.h"

// From a graph to a program that runs.
#include "backend/cpu/cpu_backend.h"
#include "backend/cuda/cuda_backend.h"
#include "base/error.h"
#include "base/random.h"
#include "exec/program.h"
#include "exec/tensor_store.h"
#include "passes/pass.h"
#include "plan/plan.h"

// Whole runs, as `tokamak train` has them: configurations, tokenizers, data, training, generation.
#include "config/config.h"
#include "config/toml.h"
#include "data/tokenizer.h"
#include "run/generator.h"
#include "run/trainer.h"
