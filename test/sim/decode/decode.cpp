// decode.cpp -- a parsed module as flat code, one self-contained copy per kernel. The shared variables that a
// kernel refers to are laid out from the start of the usable shared window, extern (dynamic) arrays after
// them; local variables and call parameters share one block per lane.
#include <algorithm>
#include <charconv>
#include <functional>
#include <set>

#include "sim/decode/opcodes.h"
#include "sim/decode/operands.h"
#include "sim/decode/targets.h"
#include "sim/decode/wgmma_operands.h"
#include "sim/fault.h"
#include "sim/machine.h"

namespace sim {
namespace {

using ptx::Function;
using ptx::Statement;
using ptx::Variable;

constexpr size_t kMostCalls = 1000;  // deep; they are followed on the stack
// The parameters of a kernel have at most 32764 bytes (PTX ISA, Kernel Function Parameters), and a thread has
// 512 KB of local memory (CUDA C++ Programming Guide, Technical Specifications per Compute Capability).
constexpr uint64_t kMostParameters = 32764, kMostLocal = uint64_t{512} << 10;
// Far more than a block may have, which the launch checks; sums of such numbers fit into 32 bits.
constexpr uint64_t kMostShared = uint64_t{1} << 31;

[[noreturn]] void too_large(const Variable& variable, const char* what, uint64_t most) {
  throw Fault(FaultKind::kUnsupported, "PTX line " + std::to_string(variable.ptx_line) + ": with " +
                                           variable.name + " there are more than " + std::to_string(most) +
                                           " bytes of " + what);
}

uint64_t align_up(uint64_t value, uint64_t align) { return (value + align - 1) / align * align; }

const std::map<std::string, Q>& qualifier_ids() {
  static const std::map<std::string, Q> table = {
#define X(id, text) {text, Q::id},
#include "sim/decode/qualifiers.def"
#undef X
  };
  return table;
}

bool parse_space(const std::string& text, Space* out) {
  static const std::map<std::string, Space> table = {
      {"global", Space::kGlobal},      {"const", Space::kConst},
      {"param", Space::kParam},        {"param::entry", Space::kParam},
      {"param::func", Space::kParam},  {"shared", Space::kShared},
      {"shared::cta", Space::kShared}, {"shared::cluster", Space::kSharedCluster},
      {"local", Space::kLocal}};
  const auto found = table.find(text);
  if (found == table.end()) return false;
  *out = found->second;
  return true;
}

void visit_names(const ptx::Operand& operand, const std::function<void(const std::string&)>& visit) {
  if (operand.kind == ptx::Operand::Kind::kName) visit(operand.name);
  for (const ptx::Operand& item : operand.items) visit_names(item, visit);
}

class KernelDecoder {
 public:
  KernelDecoder(Program& program, const Function& entry) : program_(program), entry_(entry) {}

  Kernel decode() {
    kernel_.info.name = entry_.name;
    try {
      describe_entry();
      collect(entry_);
      lay_out_shared();
      for (const Function* function : order_) lay_out_local(*function);
      for (const Function* function : order_) append(*function);
      find_wgmma_registers(kernel_);
    } catch (const Fault& fault) {
      if (fault.kind() != FaultKind::kUnsupported) throw;
      kernel_.refused = fault.what();
      kernel_.code.clear();
    }
    return std::move(kernel_);
  }

 private:
  // Collects functions depth first, callers before callees. A function that reaches itself is refused,
  // because it has no finite register file.
  void collect(const Function& function) {
    const auto refuse = [&](const std::string& why) {
      throw Fault(FaultKind::kUnsupported, "PTX line " + std::to_string(function.ptx_line) + ": function " +
                                               function.name + " " + why);
    };
    if (std::find(path_.begin(), path_.end(), &function) != path_.end()) refuse("is recursive");
    if (std::find(order_.begin(), order_.end(), &function) != order_.end()) return;
    if (path_.size() == kMostCalls) refuse("is called more than " + std::to_string(kMostCalls) + " deep");
    path_.push_back(&function);
    order_.push_back(&function);
    for (const Statement& statement : function.body) {
      for (const ptx::Operand& operand : statement.operands)
        visit_names(operand, [&](const std::string& name) { referenced_.insert(name); });
      if (statement.opcode != "call") continue;
      const Function* callee = callee_of(statement);
      if (!callee->is_declaration) collect(*callee);
    }
    path_.pop_back();
  }

