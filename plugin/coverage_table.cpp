// Writes docs/coverage.md from plugin/coverage.h.
//
//   coverage_table                prints the page
//   coverage_table --check FILE   exits with 1 unless that is what the file holds
//   coverage_table --write FILE
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "plugin/coverage.h"

namespace {

using namespace plait::plugin::coverage;

std::string form_name(CallForm form) {
  return form == CallForm::blocking ? "blocking" : form == CallForm::nonblocking ? "non-blocking" : "persistent";
}

// Why calls go to the host, each once: a letter in the table, a line below it.
class Notes {
 public:
  std::string letter_of(std::string_view text) {
    std::size_t index = 0;
    while (index < texts_.size() && texts_[index] != text) ++index;
    if (index == texts_.size()) texts_.emplace_back(text);
    return {static_cast<char>('a' + index)};
  }
  std::string text() const {
    std::string all;
    for (std::size_t i = 0; i < texts_.size(); ++i)
      all += "- (" + std::string(1, static_cast<char>('a' + i)) + ") " + texts_[i] + "\n";
    return all;
  }

 private:
  std::vector<std::string> texts_;
};

std::string exceptions_of(std::string_view mpi_name, CallForm form) {
  std::string numbers;
  for (std::size_t i = 0; i < exceptions.size(); ++i)
    if (concerned(exceptions[i].concerns, mpi_name, form))
      numbers += (numbers.empty() ? "" : ", ") + std::to_string(i + 1);
  return numbers;
}

std::string row(std::string_view mpi_name, CallForm form, Notes& notes) {
  std::string line = "| `MPI_" + std::string(mpi_name) + "` | " + form_name(form);
  bool anywhere = false;
  for (const Binding binding : bindings) {
    const std::string_view reason = host_because(mpi_name, form, binding);
    anywhere |= reason.empty();
    line += reason.empty() ? " | accelerated" : " | host (" + notes.letter_of(reason) + ")";
  }
  return line + " | " + (anywhere ? exceptions_of(mpi_name, form) : "") + " |\n";
}

std::string table(Notes& notes) {
  std::string text = "| collective | form |";
  for (const std::string_view binding : binding_names) text += " " + std::string(binding) + " |";
  text += " but not when |\n|---|---|---|---|---|---|\n";
  for (const std::string_view mpi_name : mpi_collectives)
    for (const CallForm form : forms)
      if (!on_neighbours(mpi_name) || form != CallForm::persistent) text += row(mpi_name, form, notes);
  return text;
}

std::string exception_list() {
  std::string text;
  for (std::size_t i = 0; i < exceptions.size(); ++i)
    text += std::to_string(i + 1) + ". \"" + std::string(exceptions[i].reason) +
            "\": " + std::string(exceptions[i].why) + "\n";
  return text;
}

std::string page() {
  Notes notes;
  const std::string rows = table(notes);
  return "# What is accelerated\n\n"
         "Written by `coverage_table --write docs/coverage.md` from `plugin/coverage.h`; do not edit. The tests\n"
         "`conformance.coverage*` hold these tables against what the bindings do. The collectives are those of MPI "
         "3.1;\n"
         "persistent forms are `MPIX_*_init` in Open MPI 4.1 and `MPI_*_init` in MPICH and MPI 4.\n\n" +
         rows + "\nWhy the host has all calls:\n\n" + notes.text() +
         "\nWhen a call of an accelerated form is the host's, in the words of `PLAIT_REPORT`:\n\n" + exception_list() +
         "\nNo call at all is accelerated with `PLAIT_DISABLE`, after `plait_set_enabled(0)`, where the settings of "
         "the ranks\n"
         "differ, and on a communicator whose set-up failed; the report then says so.\n";
}

std::string content(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

int check(const char* path) {
  if (content(path) == page()) return 0;
  std::fprintf(stderr, "%s is stale: coverage_table --write %s\n", path, path);
  return 1;
}

int write(const char* path) {
  std::ofstream file(path);
  file << page();
  file.close();
  if (file) return 0;
  std::fprintf(stderr, "%s cannot be written\n", path);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string option = argc > 1 ? argv[1] : "";
  if (argc == 3 && option == "--check") return check(argv[2]);
  if (argc == 3 && option == "--write") return write(argv[2]);
  if (argc != 1) {
    std::fprintf(stderr, "usage: coverage_table [--check FILE | --write FILE]\n");
    return 2;
  }
  std::fputs(page().c_str(), stdout);
  return 0;
}
