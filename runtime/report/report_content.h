// What the report says, without how it is written: as text or as a page. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plait::runtime {

struct ReportContent {
  struct Row {
    std::string collective;
    int ranks = 0;
    std::string sizes;  // "1 B - 8 B"; "-" without data
    std::uint64_t calls = 0, bytes = 0;
    double seconds = 0;
    std::string plan;      // "host" where the host had it
    std::string channels;  // of a plan, "mpi,shm"
    std::string reason;    // why the host had it
    bool by_host() const { return plan == "host"; }
  };
  struct Total {
    std::uint64_t calls = 0, bytes = 0, accelerated = 0;  // accelerated: calls
    double seconds = 0;
  };
  struct Rail {
    std::string name;
    std::uint64_t bytes = 0;
  };

  int ranks = 0;  // of MPI_COMM_WORLD
  std::string version;
  std::vector<Row> rows;
  Total total;
  std::vector<Rail> rails;
  std::vector<std::string> facts;   // sentences below the table, such as "MPI: Open MPI v4.1.4"
  std::vector<std::string> advice;  // likewise: what to do about it
};

// The table for people on a terminal: each line begins with "plait: " and ends in a newline.
std::string report_text(const ReportContent& content);

// One HTML page that needs nothing else, in light and dark: the same table, bars of the time by collective and of the
// bytes by rail, and why calls went to the host. All texts are escaped.
std::string report_page(const ReportContent& content);

}  // namespace plait::runtime