  const Function* callee_of(const Statement& statement) const {
    for (const ptx::Operand& operand : statement.operands)
      if (operand.kind == ptx::Operand::Kind::kName)
        for (const Function& function : program_.text.functions)
          if (function.name == operand.name && !function.is_entry) {
            const Function* found = &function;
            for (const Function& other : program_.text.functions)  // a definition wins over its declaration
              if (other.name == function.name && !other.is_declaration) found = &other;
            return found;
          }
    throw Fault(FaultKind::kUnsupported, "indirect call: " + describe(statement));
  }

  void describe_entry() {
    KernelInfo& info = kernel_.info;
    for (const Variable& param : entry_.params) {
      const uint64_t offset = align_up(info.param_bytes, std::max<uint64_t>(1, param.align));
      info.params.push_back({param.name, param.size, param.align, offset});
      info.param_bytes = offset + param.size;
      if (info.param_bytes > kMostParameters) too_large(param, "parameters", kMostParameters);
      names_.symbols[param.name] = {Symbol::Kind::kParam, offset};
    }
    std::copy_n(entry_.max_ntid, 3, info.max_ntid.begin());
    std::copy_n(entry_.req_ntid, 3, info.req_ntid.begin());
    std::copy_n(entry_.req_cluster, 3, info.req_cluster.begin());
    info.explicit_cluster = entry_.explicit_cluster;
    info.max_registers = entry_.max_registers;
    info.min_ctas = entry_.min_ctas;
    for (const auto& [name, address] : program_.addresses)
      names_.symbols[name] = {Symbol::Kind::kAddress, address};
  }

  void lay_out_shared() {
    std::vector<const Variable*> statics, dynamics;
    const auto sort_out = [&](const Variable& variable) {
      if (variable.space != "shared" || referenced_.count(variable.name) == 0) return;
      (variable.is_extern || variable.size == 0 ? dynamics : statics).push_back(&variable);
    };
    for (const Variable& variable : program_.text.variables) sort_out(variable);
    for (const Function* function : order_)
      for (const Variable& variable : function->locals) sort_out(variable);
    uint64_t end = Machine::kReservedSmemPerBlock;
    for (const Variable* variable : statics) {
      end = align_up(end, std::max<uint64_t>(1, variable->align));
      names_.symbols[variable->name] = {Symbol::Kind::kShared, end};
      end += variable->size;
      if (end > kMostShared) too_large(*variable, "shared memory", kMostShared);
    }
    kernel_.static_smem_end = uint32_t(end);
    kernel_.info.static_smem = end - Machine::kReservedSmemPerBlock;
    uint64_t align = 16;
    for (const Variable* variable : dynamics) align = std::max(align, variable->align);
    kernel_.dynamic_smem_offset = uint32_t(align_up(end, align));
    for (const Variable* variable : statics) align = std::max(align, variable->align);
    if (!dynamics.empty()) kernel_.shared_align = uint32_t(std::min<uint64_t>(align, kernel_.shared_align));
    for (const Variable* variable : dynamics)
      names_.symbols[variable->name] = {Symbol::Kind::kShared, kernel_.dynamic_smem_offset};
  }

  uint64_t local_variable(const Variable& variable) {
    const uint64_t offset = align_up(kernel_.local_bytes, std::max<uint64_t>(1, variable.align));
    if (offset + variable.size > kMostLocal) too_large(variable, "local memory", kMostLocal);
    kernel_.local_bytes = uint32_t(offset + variable.size);
    return offset;
  }

