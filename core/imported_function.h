// A function that a library of the process imports from another one, replaced for that library alone.
#pragma once

namespace plait {

// Makes the calls of `name` by the library that `inside` lies in, of those that it makes through its table of imported
// functions, come to `function`. False, and nothing done, where it imports no such function. Other threads must not be
// in the library.
bool replace_imported_function(const void* inside, const char* name, const void* function);

}  // namespace plait
