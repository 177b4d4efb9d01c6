#include "runtime/call/chosen_channels.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "core/attempt.h"
#include "core/channel_kind.h"
#include "core/config.h"
#include "core/log.h"
#include "core/text_hash.h"
#include "runtime/execution/decide.h"
#include "runtime/oob/verdict.h"

namespace plait::runtime {
namespace {

std::string refusal(const Communicator& communicator, const std::string& channels, bool named) {
  if (!named) return "\"" + channels + "\": expected a list of" PLAIT_SPACED_CHANNEL_NAMES;
  const bool connected = !waits_for_set_up(communicator) || communicator.persistent != nullptr;
  return connected ? "the communicator is connected already" : std::string();
}

}  // namespace

Answer choose_channels(Communicator& communicator, Oob& all, const char* channels) {
  std::vector<std::string> chosen;
  std::string refused;
  const Status read = attempt([&]() -> Status {
    chosen = parse_channels(channels);
    refused = refusal(communicator, channels, *channels == '\0' || !chosen.empty());
    return {};
  });
  if (!read.ok()) refused = "out of memory";
  const std::array prints = {hash_text(channels)};
  Verdict verdict;
  if (!compare(all, refused.empty(), prints, "agree on channels", verdict).ok())
    return Answer::failure(Status(Code::peer_failed, "the ranks could not agree on channels"));
  if (!verdict.some_refuse() && verdict.all_same()) {
    communicator.channels = std::move(chosen);
    return {};
  }
  if (communicator.rank == verdict.speaker())
    warn("plait_set_channels: " + (refused.empty() ? "the ranks name different channels" : refused));
  return {.what = Answer::What::refused};
}

}  // namespace plait::runtime
