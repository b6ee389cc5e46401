// A newcomer's question, answered by one command.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/run_program.h"

namespace tokamak {
namespace {

TEST(Plan, WhichLayoutHowLongAndWhatLimitsIt) {
  TemporaryFolder folder;
  std::vector<std::string> arguments = {"plan", "--model.preset=gpt3-6.7b", "--cluster=h200", "--gpus=4",
                                        "--tokens=10e9"};
  ProgramResult text = run_program(folder.path(), arguments);
  EXPECT_EQ(text.status, 0) << text.err;
  for (const char* piece :
       {"best       ", "tokens/s", "days for 10.00 G tokens", "limited by ", "tokamak train --mesh."})
    EXPECT_NE(text.out.find(piece), std::string::npos) << piece << "\n" << text.out;
  arguments.emplace_back("--json");
  ProgramResult json = run_program(folder.path(), arguments);
  nlohmann::json plan = nlohmann::json::parse(json.out);
  EXPECT_EQ(plan["gpus"], 4);
  EXPECT_EQ(plan["layouts"].size(), 5u);
  double days = plan["layouts"][0]["days"];
  EXPECT_GT(days, 1);
  EXPECT_LT(days, 4);
}

TEST(Plan, ExamplesAndClustersNeedNoModel) {
  TemporaryFolder folder;
  EXPECT_NE(run_program(folder.path(), {"plan", "--examples"}).out.find("72.34 days"), std::string::npos);
  EXPECT_NE(run_program(folder.path(), {"plan", "--clusters"}).out.find("leonardo: CINECA"), std::string::npos);
}

}  // namespace
}  // namespace tokamak