  void lay_out_local(const Function& function) {
    DeviceFunction out;
    out.name = function.name;
    if (!function.is_entry) {
      for (const Variable& param : function.params) out.params.push_back({local_variable(param), param.size});
      for (const Variable& result : function.returns)
        out.returns.push_back({local_variable(result), result.size});
    }
    for (const Variable& variable : function.locals)
      if (variable.space == "local" || variable.space == "param")
        names_.symbols[function.name + "/" + variable.name] = {Symbol::Kind::kLocal,
                                                               local_variable(variable)};
    kernel_.functions.push_back(out);
  }

  void append(const Function& function) {
    const uint32_t first = uint32_t(kernel_.code.size());
    DeviceFunction& self =
        kernel_.functions[size_t(std::find(order_.begin(), order_.end(), &function) - order_.begin())];
    self.entry = first;
    NamesInScope names = names_;
    names.registers = &function.registers;
    names.first_register = uint32_t(kernel_.register_names.size());
    names.first_instruction = first;
    for (const ptx::Register& reg : function.registers) kernel_.register_names.push_back(reg.name);
    for (uint32_t i = 0; i < function.registers.size(); ++i) {
      if (function.registers[i].type != ptx::Type::kB128) continue;
      names.high_halves[i] = uint32_t(kernel_.register_names.size());
      kernel_.register_names.push_back(function.registers[i].name + " (high half)");
    }
    for (const Variable& variable : function.locals) {
      const auto found = names_.symbols.find(function.name + "/" + variable.name);
      if (found != names_.symbols.end()) names.symbols[variable.name] = found->second;
    }
    if (!function.is_entry) {
      for (size_t i = 0; i < function.params.size(); ++i)
        names.symbols[function.params[i].name] = {Symbol::Kind::kLocal, self.params[i].first};
      for (size_t i = 0; i < function.returns.size(); ++i)
        names.symbols[function.returns[i].name] = {Symbol::Kind::kLocal, self.returns[i].first};
    }
    for (const Statement& statement : function.body)
      kernel_.code.push_back(instruction(statement, function, names));
    const Inst* end = kernel_.code.size() == first ? nullptr : &kernel_.code.back();
    const uint32_t behind = uint32_t(kernel_.code.size());
    const bool reached = std::any_of(kernel_.code.begin() + first, kernel_.code.end(), [&](const Inst& inst) {
      return std::find(inst.targets.begin(), inst.targets.end(), behind) != inst.targets.end();
    });
    // A thread that runs off the end, or branches to it, leaves the function, as by `exit` or `ret`.
    if (end == nullptr || end->guarded || reached || (!ends_path(*end) && !is_branch(*end)))
      kernel_.code.push_back(implicit_exit(function));
    find_rejoins(kernel_.code, first, uint32_t(kernel_.code.size()));
  }

  static Inst implicit_exit(const Function& function) {
    static const Statement exit_statement = [] {
      Statement s;
      s.opcode = s.text = "exit";
      return s;
    }();
    static const Statement ret_statement = [] {
      Statement s;
      s.opcode = s.text = "ret";
      return s;
    }();
    Inst inst;
    inst.operation = function.is_entry ? Operation::exit : Operation::ret;
    inst.statement = function.is_entry ? &exit_statement : &ret_statement;
    return inst;
  }

