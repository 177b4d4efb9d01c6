// Element types and operators of the test: every predefined one, and user-defined ones whose result does not depend on
// how the operands are grouped, so that a correct result is equal to the host's bit for bit.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <string>
#include <vector>

#include "tests/differential/random.h"

namespace plait::test {

// What decides which values an operator's operands may have.
enum class Family { sum, prod, order, logical, bitwise, location, user };

struct Operator {
  std::string name;
  MPI_Op handle = MPI_OP_NULL;
  Family family = Family::sum;
  // MPI defines the combination; the host accepts some more, and what Plait does with those is its own affair.
  bool required = true;
  // The operator as it should be, for the host, where the host's own is wrong; none: `handle`.
  MPI_Op corrected = MPI_OP_NULL;
};

struct Basic {
  // Writes `count` operands of an operator of this family, of which every partial result is representable exactly.
  // Padding keeps what it holds.
  using Fill = void (*)(std::byte* to, std::size_t count, Family family, Random& random);

  std::string name;
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  std::size_t size = 0;           // bytes of data
  std::size_t extent = 0;         // bytes from one element to the next
  Fill fill = nullptr;            // nullptr: any bytes will do
  std::vector<bool> value_bytes;  // those of an element that hold its value; empty: all
  std::size_t alignment = 1;      // that the host's own reductions rely on
  std::vector<Operator> operators;
  // A type without gaps of the same elements and operators, for the host; none: the handle itself.
  MPI_Datatype dense = MPI_DATATYPE_NULL;
};

// Every predefined type that this MPI has, with the operators that the host accepts for it, then the user-defined ones.
// Between MPI_Init and free_basics(). Sets the error handler of MPI_COMM_WORLD for the time of its questions.
std::vector<Basic> make_basics();
void free_basics(std::vector<Basic>& basics);

}  // namespace plait::test
