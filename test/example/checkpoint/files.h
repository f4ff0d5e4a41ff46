// files.h -- the files of a checkpoint: named one by one, by an index, or by the folder that they lie in.
#pragma once

#include <memory>
#include <set>

#include "example/checkpoint/config.h"
#include "example/checkpoint/tensor.h"

namespace checkpoint {

struct Files {
  std::vector<std::unique_ptr<MappedFile>> mapped;
  Tensors tensors;
  Config config;  // of the files beside an index or in a folder
  std::vector<std::string>
      unread;  // files of weights in a folder that belong to another form of the checkpoint

  // A .safetensors or .gguf file is read as it is. An index (model.safetensors.index.json) and a folder are
  // the whole checkpoint: every file that the index names, every tensor where it says; of a folder without
  // an index all .safetensors, or else all .gguf, with no shard missing; and what config.json and its
  // siblings beside them say of quantisation and of the activation. Throws FormatError, which begins with
  // the path.
  void read(const std::string& path);

 private:
  std::vector<StoredTensor> read_file(const std::string& path);
  std::set<std::string> read_index(const std::string& path);  // returns the files
  void read_folder(const std::string& path);
};

// An index: of each tensor the name of its file, which lies beside it.
std::map<std::string, std::string> parse_index(Bytes file);

// Refuses "model-00002-of-00003.safetensors" where the first or the third is not among the names.
void check_shards(const std::vector<std::string>& names);

}  // namespace checkpoint