  Inst instruction(const Statement& statement, const Function& function, const NamesInScope& names) {
    Inst inst;
    inst.statement = &statement;
    inst.guarded = statement.guarded;
    inst.guard_negated = statement.guard_negated;
    inst.guard = names.first_register + statement.guard;
    read_qualifiers(statement, &inst);

    if (const OpcodeRow* row = find_row(statement)) {
      inst.operation = row->operation;
    } else if (resolve_alu(statement, &inst.alu)) {
      inst.operation = Operation::alu;
      if (inst.alu.extra_outputs == 0 && inst.alu.inputs <= 3) inst.lanes = find_lane_loop(statement);
      if (statement.operands.size() < 1 + inst.alu.inputs)
        throw Fault(FaultKind::kUnsupported, "operands are missing: " + describe(statement));
    } else {
      throw Fault(FaultKind::kUnsupported, "instruction is not supported: " + describe(statement));
    }
    if (inst.operation == Operation::call) return decode_call(std::move(inst), statement, names);
    if (inst.operation == Operation::brx) return decode_table(std::move(inst), statement, function, names);
    if (inst.operation == Operation::ret && function.is_entry) inst.operation = Operation::exit;

    const bool wide = std::find(statement.qualifiers.begin(), statement.qualifiers.end(), "wide") !=
                      statement.qualifiers.end();
    const bool picks = statement.opcode == "slct";
    for (size_t i = 0; i < statement.operands.size(); ++i) {
      // The addend of mad.wide has twice the width of the factors; the operands that slct selects from have
      // its first type.
      ptx::Type type = inst.type;
      if (inst.operation == Operation::alu && wide && i == 3) type = ptx::Type::kB64;
      if (picks && i < 3) type = inst.from;
      // Barrier numbers, thread counts and member masks are integers whatever the instruction does
      // to a predicate.
      if (type == ptx::Type::kPred && inst.operation != Operation::alu && inst.operation != Operation::mov)
        type = ptx::Type::kNone;
      // Descriptors, factors and transpositions are integers whatever the matrices hold.
      if (inst.operation == Operation::wgmma_mma) type = ptx::Type::kNone;
      inst.operands.push_back(resolve_operand(statement.operands[i], type, names, statement));
    }
    if (inst.operation == Operation::wgmma_mma) read_wgmma(inst);
    const bool memory = inst.operation == Operation::ld || inst.operation == Operation::st;
    if (inst.type == ptx::Type::kB128 && memory) {  // one access, of two halves
      if (inst.vector != 1)
        throw Fault(FaultKind::kUnsupported, "a vector of 128-bit elements: " + describe(statement));
      inst.type = ptx::Type::kB64;
      inst.vector = 2;
    }
    if (inst.operation == Operation::bra) inst.targets = {uint32_t(inst.operands[0].offset)};
    if (memory && inst.space == Space::kParam) fix_param_space(&inst);
    return inst;
  }

  // Parameters of calls live in local memory; only the kernel's own are in the parameter block.
  static void fix_param_space(Inst* inst) {
    for (const Operand& operand : inst->operands)
      if (operand.kind == Operand::Kind::kAddress && operand.value.kind == Value::Kind::kConstant)
        inst->space = Space::kLocal;
  }

  // Returns 0 if the text is no such number; the table of spellings then refuses the qualifier.
  template <class T>
  static T number(const std::string& digits) {
    T value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  }

  static void read_qualifiers(const Statement& statement, Inst* inst) {
    bool first_space = true;
    for (const std::string& qualifier : statement.qualifiers) {
      const auto found = qualifier_ids().find(qualifier);
      if (found != qualifier_ids().end()) inst->qualifiers.set(size_t(found->second));
      ptx::Type type;
      Space space;
      if (ptx::parse_type(qualifier, &type)) {
        if (inst->from == ptx::Type::kNone) inst->from = type;
        inst->type = type;
      } else if (parse_space(qualifier, &space)) {
        if (first_space) inst->space = space;
        inst->source_space = space;
        first_space = false;
      } else if (qualifier == "v2" || qualifier == "v4" || qualifier == "v8") {
        inst->vector = uint8_t(qualifier[1] - '0');
      } else if (qualifier.size() > 1 && qualifier[0] == 'x' &&
                 qualifier.find_first_not_of("0123456789", 1) == std::string::npos) {
        inst->repeat = number<uint8_t>(qualifier.substr(1));
      } else if (qualifier.starts_with("m64n")) {
        inst->columns = number<uint16_t>(qualifier.substr(4));
      }
    }
    // Memory that ldu reads has to be read-only, too (9.7.9.10).
    if (statement.opcode == "ldu") inst->qualifiers.set(size_t(Q::kNonCoherent));
  }

