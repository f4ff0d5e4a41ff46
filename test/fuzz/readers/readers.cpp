// readers.cpp -- what reads fat binaries and PTX, as one file, which compiles in half the time of many: with
// the sanitizers most of it is that of the standard library's templates, once more in each. What they use of
// arithmetic and memory is linked from the simulator as it is.

#include "sim/decode/decode.cpp"
#include "sim/decode/flow.cpp"
#include "sim/decode/opcodes.cpp"
#include "sim/decode/operands.cpp"
#include "sim/decode/targets.cpp"
#include "sim/decode/wgmma_operands.cpp"
#include "sim/module.cpp"
#include "sim/parse/lexer.cpp"
#include "sim/parse/module.cpp"
#include "sim/parse/parser.cpp"
#include "sim/parse/parser_body.cpp"
#include "sim/parse/parser_operand.cpp"
#include "sim/parse/scope.cpp"
#include "sim/parse/source_map.cpp"
#include "sim/shim/fatbin.cpp"
#include "sim/shim/one_kernel.cpp"
