// Data that a rank has for others, or wants from them, in pieces of lengths of their own.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/arguments/side.h"
#include "runtime/execution/communicator.h"
#include "runtime/execution/number_list.h"
#include "runtime/execution/piece.h"
#include "runtime/execution/request.h"
#include "runtime/layer.h"

namespace plait::runtime {

// A layout by place, looked up where there is data: `find` returns nullptr where the caller must check the type.
struct LayoutList {
  const void* types = nullptr;
  const Layout* (*find)(const void* types, int place) = nullptr;
};

// One for each rank, or for each place in a list of neighbours.
struct Pieces {
  const void* address = nullptr;
  NumberList counts{};
  NumberList displacements{};                          // in extents; in bytes where the layouts are several
  const Layout* layout = nullptr;                      // of all of them
  LayoutList layouts{};                                // else
  const std::ptrdiff_t* byte_displacements = nullptr;  // in place of the others
};

// Whether all that is said of them is there.
bool is_complete(const Pieces& side);
// Precondition: is_complete(). False when the caller must check it.
bool take_piece(Piece& piece, const Pieces& side, int place);
bool take_piece(Piece& piece, const Elements& elements);

// For the report: the bytes that this rank gives and gets.
void count_pieces(Request& request);

// As side.h says.

const char* prepare_exchange(const Communicator& communicator, Request& request, const Pieces& send,
                             const Pieces& receive);
// Of the root's pieces for all: each rank has one of its own, which the root may leave in place.
const char* prepare_gatherv(const Communicator& communicator, Request& request, int root, const Elements& own,
                            const Pieces& at_root);
const char* prepare_scatterv(const Communicator& communicator, Request& request, int root, const Pieces& at_root,
                             const Elements& own);

}  // namespace plait::runtime
