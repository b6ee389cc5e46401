#include "config/foreign_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace tokamak {
namespace {

// Names as of nanoGPT's train.py, llm.c's train_gpt2cu --help, torchtitan's configuration, Megatron-LM's
// arguments.py, and TrainingArguments, PretrainedConfig and GenerationConfig of Transformers.
constexpr ForeignName kNames[] = {
    {.ours = "device", .nanogpt = "device", .hugging_face = "use_cpu", .others = "accelerator"},
    {.ours = "model.preset", .torchtitan = "model.flavor", .others = "model_size"},
    {.ours = "model.from",
     .nanogpt = "init_from",
     .llmc = "-e",
     .torchtitan = "checkpoint.initial_load_path",
     .megatron = "--load, --pretrained-checkpoint",
     .hugging_face = "model_name_or_path",
     .note = "a folder; a run that stopped goes on by itself"},
    {.ours = "model.family", .torchtitan = "model.name", .hugging_face = "model_type", .others = "arch, architecture"},
    {.ours = "model.layers",
     .nanogpt = "n_layer",
     .torchtitan = "n_layers",
     .megatron = "--num-layers",
     .hugging_face = "num_hidden_layers, n_layer",
     .others = "nlayers, num_blocks, depth"},
    {.ours = "model.heads",
     .nanogpt = "n_head",
     .torchtitan = "n_heads",
     .megatron = "--num-attention-heads",
     .hugging_face = "num_attention_heads, n_head",
     .others = "num_heads, nheads"},
    {.ours = "model.width",
     .nanogpt = "n_embd",
     .torchtitan = "dim",
     .megatron = "--hidden-size",
     .hugging_face = "hidden_size, n_embd",
     .others = "d_model, embed_dim, n_embed, model_dim"},
    {.ours = "model.context",
     .nanogpt = "block_size",
     .llmc = "-t",
     .torchtitan = "training.seq_len",
     .megatron = "--seq-length, --max-position-embeddings",
     .hugging_face = "max_position_embeddings, n_positions, max_length",
     .others = "sequence_length, max_seq_len, max_seq_length, context_length, n_ctx"},
    {.ours = "model.vocab",
     .nanogpt = "vocab_size",
     .torchtitan = "vocab_size",
     .megatron = "--vocab-size",
     .hugging_face = "vocab_size",
     .others = "n_vocab, padded_vocab_size",
     .note = "the data's where none is given; it is padded inside"},
    {.ours = "model.bias", .nanogpt = "bias", .megatron = "--disable-bias-linear", .note = "--no-model.bias: off"},
    {.ours = "model.tie_weights",
     .megatron = "--untie-embeddings-and-output-weights",
     .hugging_face = "tie_word_embeddings",
     .others = "weight_tying",
     .note = "--no-model.tie_weights: off"},
    {.ours = "model.dropout",
     .nanogpt = "dropout",
     .megatron = "--hidden-dropout, --attention-dropout",
     .hugging_face = "resid_pdrop, embd_pdrop, attn_pdrop, attention_dropout"},
    {.ours = "model.kv_heads",
     .torchtitan = "n_kv_heads",
     .megatron = "--num-query-groups",
     .hugging_face = "num_key_value_heads",
     .others = "n_kv_head"},
    {.ours = "model.head_width", .torchtitan = "head_dim", .megatron = "--kv-channels", .hugging_face = "head_dim"},
    {.ours = "model.hidden",
     .torchtitan = "hidden_dim",
     .megatron = "--ffn-hidden-size",
     .hugging_face = "intermediate_size, n_inner",
     .others = "d_ff, mlp_dim, ffn_dim"},
    {.ours = "model.window", .megatron = "--window-size", .hugging_face = "sliding_window"},
    {.ours = "model.qkv_bias", .megatron = "--add-qkv-bias", .hugging_face = "attention_bias"},
    {.ours = "model.qk_norm", .torchtitan = "qk_norm", .megatron = "--qk-layernorm"},
    {.ours = "model.norm_eps",
     .torchtitan = "norm_eps",
     .megatron = "--norm-epsilon, --layernorm-epsilon",
     .hugging_face = "rms_norm_eps"},
    {.ours = "model.rope_theta",
     .torchtitan = "rope_theta",
     .megatron = "--rotary-base",
     .hugging_face = "rope_theta",
     .others = "rope_base"},
    {.ours = "model.activation", .hugging_face = "hidden_act, activation_function"},
    {.ours = "data.path",
     .nanogpt = "dataset",
     .llmc = "-i",
     .torchtitan = "training.dataset_path, training.dataset",
     .megatron = "--data-path, --train-data-path",
     .hugging_face = "dataset_name, train_file",
     .others = "data_dir, input_bin, train_data, data",
     .note = "a folder of `tokamak prepare`, or files"},
    {.ours = "data.val_path",
     .llmc = "-j",
     .torchtitan = "validation.dataset_path",
     .megatron = "--valid-data-path",
     .hugging_face = "validation_file",
     .others = "input_val_bin, val_data, eval_data"},
    {.ours = "data.tokenizer",
     .torchtitan = "model.tokenizer_path, model.hf_assets_path",
     .megatron = "--tokenizer-model",
     .hugging_face = "tokenizer_name",
     .others = "tokenizer"},
    {.ours = "data.mask_documents", .megatron = "--reset-attention-mask", .others = "document_mask, intra_doc_mask"},
    {.ours = "data.workers",
     .megatron = "--num-workers",
     .hugging_face = "dataloader_num_workers",
     .others = "num_workers"},
    {.ours = "optimizer.name",
     .torchtitan = "optimizer.name",
     .megatron = "--optimizer",
     .hugging_face = "optim",
     .others = "optimizer_type"},
    {.ours = "optimizer.lr",
     .nanogpt = "learning_rate",
     .llmc = "-l",
     .torchtitan = "optimizer.lr",
     .megatron = "--lr",
     .hugging_face = "learning_rate",
     .others = "max_lr, peak_lr"},
    {.ours = "optimizer.min_lr_ratio",
     .nanogpt = "min_lr",
     .llmc = "-q",
     .torchtitan = "lr_scheduler.min_lr_factor, lr_scheduler.lr_min",
     .megatron = "--min-lr",
     .others = "final_lr_frac, lr_min_ratio, learning_rate_decay_frac",
     .note = "a share of optimizer.lr"},
    {.ours = "optimizer.beta1",
     .nanogpt = "beta1",
     .torchtitan = "optimizer.beta1",
     .megatron = "--adam-beta1",
     .hugging_face = "adam_beta1"},
    {.ours = "optimizer.beta2",
     .nanogpt = "beta2",
     .torchtitan = "optimizer.beta2",
     .megatron = "--adam-beta2",
     .hugging_face = "adam_beta2"},
    {.ours = "optimizer.eps",
     .torchtitan = "optimizer.eps",
     .megatron = "--adam-eps",
     .hugging_face = "adam_epsilon",
     .others = "epsilon"},
    {.ours = "optimizer.momentum", .megatron = "--sgd-momentum"},
    {.ours = "optimizer.weight_decay",
     .nanogpt = "weight_decay",
     .llmc = "-c",
     .torchtitan = "optimizer.weight_decay",
     .megatron = "--weight-decay",
     .hugging_face = "weight_decay",
     .others = "wd"},
    {.ours = "optimizer.clip",
     .nanogpt = "grad_clip",
     .torchtitan = "training.max_norm",
     .megatron = "--clip-grad",
     .hugging_face = "max_grad_norm",
     .others = "gradient_clip_val, clip_grad_norm, gradient_clipping"},
    {.ours = "optimizer.warmup_steps",
     .nanogpt = "warmup_iters",
     .llmc = "-u",
     .torchtitan = "lr_scheduler.warmup_steps",
     .megatron = "--lr-warmup-iters",
     .hugging_face = "warmup_steps, warmup_ratio",
     .others = "warmup",
     .note = "in optimizer steps"},
    {.ours = "optimizer.schedule",
     .nanogpt = "decay_lr",
     .llmc = "-k",
     .torchtitan = "lr_scheduler.decay_type",
     .megatron = "--lr-decay-style",
     .hugging_face = "lr_scheduler_type",
     .others = "lr_schedule, scheduler, lr_scheduler"},
    {.ours = "optimizer.schedule_steps",
     .nanogpt = "lr_decay_iters",
     .torchtitan = "lr_scheduler.total_steps",
     .megatron = "--lr-decay-iters"},
    {.ours = "optimizer.wsd_decay_share",
     .torchtitan = "lr_scheduler.decay_ratio",
     .megatron = "--lr-wsd-decay-iters",
     .others = "cooldown_frac, warmdown_ratio",
     .note = "a share of the schedule's steps"},
    {.ours = "train.out",
     .nanogpt = "out_dir",
     .llmc = "-o",
     .torchtitan = "job.dump_folder",
     .megatron = "--save",
     .hugging_face = "output_dir",
     .others = "save_dir, run_dir"},
    {.ours = "train.steps",
     .nanogpt = "max_iters",
     .llmc = "-x",
     .torchtitan = "training.steps",
     .megatron = "--train-iters",
     .hugging_face = "max_steps",
     .others = "num_steps, iterations, num_iterations, iters, total_steps",
     .note = "optimizer steps"},
    {.ours = "train.epochs", .hugging_face = "num_train_epochs", .others = "num_epochs, max_epochs"},
    {.ours = "train.tokens", .others = "num_tokens, total_tokens, max_tokens, train_tokens"},
    {.ours = "train.batch",
     .nanogpt = "batch_size",
     .llmc = "-b",
     .torchtitan = "training.local_batch_size, training.batch_size",
     .megatron = "--micro-batch-size",
     .hugging_face = "per_device_train_batch_size",
     .others = "device_batch_size, bs, mbs, train_batch_size, micro_batch",
     .note = "sequences of a micro-batch, of all ranks together"},
    {.ours = "train.total_batch",
     .nanogpt = "gradient_accumulation_steps",
     .llmc = "-d",
     .torchtitan = "training.global_batch_size",
     .megatron = "--global-batch-size",
     .hugging_face = "gradient_accumulation_steps",
     .others = "grad_accum_steps, grad_accum, gas, accumulate_grad_batches, total_batch_size",
     .note = "tokens of an optimizer step; accumulation follows from it"},
    {.ours = "train.ramp", .megatron = "--rampup-batch-size"},
    {.ours = "train.seed", .torchtitan = "debug.seed, training.seed", .megatron = "--seed", .hugging_face = "seed"},
    {.ours = "train.eval_every",
     .nanogpt = "eval_interval",
     .llmc = "-v",
     .torchtitan = "validation.freq",
     .megatron = "--eval-interval",
     .hugging_face = "eval_steps",
     .others = "val_loss_every, val_check_interval, evaluation_interval"},
    {.ours = "train.eval_batches",
     .nanogpt = "eval_iters",
     .llmc = "-m",
     .torchtitan = "validation.steps",
     .megatron = "--eval-iters",
     .others = "val_max_steps, limit_val_batches"},
    {.ours = "train.patience", .hugging_face = "early_stopping_patience"},
    {.ours = "train.sample_every", .llmc = "-s"},
    {.ours = "train.sample_tokens", .llmc = "-g"},
    {.ours = "train.checkpoint_every",
     .llmc = "-n",
     .torchtitan = "checkpoint.interval",
     .megatron = "--save-interval",
     .hugging_face = "save_steps",
     .others = "save_interval, save_every, ckpt_interval, checkpoint_interval"},
    {.ours = "train.keep_checkpoints",
     .llmc = "-nk",
     .torchtitan = "checkpoint.keep_latest_k",
     .hugging_face = "save_total_limit"},
    {.ours = "train.keep_every", .llmc = "-nm"},
    {.ours = "train.keep_best", .nanogpt = "always_save_checkpoint", .hugging_face = "load_best_model_at_end"},
    {.ours = "train.log_every",
     .nanogpt = "log_interval",
     .torchtitan = "metrics.log_freq",
     .megatron = "--log-interval",
     .hugging_face = "logging_steps"},
    {.ours = "train.tensorboard",
     .nanogpt = "wandb_log",
     .torchtitan = "metrics.enable_tensorboard, metrics.enable_wandb",
     .megatron = "--tensorboard-dir",
     .hugging_face = "report_to",
     .others = "wandb",
     .note = "`tokamak report` draws a run without it"},
    {.ours = "train.resume",
     .llmc = "-y",
     .torchtitan = "checkpoint.enable, checkpoint.enable_checkpoint",
     .hugging_face = "resume_from_checkpoint",
     .others = "auto_resume",
     .note = "on by itself"},
    {.ours = "compile.precision",
     .nanogpt = "dtype",
     .torchtitan = "training.mixed_precision_param, training.dtype",
     .megatron = "--bf16, --fp16",
     .hugging_face = "bf16, fp16, tf32, torch_dtype",
     .others = "precision, mixed_precision, amp"},
    {.ours = "compile.deterministic",
     .torchtitan = "debug.deterministic, training.deterministic",
     .megatron = "--deterministic-mode",
     .hugging_face = "full_determinism",
     .note = "on by itself"},
    {.ours = "compile.recompute",
     .llmc = "-r",
     .torchtitan = "activation_checkpoint.mode",
     .megatron = "--recompute-granularity, --recompute-activations",
     .hugging_face = "gradient_checkpointing",
     .others = "activation_checkpointing, grad_checkpointing, checkpoint_activations",
     .note = "what fits a GPU is chosen with compile.memory_budget_gib"},
    {.ours = "compile.disable_passes",
     .nanogpt = "compile",
     .torchtitan = "compile.enable, training.compile",
     .hugging_face = "torch_compile",
     .note = "every step is compiled; this leaves passes out"},
    {.ours = "mesh.data",
     .torchtitan = "parallelism.data_parallel_replicate_degree",
     .hugging_face = "nproc_per_node, num_processes",
     .others = "dp, ddp, dp_size, data_parallel, data_parallel_size, gpus, num_gpus, devices, world_size",
     .note = "ranks that the batch is divided over"},
    {.ours = "mesh.zero",
     .llmc = "-z",
     .torchtitan = "parallelism.data_parallel_shard_degree",
     .megatron = "--use-distributed-optimizer, --use-torch-fsdp2",
     .hugging_face = "fsdp, deepspeed",
     .others = "zero_stage, stage, fsdp2, sharding_strategy",
     .note = "DDP: 0, a distributed optimizer: 1, FSDP: 3"},
    {.ours = "mesh.tensor",
     .torchtitan = "parallelism.tensor_parallel_degree",
     .megatron = "--tensor-model-parallel-size",
     .others = "tp, tp_size, tensor_parallel, tensor_parallel_size"},
    {.ours = "mesh.sequence", .torchtitan = "parallelism.enable_sequence_parallel", .megatron = "--sequence-parallel"},
    {.ours = "mesh.async_tensor",
     .torchtitan = "parallelism.enable_async_tensor_parallel",
     .megatron = "--tp-comm-overlap"},
    {.ours = "mesh.context",
     .torchtitan = "parallelism.context_parallel_degree",
     .megatron = "--context-parallel-size",
     .others = "cp, cp_size, context_parallel, sp"},
    {.ours = "mesh.pipe",
     .torchtitan = "parallelism.pipeline_parallel_degree",
     .megatron = "--pipeline-model-parallel-size",
     .others = "pp, pp_size, pipeline_parallel, pipeline_parallel_size"},
    {.ours = "mesh.schedule", .torchtitan = "parallelism.pipeline_parallel_schedule"},
    {.ours = "mesh.interleave",
     .megatron = "--num-layers-per-virtual-pipeline-stage, --num-virtual-stages-per-pipeline-rank",
     .others = "vpp",
     .note = "chunks of layers of a stage"},
    {.ours = "prompt", .nanogpt = "start", .others = "text, input"},
    {.ours = "tokens",
     .nanogpt = "max_new_tokens",
     .hugging_face = "max_new_tokens, max_length",
     .others = "n_predict, max_tokens, num_tokens, length"},
    {.ours = "samples",
     .nanogpt = "num_samples",
     .hugging_face = "num_return_sequences",
     .others = "n, num_completions, completions"},
    {.ours = "temperature", .others = "temp"},
};

constexpr std::string_view kPrograms[] = {"nanoGPT", "llm.c", "torchtitan", "Megatron-LM", "Hugging Face"};

std::vector<std::string_view> columns_of(const ForeignName& name) {
  return {name.nanogpt, name.llmc, name.torchtitan, name.megatron, name.hugging_face};
}

std::vector<std::string_view> split_names(std::string_view list) {
  std::vector<std::string_view> names;
  while (!list.empty()) {
    size_t end = std::min(list.find(", "), list.size());
    names.push_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 2, list.size()));
  }
  return names;
}

