#include "plan/step/schedule_file.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/json.h"
#include "plan/model/json_members.h"
#include "plan/motif/motif.h"

namespace plait::plan::step {
namespace {

constexpr std::size_t most_operations = 4096, most_channels = 32, most_places = std::size_t{1} << 18;
constexpr int deepest_schedule = 6;

std::string at(const char* list, std::size_t index) { return std::string(list) + "[" + std::to_string(index) + "]."; }

// 0 to `most`; absent: as it was.
Status read_number(const Json* json, const std::string& where, int most, int& value) {
  if (json == nullptr) return {};
  if (!json->is_number_unsigned() || json->get<std::uint64_t>() > static_cast<std::uint64_t>(most))
    return unexpected(where, "0 to " + std::to_string(most));
  value = json->get<int>();
  return {};
}

Result<ScheduledOperation> parse_operation(const Json& json, const std::string& where) {
  ScheduledOperation operation;
  std::string collective;
  JsonMembers members(json, where);
  members.text("name", operation.name)
      .text("collective", collective)
      .text("plan", operation.plan)
      .bytes("bytes", operation.bytes)
      .count("pieces", operation.pieces, most_scheduled_pieces)
      .flag("blocking", operation.blocking)
      .flag("persistent", operation.persistent);
  const Json* communicator = members.any("communicator");
  if (Status status = members.finish(); !status.ok()) return status;
  if (Status status = read_number(communicator, where + "communicator", 1 << 20, operation.communicator); !status.ok())
    return status;
  const auto known = collective_named(collective);
  if (!known || !motif::whole_collective(*known, 2, 0).ok())
    return unexpected(where + "collective",
                      "allreduce, reduce, bcast, allgather, reduce_scatter_block, gather, scatter or alltoall");
  operation.collective = *known;
  return operation;
}

using Numbers = std::map<std::string, int>;

Result<ScheduledPiece> parse_place(const Json& json, const std::string& where, const Numbers& numbers,
                                   const std::vector<ScheduledOperation>& operations) {
  ScheduledPiece place;
  std::string operation;
  JsonMembers members(json, where);
  members.text("operation", operation);
  const Json *piece = members.any("piece"), *ahead = members.any("steps_ahead");
  if (Status status = members.finish(); !status.ok()) return status;
  const auto number = numbers.find(operation);
  if (number == numbers.end()) return unexpected(where + "operation", "the name of one");
  place.operation = number->second;
  const ScheduledOperation& of = operations[static_cast<std::size_t>(place.operation)];
  if (Status status = read_number(piece, where + "piece", of.pieces - 1, place.piece); !status.ok()) return status;
  if (Status status = read_number(ahead, where + "steps_ahead", most_steps_ahead, place.ahead); !status.ok())
    return status;
  return place;
}

Result<ScheduledChannel> parse_channel(const Json& json, const std::string& where, const Numbers& numbers,
                                       const std::vector<ScheduledOperation>& operations) {
  ScheduledChannel channel;
  JsonMembers members(json, where);
  members.text("name", channel.name);
  const Json* order = members.any("order");
  if (Status status = members.finish(); !status.ok()) return status;
  if (order == nullptr || !order->is_array() || order->size() > most_places)
    return unexpected(where + "order", "a list of pieces");
  for (std::size_t index = 0; index < order->size(); ++index) {
    Result<ScheduledPiece> place = parse_place((*order)[index], where + at("order", index), numbers, operations);
    if (!place.ok()) return place.status();
    channel.order.push_back(*place);
  }
  return channel;
}

Status check_pieces(const StepSchedule& schedule) {
  std::map<std::pair<int, int>, int> ahead_of;
  for (const ScheduledChannel& channel : schedule.channels) {
    std::set<std::pair<int, int>> here;
    for (const ScheduledPiece& place : channel.order) {
      const std::string piece = "piece " + std::to_string(place.piece) + " of \"" +
                                schedule.operations[static_cast<std::size_t>(place.operation)].name + "\"";
      if (!here.insert({place.operation, place.piece}).second)
        return {Code::invalid, "channel \"" + channel.name + "\": " + piece + " stands there twice"};
      const auto [first, fresh] = ahead_of.try_emplace({place.operation, place.piece}, place.ahead);
      if (!fresh && first->second != place.ahead)
        return {Code::invalid, piece + ": steps_ahead differs between its channels"};
    }
  }
  for (std::size_t number = 0; number < schedule.operations.size(); ++number) {
    const ScheduledOperation& operation = schedule.operations[number];
    for (int piece = 0; piece < operation.pieces; ++piece)
      if (!ahead_of.contains({static_cast<int>(number), piece}))
        return {Code::invalid,
                "piece " + std::to_string(piece) + " of \"" + operation.name + "\" stands on no channel"};
  }
  return {};
}

Status parse_lists(const Json* operations, const Json* channels, StepSchedule& schedule) {
  Numbers numbers;
  for (std::size_t index = 0; index < operations->size(); ++index) {
    Result<ScheduledOperation> operation = parse_operation((*operations)[index], at("operations", index));
    if (!operation.ok()) return operation.status();
    if (!numbers.try_emplace(operation->name, static_cast<int>(index)).second)
      return {Code::invalid, "operation \"" + operation->name + "\" stands twice"};
    schedule.operations.push_back(std::move(*operation));
  }
  for (std::size_t index = 0; index < channels->size(); ++index) {
    Result<ScheduledChannel> channel =
        parse_channel((*channels)[index], at("channels", index), numbers, schedule.operations);
    if (!channel.ok()) return channel.status();
    schedule.channels.push_back(std::move(*channel));
  }
  return check_pieces(schedule);
}

double seconds_in(const Json* predicted, const char* member) {
  if (predicted == nullptr || !predicted->is_object()) return 0;
  const auto found = predicted->find(member);
  return found != predicted->end() && found->is_number() ? found->get<double>() : 0;
}

}  // namespace

Result<StepSchedule> parse_schedule(std::string_view text) {
  const Result<Json> json = parse_json(text, deepest_schedule);
  if (!json.ok()) return json.status();
  StepSchedule schedule;
  JsonMembers members(*json, "");
  members.version("plait_schedule", 1).text("step", schedule.step).count("ranks", schedule.ranks, 1 << 20);
  const Json* predicted = members.any("predicted_seconds");
  const Json* operations = members.list("operations", most_operations, "operations");
  const Json* channels = members.list("channels", most_channels, "channels");
  for (const char* for_people : {"distance_to_bound", "schedules", "search_seconds"}) members.any(for_people);
  if (Status status = members.finish(); !status.ok()) return status;
  if (Status status = parse_lists(operations, channels, schedule); !status.ok()) return status;
  schedule.seconds = seconds_in(predicted, "joint");
  schedule.as_issued_seconds = seconds_in(predicted, "as_issued");
  return schedule;
}

namespace {

bool is_of(const ScheduledOperation& operation, int communicator, CallOrder order) {
  return operation.communicator == communicator && operation.persistent == (order == CallOrder::started);
}

}  // namespace

bool has_part(const StepSchedule& schedule, int communicator, CallOrder order) {
  return std::ranges::any_of(schedule.operations,
                             [&](const ScheduledOperation& one) { return is_of(one, communicator, order); });
}

StepSchedule part_of(const StepSchedule& schedule, int communicator, CallOrder order) {
  StepSchedule own = schedule;
  own.operations.clear();
  std::vector<int> numbers;
  for (const ScheduledOperation& operation : schedule.operations) {
    const bool there = is_of(operation, communicator, order);
    numbers.push_back(there ? static_cast<int>(own.operations.size()) : -1);
    if (there) own.operations.push_back(operation);
  }
  for (ScheduledChannel& channel : own.channels) {
    std::erase_if(channel.order,
                  [&](const ScheduledPiece& place) { return numbers[static_cast<std::size_t>(place.operation)] < 0; });
    for (ScheduledPiece& place : channel.order) place.operation = numbers[static_cast<std::size_t>(place.operation)];
  }
  return own;
}

}  // namespace plait::plan::step
