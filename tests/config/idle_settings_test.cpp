#include "config/idle_settings.h"

#include <gtest/gtest.h>

#include "autodiff/optimizer_rule.h"
#include "config/config.h"
#include "config/visit.h"
#include "model/model.h"

namespace tokamak {
namespace {

using Arguments = std::vector<std::string>;

/// On a GPU, and with files of tokens, unless it is said.
std::vector<std::string> notes(const Arguments& arguments, RunPlace place = {.is_gpu = true, .trains = true}) {
  RunConfig run;
  run.compile.precision = Precision::kBf16;
  GivenOptions given = read_options(fields_of(run), arguments);
  return idle_settings(run, given, place, {unread_options(run.model), unread_options(run.optimizer)});
}

/// The key that stands first is told, with this reason; with `cure` behind the arguments, where there is one, it is
/// not.
void expect_told(const Arguments& arguments, const std::string& why, const Arguments& cure,
                 RunPlace place = {.is_gpu = true, .trains = true}) {
  std::string key = arguments[0].substr(2, arguments[0].find('=') - 2);
  std::vector<std::string> told = notes(arguments, place);
  ASSERT_EQ(told.size(), 1u) << key;
  EXPECT_EQ(told[0].rfind(key + " = ", 0), 0u) << told[0];
  EXPECT_NE(told[0].find(" has no effect: "), std::string::npos) << told[0];
  EXPECT_NE(told[0].find(why), std::string::npos) << told[0];
  if (cure.empty()) return;
  Arguments cured = arguments;
  cured.insert(cured.end(), cure.begin(), cure.end());
  for (const std::string& line : notes(cured, place)) EXPECT_NE(line.rfind(key + " = ", 0), 0u) << line;
}

constexpr RunPlace kCpu = {.is_gpu = false, .trains = true};
constexpr RunPlace kPrepared = {.is_gpu = true, .trains = true, .all_prepared = true};

TEST(IdleSettings, OfTheOptimizer) {
  for (const char* key : {"beta1", "beta2"})
    expect_told({std::string("--optimizer.") + key + "=0.5", "--optimizer.name=sgd"}, "is sgd",
                {"--optimizer.name=adamw"});
  expect_told({"--optimizer.eps=1e-7", "--optimizer.name=sgd"}, "is sgd", {"--optimizer.name=adamw"});
  for (const char* setting : {"muon_momentum=0.5", "nesterov=off", "muon_scale=original", "adamw_lr_ratio=0.5"})
    expect_told({std::string("--optimizer.") + setting}, "is adamw", {"--optimizer.name=normuon"});
  expect_told({"--optimizer.cautious_decay"}, "is adamw", {"--optimizer.name=lion"});
  expect_told({"--optimizer.eps=1e-7", "--optimizer.name=lion"}, "is lion", {"--optimizer.name=muon"});
  expect_told({"--optimizer.beta1=0.5", "--optimizer.name=adafactor"}, "is adafactor", {"--optimizer.name=adamw8bit"});
  expect_told({"--optimizer.momentum=0.8"}, "the rule of the update is adamw", {"--optimizer.name=sgd"});
  for (const char* setting :
       {"beta1=0.5", "beta2=0.5", "eps=1e-7", "weight_decay=0.2", "clip=2", "min_lr_ratio=0.5", "warmup_steps=10"})
    expect_told({std::string("--optimizer.") + setting, "--optimizer.lr=0"}, "no parameter changes",
                {"--optimizer.lr=1e-4"});
  expect_told({"--optimizer.momentum=0.5", "--optimizer.lr=0", "--optimizer.name=sgd"}, "no parameter changes",
              {"--optimizer.lr=1e-4"});
}

TEST(IdleSettings, OfTheSchedule) {
  for (const char* setting : {"wsd_decay_share=0.5", "wsd_decay=linear"})
    expect_told({std::string("--optimizer.") + setting}, "the schedule is cosine", {"--optimizer.schedule=wsd"});
  expect_told({"--optimizer.min_lr_ratio=0.5", "--optimizer.schedule=constant"}, "the schedule is constant",
              {"--optimizer.schedule=inverse_sqrt"});
  expect_told({"--optimizer.schedule_steps=500", "--optimizer.schedule=inverse_sqrt"}, "the schedule is inverse_sqrt",
              {"--optimizer.schedule=linear"});
  expect_told({"--optimizer.schedule=linear", "--train.steps=100"}, "warm-up of 100 steps", {"--train.steps=101"});
}

TEST(IdleSettings, AWarmUpThatIsNotShorterThanTheRun) {
  expect_told({"--optimizer.min_lr_ratio=0", "--train.steps=100"}, "warm-up of 100 steps", {"--train.steps=101"});
  EXPECT_TRUE(notes({"--optimizer.lr=1e-3", "--optimizer.warmup_steps=60", "--train.steps=50"}).empty())
      << "the run tells it by itself";
}

TEST(IdleSettings, OfAnotherFamily) {
  for (const char* setting : {"kv_heads=4", "window=9", "qk_norm=true", "rope_theta=1e5", "rope_scaling=linear"})
    expect_told({std::string("--model.") + setting}, "the family is gpt2", {"--model.family=llama"});
  expect_told({"--model.rope_factor=2", "--model.family=llama"}, "model.rope_scaling is none",
              {"--model.rope_scaling=linear"});
  expect_told({"--model.rope_low_freq=2", "--model.family=llama", "--model.rope_scaling=linear"},
              "model.rope_scaling is linear", {"--model.rope_scaling=llama3"});
  for (const char* family : {"llama", "modern"})
    expect_told({"--model.bias=true", std::string("--model.family=") + family}, std::string("the family is ") + family,
                {"--model.family=gpt2"});
  expect_told({"--model.qkv_bias=true", "--model.family=modern"}, "the family is modern", {"--model.family=llama"});
  for (const char* setting :
       {"activation=gelu", "norm_weights=true", "embedding_norm=true", "zero_init=true", "softcap=15",
        "value_embeddings=2", "skip_blocks=true", "x0_mix=true", "window_warmup_steps=9"})
    expect_told({std::string("--model.") + setting}, "the family is gpt2", {"--model.family=modern"});
  for (const char* setting : {"softcap_shift=5", "softcap_width=15"})
    expect_told({std::string("--model.") + setting, "--model.family=modern"}, "logits are not capped",
                {"--model.softcap=11.5"});
  expect_told({"--model.window_pattern=SL", "--model.family=modern"}, "there is no window", {"--model.window=9"});
}

TEST(IdleSettings, FamiliesAndOptimizersListKeys) {
  RunConfig run;
  std::vector<Field> fields = fields_of(run);
  auto expect_keys = [&](std::string_view section, std::string_view name, OwnOptions options) {
    for (std::string_view key : options)
      EXPECT_NE(find_field(fields, std::string(section) + std::string(key)), nullptr) << name << " " << key;
  };
  for (const ModelFamily* family : model_families()) expect_keys("model.", family->name, family->options);
  for (const OptimizerRule* rule : optimizer_rules()) expect_keys("optimizer.", rule->name, rule->options);
}

TEST(IdleSettings, OfTheLoop) {
  for (const char* key :
       {"eval_every", "sample_every", "checkpoint_every", "log_every", "digest_every", "verify_every"})
    expect_told({std::string("--train.") + key + "=500", "--train.steps=499"}, "the run ends after 499 steps",
                {"--train.steps=500"});
  expect_told({"--train.keep_every=40", "--train.checkpoint_every=25", "--train.steps=199"}, "is a multiple",
              {"--train.steps=200"});
  expect_told({"--train.keep_every=40", "--train.checkpoint_every=0", "--train.steps=100"}, "is a multiple",
              {"--train.steps=120"});
  expect_told({"--train.eval_batches=5", "--train.eval_every=0"}, "nothing is validated", {"--train.eval_every=10"});
  expect_told({"--data.val_path=a", "--train.eval_every=0"}, "nothing is validated", {"--train.eval_every=10"});
  expect_told({"--train.sample_tokens=5"}, "no sample is written", {"--train.sample_every=10"});
}

TEST(IdleSettings, OfData) {
  expect_told({"--data.end_of_text=5"}, "neither", {"--data.mask_documents"});
  expect_told({"--data.end_of_text=5"}, "neither", {"--train.sample_every=10"});
  for (const char* setting : {"--data.format=raw", "--data.token_type=uint32", "--data.field=ids"}) {
    expect_told({setting}, "`tokamak prepare`", {}, kPrepared);
    EXPECT_TRUE(notes({setting}).empty());
  }
}

TEST(IdleSettings, OfTheCompiler) {
  expect_told({"--compile.loss_scale=8"}, "precision is bf16", {"--compile.precision=fp16"});
  expect_told({"--compile.loss_scale_growth_interval=8"}, "precision is bf16", {"--compile.precision=fp16"});
  expect_told({"--compile.loss_scale_growth_interval=2000", "--compile.precision=fp16"}, "ends after 1000 steps",
              {"--train.steps=2000"});
  expect_told({"--train.shadow_every=8"}, "precision is bf16", {"--compile.precision=fp8"});
  expect_told({"--train.shadow_every=2000", "--compile.precision=fp8"}, "ends after 1000 steps",
              {"--train.steps=2000"});
  expect_told({"--train.shadow_bound=0.5", "--compile.precision=fp8"}, "train.shadow_every = 0",
              {"--train.shadow_every=8"});
  expect_told({"--compile.fp8_except=wte"}, "precision is bf16", {"--compile.precision=fp8"});
  expect_told({"--compile.low_residual=off", "--compile.precision=fp32"}, "precision is fp32",
              {"--compile.precision=bf16"});
  for (const char* setting : {"--compile.cuda_graph=off", "--compile.streams=2", "--compile.deterministic=off"}) {
    expect_told({setting}, "runs on the CPU", {}, kCpu);
    EXPECT_TRUE(notes({setting}).empty());
  }
}

TEST(IdleSettings, OfTheMesh) {
  expect_told({"--mesh.zero=1"}, "one rank", {"--mesh.data=2"});
  expect_told({"--mesh.zero=1"}, "one rank", {"--mesh.context=2"});
  expect_told({"--mesh.zero=3", "--mesh.tensor=2"}, "neither batch nor sequences", {"--mesh.data=2"});
  expect_told({"--mesh.bucket_mib=0"}, "one rank", {"--mesh.data=2"});
  expect_told({"--mesh.mailbox_mib=0"}, "one rank", {"--mesh.data=2"});
  expect_told({"--mesh.mailbox_mib=0", "--mesh.data=2"}, "runs on the CPU", {}, kCpu);
  expect_told({"--mesh.schedule=gpipe", "--mesh.data=2"}, "no pipeline", {"--mesh.pipe=2"});
  expect_told({"--mesh.async_tensor=off", "--mesh.data=2"}, "no matrix is divided", {"--mesh.tensor=2"});
  expect_told({"--mesh.async_tensor=off", "--mesh.tensor=2"}, "runs on the CPU", {}, kCpu);
  expect_told({"--mesh.sequence=off", "--mesh.data=2"}, "no matrix is divided", {"--mesh.tensor=2"});
}

TEST(IdleSettings, DefaultsAreNotTold) {
  EXPECT_TRUE(notes({}).empty());
  EXPECT_TRUE(notes({}, kCpu).empty());
  EXPECT_TRUE(notes({"--train.steps=1", "--optimizer.name=sgd"}, kCpu).empty());
  EXPECT_TRUE(notes({"--mesh.zero=0", "--compile.streams=1", "--compile.deterministic"}, kCpu).empty())
      << "what is off already was asked for";
}

TEST(IdleSettings, AStepAloneHasNoLength) {
  constexpr RunPlace kStep = {.is_gpu = true};
  EXPECT_TRUE(notes({"--optimizer.warmup_steps=50", "--train.steps=50", "--train.eval_every=51"}, kStep).empty());
  EXPECT_EQ(notes({"--mesh.zero=1", "--optimizer.momentum=0.5"}, kStep).size(), 2u);
}

}  // namespace
}  // namespace tokamak