// As keys are compared: llm.c's keep their "-", all others are without dashes before and within them.
std::string as_key(std::string_view name) {
  std::string key(name.starts_with("--") ? name.substr(2) : name);
  if (!key.starts_with('-')) std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

std::string last_part(const std::string& key) { return key.substr(key.find_last_of('.') + 1); }

bool is_called(const ForeignName& row, const std::string& key, bool with_section) {
  std::vector<std::string_view> lists = columns_of(row);
  lists.push_back(row.others);
  for (std::string_view list : lists)
    for (std::string_view name : split_names(list)) {
      std::string known = as_key(name);
      if (with_section ? known == key : last_part(known) == last_part(key)) return true;
    }
  return false;
}

// The only row of that name whose option is known; null: none, or several.
const ForeignName* find_row(const std::string& key, bool with_section, const std::vector<std::string>& known) {
  const ForeignName* found = nullptr;
  for (const ForeignName& row : kNames) {
    if (std::ranges::find(known, row.ours) == known.end() || !is_called(row, key, with_section)) continue;
    if (found) return nullptr;
    found = &row;
  }
  return found;
}

std::string as_code(std::string_view list) {
  std::string text;
  for (std::string_view name : split_names(list)) text += fmt::format("{}`{}`", text.empty() ? "" : ", ", name);
  return text;
}

// What a row says, in parts between which a line may end.
std::vector<std::string> pieces_of(const ForeignName& row) {
  std::vector<std::string> pieces;
  std::vector<std::string_view> columns = columns_of(row);
  for (size_t i = 0; i < columns.size(); ++i)
    if (!columns[i].empty()) pieces.push_back(fmt::format("{}: {}", kPrograms[i], columns[i]));
  if (!row.others.empty()) pieces.push_back(fmt::format("elsewhere: {}", row.others));
  if (!row.note.empty()) pieces.push_back(fmt::format("here: {}", row.note));
  return pieces;
}

// Lines that end between words.
std::string wrapped(std::string_view begin, const std::vector<std::string>& pieces) {
  constexpr size_t kColumn = 26, kWidth = 100;
  std::istringstream words(fmt::format("{}", fmt::join(pieces, "; ")));
  std::string text, line = fmt::format("{:<{}}", begin, kColumn - 1);
  for (std::string word; words >> word;) {
    if (line.size() + 1 + word.size() > kWidth) {
      text += line + "\n";
      line = std::string(kColumn - 1, ' ');
    }
    line += " " + word;
  }
  return text + line + "\n";
}

}  // namespace

std::span<const ForeignName> foreign_names() { return kNames; }

std::string foreign_hint(std::string_view typed, const std::vector<std::string>& known) {
  std::string key = as_key(typed);
  const ForeignName* row = find_row(key, true, known);
  if (!row) row = find_row(key, false, known);
  if (!row || last_part(std::string(row->ours)) == last_part(key)) return "";  // the right name is near anyway
  return fmt::format("; that is '{}' here{}{}", row->ours, row->note.empty() ? "" : ": ", row->note);
}

std::string foreign_names_text() {
  std::string text;
  for (const ForeignName& row : kNames) text += wrapped(row.ours, pieces_of(row));
  return text;
}

std::string foreign_names_markdown() {
  std::string text = "| here |";
  for (std::string_view program : kPrograms) text += fmt::format(" {} |", program);
  text += " what differs |\n|---|---|---|---|---|---|---|\n";
  for (const ForeignName& row : kNames) {
    text += fmt::format("| `{}` |", row.ours);
    for (std::string_view names : columns_of(row)) text += fmt::format(" {} |", as_code(names));
    text += fmt::format(" {} |\n", row.note);
  }
  return text;
}

}  // namespace tokamak
