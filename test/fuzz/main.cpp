// main.cpp -- what libFuzzer calls. The first byte of an input decides what the others are about.

#include "fuzz/targets.h"

using namespace dualgemm_fuzz;

static void (*const kTargets[])(Bytes&) = {
    ask_and_launch,        ask_and_launch,    ask_and_launch, ask_and_launch,       ask_and_launch,
    ask_and_launch,        launch_plainly,    move_factors,   move_factors_on_host, quantize_on_host,
    quantize_on_host,      quantize,          convert_matrix, split_factors,        import_gguf,
    import_mxfp4,          compute_reference, look_up,        permute_experts,      combine_experts,
    permute_on_host,       combine_on_host,   gather_experts, gather_on_host,       read_tuning,
    prepare_mxfp4_on_host,
};

// The library asks for no memory, so nothing can leak, and who asked for a block is clear.
extern "C" const char* __asan_default_options() {
  return "detect_leaks=0:detect_stack_use_after_return=0:quarantine_size_mb=32:malloc_context_size=1";
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  kTargets[bytes.raw<uint8_t>() % (sizeof kTargets / sizeof *kTargets)](bytes);
  return 0;
}
