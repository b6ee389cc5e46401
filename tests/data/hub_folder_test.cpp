#include "data/hub_folder.h"

#include "data/passed_over.h"
#include "data/split_names.h"
#include "tests/data/sources/source_test.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRepository = "hub/datasets--owner--name";
constexpr const char* kCard = "---\nlicense: mit\nconfigs:\n- config_name: default\n---\n# A data set\n";

/// The cache as the hub's library writes it: files are links to blobs, named by their content.
class HubFolderTest : public SourceTest {
 protected:
  void write_snapshot(const std::string& commit, const std::string& name, std::string_view content) {
    std::string blob = "blob" + std::to_string(++blobs_);
    write(std::string(kRepository) + "/blobs/" + blob, content);
    fs::path link = folder_ / kRepository / "snapshots" / commit / name;
    fs::create_directories(link.parent_path());
    fs::create_symlink(fs::relative(folder_ / kRepository / "blobs" / blob, link.parent_path()), link);
  }
  /// By their paths in the snapshot.
  Documents names_of(const std::vector<fs::path>& files) {
    Documents names;
    for (const fs::path& file : files)
      names.push_back(file.lexically_relative(folder_ / kRepository / "snapshots").string());
    return names;
  }
  std::vector<fs::path> find(const std::string& input = kRepository) {
    return find_files((folder_ / input).string(), {}, &passed_over_);
  }

  int blobs_ = 0;
  PassedOver passed_over_;
};

TEST_F(HubFolderTest, TheSnapshotOfMainIsReadAndOneSplitOfIt) {
  write_snapshot("aa", "README.md", kCard);
  write_snapshot("aa", "data/train-00000-of-00002.jsonl", "{\"text\": \"one\"}\n");
  write_snapshot("aa", "data/train-00001-of-00002.csv", "id,text\n1,two\n");
  write_snapshot("aa", "data/validation-00000-of-00001.jsonl", "{\"text\": \"three\"}\n");
  write_snapshot("aa", "train/00.parquet", "PAR1");
  write_snapshot("bb", "data/train-00000-of-00001.jsonl", "{\"text\": \"old\"}\n");
  write(std::string(kRepository) + "/refs/main", "aa\n");
  for (const char* input : {kRepository, "hub"}) {
    std::vector<fs::path> files = find(input);
    EXPECT_EQ(names_of(files), (Documents{"aa/data/train-00000-of-00002.jsonl", "aa/data/train-00001-of-00002.csv",
                                          "aa/data/validation-00000-of-00001.jsonl", "aa/train/00.parquet"}));
    EXPECT_EQ(passed_over_.counts(), (std::map<std::string, int64_t>{{"in another snapshot of the hub's cache", 1},
                                                                     {"README.md of a data set", 1}}));
    EXPECT_EQ(keep_split(files, "train", (folder_ / input).string()), 1u);
    EXPECT_EQ(files.size(), 3u);
    EXPECT_EQ(read(files[0].string()), Documents{"one"});
  }
  EXPECT_EQ(find(std::string(kRepository) + "/snapshots/bb").size(), 1u);
}

TEST_F(HubFolderTest, WithoutMainThereIsOneSnapshot) {
  write_snapshot("bb", "a.txt", "text");
  EXPECT_EQ(names_of(find()), Documents{"bb/a.txt"});
  write_snapshot("cc", "a.txt", "text");
  expect_user_error([&] { find(); }, {"snapshots", "expected one", "refs/main", "got 2"});
  write(std::string(kRepository) + "/refs/main", "dd");
  expect_user_error([&] { find(); }, {"snapshots/dd", "refs/main", "no such folder"});
  for (const char* wrong : {"", "../..", "..", "a/b"}) {
    write(std::string(kRepository) + "/refs/main", wrong);
    expect_user_error([&] { find(); }, {"refs/main", "the name of a snapshot"});
  }
}

TEST_F(HubFolderTest, ACardDescribesADataSet) {
  EXPECT_TRUE(is_dataset_card(write("README.md", kCard)));
  for (const char* other : {"# Notes\n\nconfigs:\n", "---\ntitle: x\n---\n\nconfigs:\n", "", "---\n"})
    EXPECT_FALSE(is_dataset_card(write("README.md", other))) << other;
  EXPECT_FALSE(is_dataset_card(write("OTHER.md", kCard)));
}

// Any folder may have one of this name.
TEST_F(HubFolderTest, AFolderOfSnapshotsAloneIsNone) {
  write("x/snapshots/a/1.txt", "text");
  write("x/snapshots/b/1.txt", "text");
  EXPECT_EQ(find("x").size(), 2u);
}

}  // namespace
}  // namespace tokamak
