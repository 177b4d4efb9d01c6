#include "plugin/mpi/api/chosen_channels.h"

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/attempt.h"
#include "core/channel_kind.h"
#include "core/config.h"
#include "core/log.h"
#include "core/text_hash.h"
#include "plugin/layer.h"
#include "plugin/mpi/call/lifecycle.h"
#include "plugin/mpi/communicator/communicator.h"
#include "plugin/mpi/communicator/communicators.h"
#include "plugin/mpi/host/errors.h"
#include "plugin/mpi/host/host.h"
#include "runtime/job/job.h"

namespace plait::plugin {
namespace {

std::string refusal(const MpiCommunicator& communicator, const std::string& channels, bool named) {
  if (!named) return "\"" + channels + "\": expected a list of" PLAIT_SPACED_CHANNEL_NAMES;
  const bool connected = communicator.road != Road::waiting || communicator.persistent != nullptr;
  return connected ? "the communicator is connected already" : std::string();
}

}  // namespace

int choose_channels(MPI_Comm comm, const char* channels) {
  if (phase() == Phase::before && host().allreduce != nullptr) start_late();
  MpiCommunicator* communicator = phase() == Phase::open ? find_communicator(comm) : nullptr;
  if (communicator == nullptr) return MPI_SUCCESS;
  if (communicator->inter) return MPI_ERR_ARG;
  std::vector<std::string> chosen;
  std::string refused;
  const Status read = attempt([&]() -> Status {
    chosen = parse_channels(channels);
    refused = refusal(*communicator, channels, *channels == '\0' || !chosen.empty());
    return {};
  });
  if (!read.ok()) refused = "out of memory";
  // The lowest rank that refuses, and whether all lists are the same.
  const auto print = static_cast<std::int64_t>(hash_text(channels) >> 1);
  const std::int64_t willing = refused.empty() ? communicator->ranks : communicator->rank;
  const std::array<std::int64_t, 3> own = {willing, print, -print};
  std::array<std::int64_t, 3> lowest{};
  if (host().allreduce(own.data(), lowest.data(), 3, MPI_INT64_T, MPI_MIN, comm) != MPI_SUCCESS)
    return raise_error(comm, Status(Code::peer_failed, "the ranks could not agree on channels"));
  const bool same = lowest[1] == -lowest[2];
  if (lowest[0] == communicator->ranks && same) {
    communicator->channels = std::move(chosen);
    return MPI_SUCCESS;
  }
  const bool speaks = communicator->rank == (lowest[0] < communicator->ranks ? lowest[0] : 0);
  if (speaks) warn("plait_set_channels: " + (refused.empty() ? "the ranks name different channels" : refused));
  return MPI_ERR_ARG;
}

}  // namespace plait::plugin
