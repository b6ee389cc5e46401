// HDF5 files of the wrong shape, through the program.
#include "tests/data/sources/optional/hdf5_writer.h"
#include "tests/e2e/data_faults.h"

namespace tokamak {
namespace {

class Hdf5Faults : public test::DataFaults {
 protected:
  void SetUp() override { test::make_tiny_data(folder_.path()); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
};

TEST_F(Hdf5Faults, TwoDimensions) {
  std::vector<int32_t> ids(1000, 7);
  Hdf5Writer(path("a.h5")).add("ids", H5T_STD_U16LE, H5T_NATIVE_INT32, {10, 100}, ids.data());
  expect_unusable("a.h5", {"a.h5, dataset /ids", "expected one dimension", "got 2", "save it flat"});
}

TEST_F(Hdf5Faults, Floats) {
  std::vector<double> numbers(1000, 7);
  Hdf5Writer(path("a.h5")).add("ids", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, {numbers.size()}, numbers.data());
  expect_unusable("a.h5", {"a.h5, dataset /ids", "expected", "integers", "got floating-point numbers", "save"});
}

TEST_F(Hdf5Faults, NegativeIds) {
  Hdf5Writer(path("a.h5")).add_ids("ids", std::vector<int32_t>(1000, -7), H5T_STD_I32LE);
  expect_unusable("a.h5", {"a.h5", "expected token ids from 0", "got -7 as token", "damaged, or"});
}

TEST_F(Hdf5Faults, SeveralDatasets) {
  std::vector<int32_t> ids(1000, 7);
  {
    Hdf5Writer writer(path("a.h5"));
    writer.add_ids("one", ids);
    writer.add_ids("two", ids);
  }
  expect_unusable("a.h5", {"a.h5", "only one", "got 2", "field: one, two"});
  EXPECT_EQ(train_on("a.h5", {"--data.field=two"}).status, 0);
}

TEST_F(Hdf5Faults, NoDataset) {
  { Hdf5Writer nothing(path("a.h5")); }
  expect_unusable("a.h5", {"a.h5", "expected a dataset", "got a file without one", "name another file"});
}

TEST_F(Hdf5Faults, TextIsForPrepareOnly) {
  std::string text = test::tiny_text();
  Hdf5Writer(path("a.h5")).add_texts("text", {text.c_str()});
  expect_refused(train_on("a.h5"), {"a.h5, dataset /text", "expected integers", "got text", "tokamak prepare"});
  EXPECT_EQ(run({"data", "inspect", "a.h5"}).status, 0);
  EXPECT_EQ(run({"prepare", "a.h5", "--vocab=data", "--out=other"}).status, 0);
}

}  // namespace
}  // namespace tokamak
