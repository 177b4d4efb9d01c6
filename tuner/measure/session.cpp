#include "tuner/measure/session.h"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iostream>

#include "plan/model/fingerprint.h"

namespace plait::tuner {
namespace {

// Set for each rank by Open MPI, PMIx, MPICH, Intel MPI and MVAPICH launchers, and by srun's PMI plugins; not set by a
// mere allocation.
constexpr std::array<std::string_view, 5> launcher_variables = {
    "OMPI_COMM_WORLD_SIZE=", "PMIX_RANK=", "PMI_RANK=", "PMI_ID=", "MV2_COMM_WORLD_SIZE="};

// The default error handler ends the job with MPI's own message, which is all this tool could do as well: return codes
// need no look.
MPI_Comm world() { return MPI_COMM_WORLD; }

}  // namespace

bool launched_by_mpirun() {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    const auto starts = [&](std::string_view name) { return variable.starts_with(name); };
    if (std::any_of(launcher_variables.begin(), launcher_variables.end(), starts)) return true;
  }
  return false;
}

Result<MpiSession> MpiSession::start() {
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (initialized != 0) return Status(Code::internal, "MPI is already initialised");
  if (MPI_Init(nullptr, nullptr) != MPI_SUCCESS) return Status(Code::unavailable, "MPI cannot be initialised");
  int rank = 0, ranks = 1;
  MPI_Comm_rank(world(), &rank);
  MPI_Comm_size(world(), &ranks);
  return MpiSession(rank, ranks);
}

MpiSession::~MpiSession() {
  if (owner_) MPI_Finalize();
}

std::vector<std::byte> MpiSession::gather_bytes(std::span<const std::byte> mine) {
  std::vector<std::byte> all(mine.size() * static_cast<std::size_t>(ranks_));
  const int bytes = static_cast<int>(mine.size());
  MPI_Allgather(mine.data(), bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, world());
  return all;
}

std::vector<std::string> MpiSession::gather_text_at_root(std::string_view mine) {
  const bool root = rank_ == 0;
  const int length = static_cast<int>(mine.size());
  std::vector<int> lengths(root ? ranks_ : 0), begins(lengths.size());
  MPI_Gather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, world());
  int total = 0;
  for (std::size_t rank = 0; rank < lengths.size(); ++rank) {
    begins[rank] = total;
    total += lengths[rank];
  }
  std::string all(static_cast<std::size_t>(total), '\0');
  MPI_Gatherv(mine.data(), length, MPI_CHAR, all.data(), lengths.data(), begins.data(), MPI_CHAR, 0, world());
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < lengths.size(); ++rank) {
    texts.push_back(all.substr(static_cast<std::size_t>(begins[rank]), static_cast<std::size_t>(lengths[rank])));
  }
  return texts;
}

std::string MpiSession::text_of_root(std::string_view mine) {
  int length = static_cast<int>(mine.size());
  MPI_Bcast(&length, 1, MPI_INT, 0, world());
  std::string text(mine);
  text.resize(static_cast<std::size_t>(length));
  MPI_Bcast(text.data(), length, MPI_CHAR, 0, world());
  return text;
}

void MpiSession::barrier() { MPI_Barrier(world()); }

std::vector<double> MpiSession::maxima(std::span<const double> mine) {
  std::vector<double> all(mine.size());
  MPI_Allreduce(mine.data(), all.data(), static_cast<int>(mine.size()), MPI_DOUBLE, MPI_MAX, world());
  return all;
}

void MpiSession::say_once(std::string_view line) {
  if (rank_ == 0) std::cerr << std::string(line) + '\n' << std::flush;
  barrier();
}

std::string MpiSession::library() const {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> version{};
  int length = 0;
  if (PMPI_Get_library_version(version.data(), &length) != MPI_SUCCESS) return "unknown";
  return mpi_library_name(version.data());
}

std::string MpiSession::library_release() const { return mpi_release_name(library()); }

double MpiSession::wall_seconds() const { return MPI_Wtime(); }

}  // namespace plait::tuner
