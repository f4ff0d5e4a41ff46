// edit.h -- surgery on parsed PTX: take a statement out, put one in, move one, change an operand. Branch
// targets are statement indices, so every edit renumbers them; what was reached before is reached after.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/parse/module.h"

namespace mutation {

using sim::ptx::Function;
using sim::ptx::Operand;
using sim::ptx::Statement;

// Says whether two functions have the same statements with the same operands.
bool same_statements(const Function& a, const Function& b);

// Returns for example "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64".
std::string spelling(const Statement& statement);
// Does the spelling begin with `prefix`, up to the end of a word?
// is(s, "tcgen05.ld") is false of tcgen05.ldx.
bool is(const Statement& statement, std::string_view prefix);

void erase(Function& function, size_t at);
// Branches to `at` run the new statement first.
void insert(Function& function, size_t at, Statement statement);
// These move a statement to stand directly before or after another one.
void move_before(Function& function, size_t from, size_t other);
void move_behind(Function& function, size_t from, size_t other);

void drop_qualifier(Statement& statement, const std::string& qualifier);
// Throws std::logic_error when there is no such qualifier.
void replace_qualifier(Statement& statement, const std::string& from, const std::string& to);

// Makes a statement at the place of `like`, with the same site and guard.
Statement make(const Statement& like, const std::string& spelling, std::vector<Operand> operands);
Operand integer(int64_t value);
Operand of_register(uint32_t reg);
uint32_t fresh_register(Function& function, sim::ptx::Type type);

// Adds `delta` to operand `index` of the statement at `at`. A register keeps its value for everybody else: a
// fresh one is computed before, and the statement moves one further. An address changes its displacement.
void add_to_operand(Function& function, size_t at, size_t index, int64_t delta);
// Does the same with exclusive or, on a register or an integer.
void flip_operand(Function& function, size_t at, size_t index, int64_t bits);
// Adds to coordinate `which` of the address operand `index`.
void add_to_coordinate(Function& function, size_t at, size_t index, size_t which, int64_t delta);

// These return the registers that a statement reads or writes. The destination of PTX comes first: `writes`
// is exact for the instructions this knows and empty for stores, arrivals and other instructions without a
// result.
std::vector<uint32_t> reads(const Statement& statement);
std::vector<uint32_t> writes(const Statement& statement);

}  // namespace mutation
