#include "config/visit.h"

#include "config/config.h"
#include "config/preset.h"

namespace tokamak {

// Upper ends are far above any sensible model; validate() looks at their products.
void visit(FieldList& v, ModelConfig& c) {
  v.preset("preset", c.preset, "a named size; keys given beside it override it", preset_choices(),
           [&c] { apply_preset(c); });
  v("from", c.from, "folder of a model, run or checkpoint whose weights training begins with; empty: none");
  v("family", c.family, "family of models: gpt2, llama or modern");
  v("layers", c.layers, "transformer blocks", between(1, 10000));
  v("heads", c.heads, "attention heads; they must divide the width, unless model.head_width is given",
    between(1, 10000));
  v("width", c.width, "size of the residual stream", between(1, 1 << 20));
  v("context", c.context, "longest sequence, in tokens", between(1, 1 << 24));
  v("vocab", c.vocab, "vocabulary size; 0: the data's, which `train` also takes when none is given",
    between(0, 1 << 24));
  v("bias", c.bias, "gpt2: biases in linear layers and norms");
  v("tie_weights", c.tie_weights, "the token embedding is also the last layer's matrix");
  v("dropout", c.dropout, "chance that a value is dropped in training", from_up_to(0, 1));
  v("kv_heads", c.kv_heads, "llama, modern: heads of keys and values, each for a group of heads; 0: as many as heads",
    between(0, 10000));
  v("head_width", c.head_width, "llama, modern: width of a head; 0: width / heads", between(0, 1 << 16));
  v("hidden", c.hidden, "llama, modern: width between the MLP's matrices; 0: 4 x the width, with a gate 8/3 of it",
    between(0, 1 << 22));
  v("window", c.window, "llama, modern: how many of the last tokens, itself included, a token attends to; 0: all",
    between(0, 1 << 24));
  v("qkv_bias", c.qkv_bias, "llama: biases of queries, keys and values, as Qwen2 has them");
  v("qk_norm", c.qk_norm, "llama, modern: RMS norms of each head's queries and keys, as Qwen3 has them");
  v("norm_eps", c.norm_eps, "llama, modern: term of RMS norms against division by zero", between(1e-30, 1));
  v("rope_theta", c.rope_theta, "llama, modern: base of the rotary positions' wavelengths", between(1, 1e12));
  v("rope_scaling", c.rope_scaling, "llama, modern: how rotary positions are stretched for longer sequences",
    one_of({std::begin(kRopeScalings), std::end(kRopeScalings)}));
  v("rope_factor", c.rope_factor, "with model.rope_scaling: how far positions are stretched", between(1, 1e6));
  v("rope_low_freq", c.rope_low_freq, "llama3 scaling: turns in the original context below which all is stretched",
    between(1e-6, 1e6));
  v("rope_high_freq", c.rope_high_freq, "llama3 scaling: turns in the original context above which nothing is",
    between(1e-6, 1e6));
  v("rope_original_context", c.rope_original_context, "llama3 scaling: context before it was stretched",
    between(1, 1 << 24));
  v("activation", c.activation, "modern: function of the MLP; relu2: max(x, 0)^2; silu: with a gate",
    one_of({std::begin(kActivations), std::end(kActivations)}));
  v("norm_weights", c.norm_weights, "modern: RMS norms have weights");
  v("embedding_norm", c.embedding_norm, "modern: an RMS norm behind the token embedding");
  v("zero_init", c.zero_init, "modern: matrices that add to the residual stream, and a separate head, begin at zero");
  v("softcap", c.softcap, "modern: logits become cap tanh((logits + shift) / width); 0: they stay", between(0, 1e6));
  v("softcap_shift", c.softcap_shift, "modern: shift of the soft cap", between(-1e6, 1e6));
  v("softcap_width", c.softcap_width, "modern: width of the soft cap; 0: the cap", between(0, 1e6));
  v("window_pattern", c.window_pattern, "modern: layers with model.window (S) and without (L), again and again: SSSL");
  v("window_warmup_steps", c.window_warmup_steps,
    "modern: steps in which training's windows grow from a quarter to all of their length", at_least(0));
  v("value_embeddings", c.value_embeddings,
    "modern: every so many layers, from the last on, take values of tokens alone; 0: none", between(0, 10000));
  v("skip_blocks", c.skip_blocks, "modern: what block i gives is added to what block layers-1-i takes, times a scale");
  v("x0_mix", c.x0_mix, "modern: each block takes the residual stream and the embeddings, each times a scale");
}

void visit(FieldList& v, DataConfig& c) {
  v("path", c.path, "a folder of `tokamak prepare`, files of tokens or text; several: web@0.7,books/*.txt@0.3");
  v("val_path", c.val_path, "validation data in the same forms; empty: what `tokamak prepare` kept for it");
  v("tokenizer", c.tokenizer, "folder of the tokenizer's files; empty: the data folder");
  v("mask_documents", c.mask_documents, "attention and loss stay within each document of a sample");
  v("format", c.format, "format of files in data.path; auto: by their names");
  v("token_type", c.token_type, "type of tokens in files that do not say", one_of({"uint16", "uint32"}));
  v("field", c.field, "name of the tokens in a container that holds several arrays; empty: the only one");
  v("end_of_text", c.end_of_text, "id of the token between documents; -1: the data's or the tokenizer's",
    between(-1, 1 << 24));
  v("workers", c.workers, "threads that read and encode ahead; 0: none", between(0, 256));
}

void visit(FieldList& v, OptimizerConfig& c) {
  // These become f32: far from its ends, and what must be below 1 is so there as well.
  constexpr double kLeast = 1e-30, kMost = 1e30, kBelowOne = 0.9999999;
  v("name", c.name, "rule of the update: adamw, adamw8bit, adafactor, sgd, lion, muon or normuon");
  v("state_type", c.state_type, "number format of what the rule keeps of each parameter's elements",
    one_of({"f32", "bf16"}));
  v("lr", c.lr, "highest learning rate", between(0, kMost));
  v("min_lr_ratio", c.min_lr_ratio, "last learning rate as a share of the highest", between(0, 1));
  v("beta1", c.beta1, "decay of the gradient's mean; with lion, its share in the step", between(0, kBelowOne));
  v("beta2", c.beta2, "decay of the mean of squares; with lion, that of the gradient's", between(0, kBelowOne));
  v("eps", c.eps, "AdamW's term against division by zero", between(kLeast, kMost));
  v("momentum", c.momentum, "sgd's decay of the sum of gradients", from_up_to(0, 1));
  v("muon_momentum", c.muon_momentum, "muon's and normuon's decay of the gradient's mean", from_up_to(0, 1));
  v("nesterov", c.nesterov, "muon and normuon look ahead by one more step of the mean: Nesterov's momentum");
  v("muon_scale", c.muon_scale, "size of muon's updates; rms: as large as AdamW's, for its learning rates",
    one_of({"rms", "original"}));
  v("adamw_lr_ratio", c.adamw_lr_ratio,
    "with muon: rate of the parameters that are AdamW's, as a share of optimizer.lr", between(0, kMost));
  v("weight_decay", c.weight_decay, "decay of the matrices; vectors have none", between(0, kMost));
  v("cautious_decay", c.cautious_decay,
    "adafactor, lion, muon: only what the gradient's step makes smaller decays as well");
  v("groups", c.groups, "rates by parameters' names, 'pattern: lr=SHARE decay=NUMBER'; the last that fits counts");
  v("clip", c.clip, "largest global gradient norm; 0: no clipping", between(0, kMost));
  v("ema", c.ema, "decay of a mean of the weights over steps, kept beside them for --weights=ema; 0: none",
    between(0, kBelowOne));
  v("warmup_steps", c.warmup_steps, "steps of linear warm-up before the schedule", at_least(0));
  v("schedule", c.schedule, "how the learning rate goes on; wsd: it stays, and decays at the end",
    one_of({"cosine", "linear", "1-sqrt", "wsd", "inverse_sqrt", "constant"}));
  v("schedule_steps", c.schedule_steps,
    "steps after which the schedule has its last rate, and keeps it; 0: train.steps", at_least(0));
  v("wsd_decay_share", c.wsd_decay_share, "with wsd: share of the schedule's steps in which the rate decays",
    between(0, 1));
  v("wsd_decay", c.wsd_decay, "with wsd: how it decays", one_of({"1-sqrt", "linear", "cosine"}));
}

void visit(FieldList& v, TrainConfig& c) {
  v("out", c.out, "run folder: checkpoints, metrics, samples");
  v.alternatives("length of the run", [&] {
    v("steps", c.steps, "optimizer steps; 0: as many as train.epochs or train.tokens ask for", at_least(0));
    v("epochs", c.epochs, "instead of train.steps: passes over the windows of the training data", between(0, 1e9));
    v("tokens", c.tokens, "instead of train.steps: tokens to train on", at_least(0));
  });
  v("batch", c.batch, "sequences in a micro-batch", between(1, 1 << 20));
  v("total_batch", c.total_batch, "tokens per optimizer step, by accumulation; 0: one micro-batch", at_least(0));
  v("ramp", c.ramp, "up to a step they are smaller, or sequences shorter: 'STEP: total_batch=N sequence=N'");
  v("seed", c.seed, "seed of initial weights, dropout, data order and samples", at_least(0));
  v("eval_every", c.eval_every, "steps between validations; 0: never", at_least(0));
  v("eval_batches", c.eval_batches,
    "micro-batches of a validation; with mesh.slots: as many times the sequences of a step", at_least(1));
  v("tasks", c.tasks, "benchmarks in training: KIND:FILE, KIND@SHOTS:FILE or list:FILE; see docs/evaluation.md");
  v("tasks_every", c.tasks_every, "steps between them; 0: only at the end", at_least(0));
  v("tasks_limit", c.tasks_limit, "questions from the beginning of each task; 0: all", at_least(0));
  v("tasks_cut_contexts", c.tasks_cut_contexts, "a question that is too long loses its beginning; else it is an error");
  v("patience", c.patience, "validations without a lower loss after which training ends early; 0: never", at_least(0));
  v("min_improvement", c.min_improvement, "with train.patience: how much lower a loss has to be, in nats",
    between(0, 1e6));
  v("sample_every", c.sample_every, "steps between samples of text; 0: never", at_least(0));
  v("sample_tokens", c.sample_tokens, "tokens of a sample", at_least(1));
  v("checkpoint_every", c.checkpoint_every, "steps between checkpoints; 0: only at the end", at_least(0));
  v("keep_checkpoints", c.keep_checkpoints, "newest checkpoints that are kept, beside the newest one known to be good",
    at_least(1));
  v("keep_every", c.keep_every, "checkpoints of steps that are multiples of this are kept, too; 0: none", at_least(0));
  v("keep_best", c.keep_best, "keep the checkpoint with the lowest validation loss, too, and call it checkpoints/best");
  v("background_saves", c.background_saves, "go on with steps while a copy of the state is written");
  v("archive", c.archive, "folder that finished checkpoints are copied to, too, and resumed from; empty: none");
  v("log_every", c.log_every, "steps between lines of the log", at_least(1));
  v("tensorboard", c.tensorboard, "also write event files for TensorBoard, into the folder tensorboard of the run");
  v("digest_every", c.digest_every, "steps between digests of loss, norm and parameters in metrics.jsonl; 0: never",
    at_least(0));
  v("verify_every", c.verify_every, "steps between those whose slots other data ranks compute again; 0: never",
    at_least(0));
  v("shadow_every", c.shadow_every, "with fp8: steps between those whose gradients are compared with bf16's; 0: never",
    at_least(0));
  v("shadow_bound", c.shadow_bound, "least cosine of a kind's two; below it the products that cause it go on in bf16",
    between(-1, 1));
  v("grace_seconds", c.grace_seconds, "seconds from SIGTERM to SIGKILL where the run may be preempted; 0: not known",
    at_least(0));
  v("resume", c.resume, "continue from the newest good checkpoint in the run folder");
}

void visit(FieldList& v, CompileConfig& c) {
  v("precision", c.precision, "number format of the matrix products; auto: the fastest here of fp32, tf32 and bf16",
    one_of({kPrecisionNames.begin(), kPrecisionNames.end()}));
  v("low_residual", c.low_residual,
    "with 16-bit precisions, the residual stream and its gradient are in that type too");
  v("loss_scale", c.loss_scale, "with fp16: what the loss is multiplied by at first", between(1, 1e9));
  v("loss_scale_growth_interval", c.loss_scale_growth_interval,
    "with fp16: steps without overflow after which the scale doubles", at_least(1));
  v("async", c.async, "never wait for a value that is only printed");
  v("cuda_graph", c.cuda_graph, "record a step's launches once and replay them, where the device can");
  v("chain", c.chain, "text: kernels wait for values, not for the kernels before; on Hopper and later");
  v("strict", c.strict, "refuse a step with an op that the device has no kernel for and the host would run, slowly");
  v("streams", c.streams, "2: gradients of parameters beside the others, where the device can", between(1, 2));
  v("deterministic", c.deterministic, "the same bits from run to run; off: attention's gradient is faster on a GPU");
  v("memory_budget_gib", c.memory_budget_gib, "activations are recomputed to fit into this many GiB; 0: no limit",
    at_least(0));
  v("recompute", c.recompute,
    "activations computed again; auto: by the budget; selective: no matrix products; full: all",
    one_of({std::begin(kRecompute), std::end(kRecompute)}));
  v("fp8_attention", c.fp8_attention, "with fp8: products read attention's result and gradient in eight bits, too");
  v("fp8_except", c.fp8_except, "with fp8: weights whose products stay in bf16, as a shadow names them: mlp.c_fc,wte");
  v("disable_passes", c.disable_passes, "names of passes that are skipped");
}

void visit(FieldList& v, MeshConfig& c) {
  constexpr int64_t kMost = 1 << 20;
  v("pipe", c.pipe, "stages of a pipeline that the layers are divided into", between(1, kMost));
  v("data", c.data, "ranks that the batch is divided over; 0: what the others leave", between(0, kMost));
  v("context", c.context, "ranks that each sequence is divided over", between(1, kMost));
  v("tensor", c.tensor, "ranks that each matrix is divided over", between(1, kMost));
  v("sequence", c.sequence, "tensor ranks divide each sequence between matrices, where their number divides it");
  v("async_tensor", c.async_tensor, "long products of rows that tensor ranks gather begin with a rank's own, on GPUs");
  v("zero", c.zero, "data ranks divide 1 optimizer states (bf16, fp16: and parameters), 2 also gradients, 3 all",
    between(0, 3));
  v("bucket_mib", c.bucket_mib, "MiB up to which collectives of gradients and parameters are joined; 0: none are",
    between(0, kMost));
  v("mailbox_mib", c.mailbox_mib, "MiB through which GPUs of one machine copy to each other; 0: all goes by NCCL",
    between(0, kMost));
  v("schedule", c.schedule, "order of a pipeline's work: gpipe, 1f1b, interleaved or zero_bubble",
    one_of({std::begin(kPipeSchedules), std::end(kPipeSchedules)}));
  v("interleave", c.interleave, "with mesh.schedule=interleaved: chunks of layers that each stage has",
    between(1, kMost));
  v("chunk_layers", c.chunk_layers, "layers of each chunk of a pipeline, as in 7,8,8,0; empty: so that all take alike");
  v("slots", c.slots, "parts of a step that are added in one order; 0: data x micro-batches on a mesh; 1: none",
    between(0, kMost));
  v("reduce_gradients", c.reduce_gradients,
    "where data ranks add up sums of micro-batches: beside the last one, or in the update",
    one_of({"auto", "last", "update"}));
  v("interface", c.interface, "network interface between machines; empty: that through which rank 0 is reached");
  v("hang_seconds", c.hang_seconds,
    "a rank that waits so long, and three steps, looks who of the others hangs; 0: never", at_least(0));
}

void visit(FieldList& v, RunConfig& c) {
  v("device", c.device, "what to run on: auto (a GPU when there is one), cpu, cuda or cuda:<number>");
  v("threads", c.threads, "CPU threads; 0: all cores", between(0, 65536));
  v.section("model", c.model, "the model's shape");
  v.section("data", c.data, "where the tokens come from");
  v.section("optimizer", c.optimizer, "the optimizer and the learning rate's schedule");
  v.section("train", c.train, "the training loop");
  v.section("compile", c.compile, "what the compiler does to the training step");
  v.section("mesh", c.mesh, "how a step is divided over devices");
}

}  // namespace tokamak