  static External external_named(const std::string& name) {
    if (name == "vprintf") return External::kPrint;
    if (name == "__assertfail") return External::kFailAssertion;
    return External::kNone;
  }

  // call (results), name, (arguments): items are .param variables, values or parenthesised lists of them.
  Inst decode_call(Inst inst, const Statement& statement, const NamesInScope& names) {
    const Function* callee = callee_of(statement);
    std::vector<ptx::Operand> before, after;
    bool seen = false;
    for (const ptx::Operand& operand : statement.operands) {
      if (!seen && operand.kind == ptx::Operand::Kind::kName && operand.name == callee->name) {
        seen = true;
        continue;
      }
      auto& side = seen ? after : before;
      if (operand.kind == ptx::Operand::Kind::kVector)
        side.insert(side.end(), operand.items.begin(), operand.items.end());
      else side.push_back(operand);
    }
    for (auto* side : {&before, &after})
      for (const ptx::Operand& operand : *side)
        inst.operands.push_back(resolve_operand(operand, ptx::Type::kNone, names, statement));
    if (callee->is_declaration) {
      DeviceFunction external;
      external.name = callee->name;
      external.external = external_named(callee->name);
      if (external.external == External::kNone)
        throw Fault(FaultKind::kUnsupported, "call of an undefined function: " + describe(statement));
      const bool print = external.external == External::kPrint;
      if (before.size() != (print ? 1 : 0) || after.size() != (print ? 2 : 5))
        throw Fault(FaultKind::kUnsupported,
                    "call does not match the function's parameters: " + describe(statement));
      kernel_.functions.push_back(external);
      inst.callee = uint32_t(kernel_.functions.size() - 1);
    } else {
      inst.callee = uint32_t(std::find(order_.begin(), order_.end(), callee) - order_.begin());
      const DeviceFunction& target = kernel_.functions[inst.callee];
      if (before.size() != target.returns.size() || after.size() != target.params.size())
        throw Fault(FaultKind::kUnsupported,
                    "call does not match the function's parameters: " + describe(statement));
    }
    return inst;
  }

  Inst decode_table(Inst inst, const Statement& statement, const Function& function,
                    const NamesInScope& names) {
    inst.operands.push_back(resolve_operand(statement.operands[0], ptx::Type::kU32, names, statement));
    const auto table = function.branch_targets.find(statement.operands[1].name);
    if (table == function.branch_targets.end())
      throw Fault(FaultKind::kUnsupported,
                  "branch table " + statement.operands[1].name + " is not declared: " + describe(statement));
    for (uint32_t target : table->second) inst.targets.push_back(names.first_instruction + target);
    return inst;
  }

  Program& program_;
  const Function& entry_;
  Kernel kernel_;
  NamesInScope names_;
  std::set<std::string> referenced_;
  std::vector<const Function*> order_, path_;
};

}  // namespace

void decode(Program& program) {
  // Instructions that ptxas refuses are refused first, even in a kernel that the simulator cannot run.
  const Target target = parse_target(program.text.target);
  for (const Function& function : program.text.functions)
    for (const Statement& statement : function.body) check_target(target, statement);
  for (const Function& function : program.text.functions) {
    if (!function.is_entry || function.is_declaration) continue;
    program.kernels.push_back(KernelDecoder(program, function).decode());
    program.infos.push_back(program.kernels.back().info);
  }
}

const Kernel* Program::find(const std::string& name) const {
  for (const Kernel& kernel : kernels)
    if (kernel.info.name == name) return &kernel;
  return nullptr;
}

}  // namespace sim
