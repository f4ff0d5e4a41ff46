// operators.h -- the ways to change one instruction for the worse. An operator that would only break the
// syntax is not one. tables.cpp says which of them an instruction gets.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "mutation/edit.h"

namespace mutation {

struct Change {
  std::string operation;  // "delete", "arrive without bytes", ...
  std::function<void(Function&)> edit;
};

// An operator gives the change of the statement at `at`: one, or none where it does not apply.
using Operator = std::function<std::vector<Change>(const Function&, size_t at)>;
// These make the operands of another instruction from the statement in whose place it comes.
using Operands = std::function<std::vector<Operand>(const Statement&)>;

// Any change; `edit` gets the function that is changed and the place of the statement.
Operator change(const char* operation, std::function<void(Function&, size_t)> edit);
Operator deletion();
Operator twice();
Operator offset(const char* operation, size_t operand, int64_t delta);
Operator flip(const char* operation, size_t operand, int64_t bits);
Operator set_to(const char* operation, size_t operand, int64_t value);
// Replaces one qualifier, where the statement has it.
Operator qualifier(const char* from, const char* to);
// Puts another instruction in the statement's place.
Operator replaced(const char* operation, const char* with, Operands operands);

// Of those that take part in an instruction of a warp: the last operand is their mask.
Operator lane_0_only();
// Of the CTAs that a multicast reaches.
Operator not_to(const char* operation, int rank);
// Takes the barrier of this CTA where that of the pair's leader is meant.
Operator own_barrier(size_t operand);
// Arrives without its bytes.
Operator without_bytes();
// Arrives at the CTA's barrier 0 and goes on.
Operator arrive_at_barrier_0();
// Takes away an arrival at the cluster's barrier, and the wait with it where that comes next.
Operator no_cluster_barrier();
// Of a multiplication, whose last operand says whether it adds to what is there.
Operator accumulates(const char* operation, bool always);
// Of a tensor copy: the next map in an array of them, and the next place along one axis.
Operator another_map();
Operator next_coordinate(const char* operation, size_t which);

}  // namespace mutation
