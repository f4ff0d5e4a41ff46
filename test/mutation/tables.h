// tables.h -- which statement is changed, and in which ways.
#pragma once

#include <initializer_list>
#include <vector>

#include "mutation/operators.h"

namespace mutation {

bool begins_with_one_of(const Statement& statement, std::initializer_list<const char*> prefixes);
bool is_tma(const Statement& statement);
bool is_synchronisation(const Statement& statement);
// Says whether the statement stores to global memory, which it names or not.
bool is_global_store(const Statement& statement);

// These return the changes of the statement at `at`: as an instruction that synchronises, as arithmetic from
// which a wait takes its barrier and its parity, and of its operands.
std::vector<Change> changes_of_synchronisation(const Function& function, size_t at);
std::vector<Change> changes_of_ring_arithmetic(const Function& function, size_t at);
std::vector<Change> changes_of_operands(const Function& function, size_t at);

}  // namespace mutation
