// Failures of ours, raised as MPI's own are.
#pragma once

#include <mpi.h>

#include <exception>

#include "core/attempt.h"
#include "core/status.h"

namespace plait::plugin {

using plait::status_of;  // beside those of codes below

// An error code of class MPI_ERR_OTHER whose text is the status's message: there is one, which the latest names. With
// MPICH, whose 4.0 forgets the texts of codes that are added to its classes, it is of a class of our own.
int error_code(const Status& status);

// The same for an argument that cannot be used, always in a class of our own. None of the codes needs memory of ours.
int argument_error_code(const Status& status);

// What an error code says, ours or the host's.
Status status_of(int code);

// Calls the communicator's error handler with the code that error_code() has for the status, and returns what the MPI
// function is to return. May not return: the default handler ends the job.
int raise_error(MPI_Comm comm, const Status& status);

// The same with a code that the host gave.
int raise_error(MPI_Comm comm, int code);

// For the public C functions, which no exception leaves: what is thrown within them is a lack of memory.
template <class Work>
int guarded(MPI_Comm comm, Work&& work) {
  try {
    return work();
  } catch (const std::exception&) {
    return raise_error(comm, MPI_ERR_NO_MEM);
  }
}

// The same for a collective call that came through a binding: where the host raises what the binding returns (Host),
// this only gives the code.
int raise_error_of_call(MPI_Comm comm, const Status& status);
int raise_error_of_call(MPI_Comm comm, int code);

}  // namespace plait::plugin
