#include "tune/tuning_record.h"

#include "base/file.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

const TuningRecord kRecord{{{"graph kernel\n  %0 = matmul", 1.25e-3}, {"b", 2}}, {{"step 1", {"b"}}, {"step 2", {}}}};

TEST(TuningRecord, ParsesBack) { EXPECT_EQ(parse_tuning(print_tuning(kRecord)), kRecord); }

TEST(TuningRecord, OfADamagedTextIsEmpty) {
  std::string text = print_tuning(kRecord);
  for (size_t length = 0; length + 2 < text.size(); ++length)
    EXPECT_EQ(parse_tuning(text.substr(0, length)), TuningRecord()) << length;
  for (const char* other : {"[]", "{}", "{\"seconds\": 3, \"plain_matmuls\": {}}", "{\"a\": 0.5}"})
    EXPECT_EQ(parse_tuning(other), TuningRecord()) << other;
}

TEST(TuningRecord, WhatCameFirstStays) {
  TemporaryFolder folder;
  std::filesystem::path path = folder / "cache/tuned.json";
  EXPECT_EQ(load_tuning(path), TuningRecord());
  save_tuning(path, kRecord);
  save_tuning(path, {{{"b", 7}, {"c", 3}}, {{"step 2", {"c"}}, {"step 3", {"b", "c"}}}});
  TuningRecord all = load_tuning(path);
  EXPECT_EQ(all.seconds.at("b"), 2);
  EXPECT_EQ(all.seconds.at("c"), 3);
  EXPECT_EQ(all.slow_forms.at("step 2"), std::set<std::string>());
  EXPECT_EQ(all.slow_forms.at("step 3"), (std::set<std::string>{"b", "c"}));
}

TEST(TuningRecord, NeedsNoFile) {
  save_tuning({}, kRecord);
  save_tuning("/proc/no_such_folder/tuned.json", kRecord);
  EXPECT_EQ(load_tuning("/proc/no_such_folder/tuned.json"), TuningRecord());
}

}  // namespace
}  // namespace tokamak
