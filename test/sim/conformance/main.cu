// main.cu -- the conformance program: `conformance [--only PREFIX] [--images FILE]` prints one line
// per record as its case ends, below a heading for its suite. A failed case is an error record, and the
// device is reset after it.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "test/sim/conformance/record.h"

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
  std::string suite;
  const auto print = [&](const conformance::Record& record) {
    if (conformance::heading(record) != suite)
      std::printf("%s\n", (suite = conformance::heading(record)).c_str());
    std::printf("%s\n", conformance::line(record).c_str());
    std::fflush(stdout);
  };
  const std::vector<conformance::Record> records = conformance::run(prefix, recover, print);
  if (!images.empty()) {
    std::ofstream out(images, std::ios::binary);
    conformance::write_images(out, records);
  }
  return failed ? 1 : 0;
}
