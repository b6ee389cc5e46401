// What is read, and how it becomes batches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tokamak {

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

}  // namespace tokamak
