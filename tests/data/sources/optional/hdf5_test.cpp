#include "config/config.h"
#include "data/corpus.h"
#include "data/source_notes.h"
#include "tests/data/sources/mutations.h"
#include "tests/data/sources/optional/hdf5_writer.h"
#include "tests/data/sources/token_test.h"

namespace tokamak {
namespace {

class Hdf5Test : public TokenTest {
 protected:
  std::string path(const std::string& name = "a.h5") const { return (folder_ / name).string(); }

  std::string write_ids(const Ids& ids, hid_t stored = H5T_STD_U16LE, Hdf5Layout layout = {}) {
    Hdf5Writer(path()).add_ids("tokens", ids, stored, layout);
    return path();
  }
};

// The same file, and as many tokens.
TEST_F(Hdf5Test, ARunDoesNotGoOnWithAnotherField) {
  Ids ids = some_ids(1000), others = ids;
  std::reverse(others.begin(), others.end());
  {
    Hdf5Writer writer(path());
    writer.add_ids("a", ids);
    writer.add_ids("b", others);
  }
  RunConfig config;
  config.model = {.context = 4, .vocab = 1 << 16};
  config.data.path = {path()};
  auto record_of = [&](const std::string& field) {
    config.data.field = field;
    return open_training_data(config, nullptr).record();
  };
  DataRecord began = record_of("a");
  EXPECT_EQ(began.datasets[0].files, record_of("b").datasets[0].files);
  EXPECT_NO_THROW(require_same_data(began, record_of("a"), "run"));
  expect_user_error([&] { require_same_data(began, record_of("b"), "run"); },
                    {path(), "to give the tokens", "data.field", "another --train.out"});
}

TEST_F(Hdf5Test, ReadsTokensInEveryLayout) {
  Ids ids = some_ids(20'000);
  for (Hdf5Layout layout :
       {Hdf5Layout{}, Hdf5Layout{.chunk = 1000}, Hdf5Layout{.chunk = 1500, .gzip = true}, Hdf5Layout{.chunk = 20'000}})
    expect_tokens({write_ids(ids, H5T_STD_U16LE, layout)}, ids);
}

TEST_F(Hdf5Test, ReadsEveryType) {
  Ids ids = some_ids(3000, 120);
  for (hid_t type : {H5T_STD_U8LE, H5T_STD_I8LE, H5T_STD_I16LE, H5T_STD_U32LE, H5T_STD_I32LE, H5T_STD_U64LE,
                     H5T_STD_I64LE, H5T_STD_U16BE, H5T_STD_I64BE}) {
    expect_tokens({write_ids(ids, type)}, ids);
    expect_tokens({write_ids(ids, type, {.chunk = 128})}, ids);
  }
}

TEST_F(Hdf5Test, SeveralThreadsReadAtOnce) {
  Ids ids = some_ids(50'000);
  auto tokens = open_tokens({write_ids(ids, H5T_STD_U16LE, {.chunk = 1000, .gzip = true})}, {});
  expect_threads_agree(*tokens, ids);
}

TEST_F(Hdf5Test, FindsTheDataset) {
  {
    Hdf5Writer writer(path());
    writer.add_ids("train/ids", {1, 2, 3});
    writer.add_ids("val", {4, 5});
  }
  expect_tokens({path()}, {1, 2, 3}, {.text_field = "train/ids"});
  expect_tokens({path()}, {4, 5}, {.text_field = "val"});
  expect_refused(path(), {"a.h5", "a dataset 'text', or only one", "got 2", "train/ids, val"});
  expect_refused(path(), {"a dataset 'train', or only one"}, {.text_field = "train"});
  expect_refused(path(), {"a dataset 'none/ids/x', or only one"}, {.text_field = "none/ids/x"});
}

TEST_F(Hdf5Test, TellsOfTextsThatAreNotUtf8) {
  Hdf5Writer(path("v.h5")).add_texts("text", {"one", "na\xefve"});
  SourceOptions options = {.notes = std::make_shared<SourceNotes>()};
  read(path("v.h5"), options);
  std::vector<std::string> notes = options.notes->take();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("v.h5 text 2 is not UTF-8"), std::string::npos) << notes[0];
}

TEST_F(Hdf5Test, StringsAreDocuments) {
  Hdf5Writer(path("v.h5")).add_texts("text", {"one", "", "two\nlines", "", "f\xc3\xbcnf"});
  EXPECT_EQ(read(path("v.h5")), Documents({"one", "two\nlines", "f\xc3\xbcnf"}));
  Hdf5Writer(path("n.h5"))
      .add_fixed_texts("x",
                       std::string("ab\0z"
                                   "abcd"
                                   "\0\0\0\0"
                                   "a\0\0\0",
                                   16),
                       4, H5T_STR_NULLTERM);
  EXPECT_EQ(read(path("n.h5")), Documents({"ab", "abcd", "a"}));
  Hdf5Writer(path("p.h5"))
      .add_fixed_texts("x",
                       std::string("ab\0z"
                                   "a\0\0\0"
                                   "\0\0\0\0",
                                   12),
                       4, H5T_STR_NULLPAD);
  EXPECT_EQ(read(path("p.h5")), Documents({std::string("ab\0z", 4), "a"}));
  Hdf5Writer(path("s.h5")).add_fixed_texts("x", "ab  a b     ", 4, H5T_STR_SPACEPAD);
  EXPECT_EQ(read(path("s.h5")), Documents({"ab", "a b"}));
}

TEST_F(Hdf5Test, ManyStrings) {
  std::vector<std::string> texts;
  for (int i = 0; i < 1000; ++i) texts.push_back(std::string(size_t(i % 300 + 1), char('a' + i % 26)));
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  Hdf5Writer(path()).add_texts("text", pointers);
  EXPECT_EQ(read(path()), texts);
  auto source = open_source(path(), {});
  Document document;
  while (source->next(document)) EXPECT_LE(source->bytes_read(), source->total_bytes());
  EXPECT_EQ(source->bytes_read(), source->total_bytes());
}

TEST_F(Hdf5Test, TokensAreADocumentForPrepare) {
  EXPECT_EQ(token_documents(write_ids({1, 2, 3})), std::vector<Ids>({{1, 2, 3}}));
}

TEST_F(Hdf5Test, RefusesOtherShapes) {
  Ids ids = {1, 2, 3, 4};
  Hdf5Writer(path("2d.h5")).add("x", H5T_STD_U16LE, H5T_NATIVE_INT32, {2, 2}, ids.data());
  expect_refused(path("2d.h5"), {"2d.h5, dataset /x", "one dimension, got 2"});
  double value = 1;
  Hdf5Writer(path("f.h5")).add("x", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, {1}, &value);
  expect_refused(path("f.h5"), {"f.h5, dataset /x", "integers", "floating-point numbers", "uint16 or uint32"});
  expect_user_error([&] { read(path("f.h5")); }, {"f.h5, dataset /x", "strings, or integers"});
  Hdf5Writer(path("t.h5")).add_texts("text", {"one"});
  expect_refused(path("t.h5"), {"t.h5, dataset /text", "integers", "text", "prepare"});
  { Hdf5Writer nothing(path("none.h5")); }
  expect_refused(path("none.h5"), {"none.h5", "without one"});
  Hdf5Writer(path("n.h5")).add_ids("x", {5, -5}, H5T_STD_I32LE);
  auto tokens = open_tokens({path("n.h5")}, {});
  Ids out(2);
  expect_user_error([&] { tokens->read(0, out); }, {"n.h5", "got -5 as token 1"});
}

TEST_F(Hdf5Test, WhatWasNeverWrittenIsZero) {
  Hdf5Writer(path()).add("x", H5T_STD_U16LE, H5T_NATIVE_INT32, {3}, nullptr);
  expect_tokens({path()}, {0, 0, 0});
}

/// Leaves everything as it is: a filter that exists while the file is written, and no longer when it is read.
size_t pass_on(unsigned, size_t, const unsigned*, size_t bytes, size_t*, void**) { return bytes; }

TEST_F(Hdf5Test, RefusesFiltersThatAreMissing) {
  H5Z_class2_t filter = {H5Z_CLASS_T_VERS, 300, 1, 1, "zippy", nullptr, nullptr, pass_on};
  ASSERT_GE(H5Zregister(&filter), 0);
  write_ids({1, 2, 3, 4}, H5T_STD_U16LE, {.chunk = 2, .filter = filter.id});
  H5Zunregister(filter.id);
  expect_refused(path(), {"a.h5, dataset /tokens", "the filter 300 (zippy)", "lacks"});
}

TEST_F(Hdf5Test, RefusesOtherFiles) {
  expect_refused(write("a.h5", "text, no HDF5"), {"a.h5", "expected an HDF5 file", "library refuses"});
  expect_refused(folder_ / "missing.h5", {"missing.h5", "No such file"});
}

TEST_F(Hdf5Test, RefusesLinksOutOfTheFile) {
  Hdf5Writer(path("other.h5")).add_ids("tokens", some_ids(1000));
  {
    Hdf5Writer writer(path());
    writer.add_ids("own/ids", {1, 2, 3});
    writer.add_external_link("tokens", path("other.h5"), "tokens");
    writer.add_external_link("all", path("other.h5"), "/");
    writer.add_soft_link("soft", "/all/tokens");
    writer.add_soft_link("inside", "/own/ids");
  }
  for (std::string field : {"tokens", "all/tokens", "soft"})
    expect_refused(path(), {"a.h5", "'" + field + "' in the file itself", "a link to", "other.h5"},
                   {.text_field = field});
  expect_tokens({path()}, {1, 2, 3}, {.text_field = "inside"});
}

TEST_F(Hdf5Test, RefusesElementsInOtherFiles) {
  write("secret", "not yours");
  Hdf5Writer(path("e.h5")).add("ids", H5T_STD_U16LE, H5T_NATIVE_INT32, {4}, nullptr, {.external = path("secret")});
  expect_refused(path("e.h5"), {"e.h5, dataset /ids", "in the file itself", "external storage"});
  Hdf5Writer(path("other.h5")).add_ids("tokens", some_ids(4));
  Hdf5Writer(path("v.h5")).add("ids", H5T_STD_U16LE, H5T_NATIVE_INT32, {4}, nullptr, {.source = path("other.h5")});
  expect_refused(path("v.h5"), {"v.h5, dataset /ids", "in the file itself", "a virtual dataset"});
}

TEST_F(Hdf5Test, RefusesMoreElementsThanTheFileCanHold) {
  hsize_t many = hsize_t(1) << 40;
  Hdf5Writer(path()).add("ids", H5T_STD_U16LE, H5T_NATIVE_INT32, {many}, nullptr, {.chunk = 1000});
  expect_refused(path(), {"a.h5, dataset /ids", "got 1099511627776 elements of 2 bytes"});
}

TEST_F(Hdf5Test, SurvivesMutations) {
  expect_mutations_survived(write_ids(some_ids(3000), H5T_STD_U16LE, {.chunk = 100, .gzip = true}), 0, 50);
  Hdf5Writer(path("v.h5")).add_texts("text", {"one", "", "two\nlines", "", "f\xc3\xbcnf"});
  expect_mutations_survived(path("v.h5"), 250, 300);  // the library crashes on seed 268
}

TEST_F(Hdf5Test, RefusesEveryCut) {
  expect_cuts_refused(write_ids({1, 2, 3}), 5);
  expect_cuts_refused(write_ids({1, 2, 3}, H5T_STD_U16LE, {.chunk = 2, .gzip = true}), 5);
}

}  // namespace
}  // namespace tokamak
