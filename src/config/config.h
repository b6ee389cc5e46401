// What a run is made of, as plain structs. Each struct has one visit() in config/visit.h's style, from which parsing,
// --help, printing and the documentation are derived; defaults are the initialisers here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tokamak {

struct ModelConfig {
  std::string preset;  // gpt2-124m, gpt2-355m, gpt2-774m, gpt2-1558m; empty: the sizes below
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t width = 768;     // C
  int64_t context = 1024;  // T
  int64_t vocab = 50257;   // V; 0: the data's
  bool bias = true;
  bool tie_weights = true;
  double dropout = 0.0;
};

struct DataConfig {
  std::vector<std::string> path = {"data"};  // entries of a mixture, each with its weight: see data/data_path.h
  std::vector<std::string> val_path;         // for validation; empty: the val splits of prepared folders
  std::string tokenizer;                     // folder with the tokenizer files; empty: the first prepared folder
  std::string format = "auto";               // of files named in path: see data/open_source.h
  std::string token_type = "uint16";         // of tokens in files that do not say
  std::string field;                         // of a container with several arrays; empty: the only one
  int64_t end_of_text = -1;                  // id of the marker between documents; -1: the data's or the tokenizer's
  bool mask_documents = false;               // attention and loss stay within each document of a sample
  int64_t workers = 2;                       // threads that read; 0: none, batches are made when they are needed
};

struct OptimizerConfig {
  double lr = 6e-4;
  double min_lr_ratio = 0.1;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;  // matrices only
  double clip = 1.0;          // global gradient norm; 0: off
  int64_t warmup_steps = 100;
};

struct TrainConfig {
  std::string out = "run";  // run folder
  int64_t steps = 1000;
  int64_t batch = 4;        // B, sequences in a micro-batch
  int64_t total_batch = 0;  // tokens per optimizer step; 0: one micro-batch
  int64_t seed = 1337;
  int64_t eval_every = 250;  // steps; 0: never
  int64_t eval_batches = 20;
  int64_t sample_every = 0;
  int64_t sample_tokens = 128;
  int64_t checkpoint_every = 250;
  int64_t keep_checkpoints = 2;
  int64_t log_every = 1;
  bool resume = true;  // continue from the newest good checkpoint in `out`
};

struct CompileConfig {
  std::string precision = "auto";             // fp32, tf32, bf16, fp16 or auto: the fastest on this target but fp16
  double loss_scale = 65536;                  // with fp16: what the loss is multiplied by at first
  int64_t loss_scale_growth_interval = 2000;  // good steps after which the scale doubles
  bool low_residual = true;  // with bf16 and fp16: the residual stream and its gradient are in that type too
  bool fuse = true;
  bool flash_attention = true;
  bool pad_vocab = true;
  bool fused_optimizer = true;
  bool chunked_classifier = true;  // logits, loss and their gradients a chunk of rows at a time
  bool async = true;               // never wait for a value that is only printed
  bool cuda_graph = true;          // record a program's launches once and replay them
  bool deterministic = true;       // the same bits from run to run
  int64_t streams = 1;             // 2: gradients that only the update reads are computed beside the others
  double memory_budget_gib = 0;    // activations are recomputed to fit; 0: no limit
  std::vector<std::string> disable_passes;
};

struct RunConfig {
  ModelConfig model;
  DataConfig data;
  OptimizerConfig optimizer;
  TrainConfig train;
  CompileConfig compile;
  std::string device = "auto";  // auto, cpu, cuda or cuda:<number>; auto: the first GPU when there is one
  int64_t threads = 0;          // CPU threads; 0: all
};

}  // namespace tokamak
