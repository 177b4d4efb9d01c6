// A PMPI tool that breaks what Plait's plans make of an allreduce, so that random_jobs sees a difference found.
#include <dlfcn.h>
#include <mpi.h>

#include <cstring>

extern "C" __attribute__((visibility("default"))) int MPI_Allreduce(const void* send, void* receive, int count,
                                                                    MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const int code = PMPI_Allreduce(send, receive, count, type, op, comm);
  const auto last_plan = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "plait_last_plan"));
  const bool planned = last_plan != nullptr && std::strcmp(last_plan(), "host") != 0;
  if (planned && count > 0) *static_cast<unsigned char*>(receive) ^= 1;
  return code;
}
