// main.cu -- the conformance program: `h200_conformance [--only PREFIX] [--images FILE]` prints one line per
// record. On a GPU a failed launch ends the run, for the context is lost; what was recorded is still printed.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "test/h200/record.h"

int main(int argc, char** argv) {
  std::string prefix, images;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--only") == 0) prefix = argv[i + 1];
    if (std::strcmp(argv[i], "--images") == 0) images = argv[i + 1];
  }
  bool failed = false;
  const auto recover = [&] {
    failed = true;
    cudaDeviceReset();
    cudaGetLastError();
  };
  const std::vector<h200::Record> records = h200::run(prefix, recover);
  for (const h200::Record& record : records) std::printf("%s\n", h200::line(record).c_str());
  if (!images.empty()) {
    std::ofstream out(images, std::ios::binary);
    h200::write_images(out, records);
  }
  return failed ? 1 : 0;
}
