// Ranks that all must give, or find, the same: whether they do, and what is wrong where they do not.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "core/attempt.h"
#include "core/status.h"
#include "runtime/layer.h"
#include "runtime/oob/oob.h"

namespace plait::runtime {

// What a rank says of an argument, or of what it has found, that all must say alike.
struct Said {
  const char* subject;
  std::string text;
};

std::string list_text(const auto& values) {
  std::string text;
  for (const auto value : values) text += std::to_string(value) + " ";
  return text;
}

// Ok on all ranks or on none: where all are well and say the same. Who is well learns what another complains of. At
// most `most_subjects` (oob/verdict.h). Throws where memory is short, before the rank takes part.
Status agree(Oob& oob, const Status& mine, const std::vector<Said>& said);

// What `step` brings, collective over `oob`; where it throws, which it must do before a step that the others take, they
// go on without this rank.
template <class Step>
auto take_or_withdraw(Oob& oob, Step&& step) noexcept -> decltype(step()) {
  try {
    return step();
  } catch (const std::exception& exception) {
    oob.withdraw();
    return status_of(exception);
  }
}

// As agree(), where this rank has the memory to say something; else it is well on none.
template <class Say>
Status agree_if_possible(Oob& oob, const Status& mine, Say&& say) noexcept {
  return take_or_withdraw(oob, [&] { return agree(oob, mine, say()); });
}

// Ok on all ranks or on none: where all are. `what` they were about to do ("prepare the resharding").
Status all_prepared(Oob& oob, const Status& mine, const char* what) noexcept;

}  // namespace plait::runtime
