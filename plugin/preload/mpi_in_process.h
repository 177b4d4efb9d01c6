// Which MPI library this process uses.
#pragma once

#include <cstddef>

namespace plait::plugin::preload {

// A kind of MPI library that Plait knows: all libraries of one kind have the same mpi.h.
struct MpiKind {
  const char* name;            // "Open MPI"
  const char* library;         // the file that programs are linked with, for messages
  const char* mark;            // a symbol that only this kind defines, part of its binary interface
  const char* implementation;  // the file of Plait's implementation for it
};

struct MpiInProcess {
  void* library = nullptr;        // as of dlopen(), never closed; nullptr: the process has no MPI library
  const MpiKind* kind = nullptr;  // nullptr: none that Plait knows
};

// The library whose functions the program would call without libplait.so. Where there is none among the libraries that
// all see, one that was loaded for a part of the program only, as interpreters do. Thread-safe; makes system calls.
MpiInProcess find_mpi();

// "Open MPI (libmpi.so.40) or MPICH (libmpich.so.12)", at most `bytes` with the final 0.
void describe_known_kinds(char* text, std::size_t bytes);

}  // namespace plait::plugin::preload
