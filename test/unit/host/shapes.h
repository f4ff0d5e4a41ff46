// shapes.h -- a B200, an H100, and shapes of every kind for the tests that go over all of them: decoding,
// prefill, widths that tensor parallelism leaves, batches and groups.
#pragma once

#include "host/model/cost_model.h"

namespace dualgemm_test {

inline constexpr dualgemm::Machine kB200{148}, kH100{132};

inline constexpr dualgemm::Shape kShapes[] = {{1, 2048, 7168},
                                              {16, 360, 2880},
                                              {64, 12288, 4096},
                                              {100, 176, 4096},
                                              {129, 3584, 8192},
                                              {256, 4096, 7168},
                                              {300, 720, 2880},
                                              {512, 6656, 16384},
                                              {513, 1408, 4096},
                                              {2048, 18432, 7168},
                                              {8192, 8, 16},
                                              {16, 2048, 7168, 8},
                                              {100, 1536, 4096, 16},
                                              {4, 2048, 7168, 256, true},
                                              {128, 4096, 7168, 8, true},
                                              {1000, 2880, 2880, 3, true}};

}  // namespace dualgemm_test
