find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc)
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)
# Highway's headers are what is used. Its library, which measures the processor's clock when a process loads it, is linked
# only where something refers to it: the assertions of unoptimized and sanitizers' builds.
add_library(plait_highway INTERFACE)
target_include_directories(plait_highway INTERFACE ${HWY_INCLUDE_DIRS})
target_link_libraries(plait_highway INTERFACE "-Wl,--push-state,--as-needed,${HWY_LINK_LIBRARIES},--pop-state")
# Headers only: Levenberg and Marquardt's method, in one file of plan/overlap. As system headers, whose warnings are theirs.
find_package(Eigen3 REQUIRED NO_MODULE)
if(Eigen3_VERSION VERSION_LESS 3.4)  # asked of it, 5.0 would say that it is not compatible
  message(FATAL_ERROR "Eigen ${Eigen3_VERSION} was found: expected 3.4 or later")
endif()
add_library(plait_eigen INTERFACE)
target_link_libraries(plait_eigen INTERFACE Eigen3::Eigen)
pkg_check_modules(IBVERBS REQUIRED IMPORTED_TARGET libibverbs)

find_path(UCX_INCLUDE_DIR ucp/api/ucp.h REQUIRED)

# Optional: the network of perf/train.
pkg_check_modules(OPENBLAS IMPORTED_TARGET openblas)

# Optional: plait simulate collective.
find_library(SIMGRID_LIBRARY simgrid)
find_path(SMPI_INCLUDE_DIR mpi.h PATHS /usr/include/smpi NO_DEFAULT_PATH)

include(CheckLanguage)
check_language(Fortran)
if(CMAKE_Fortran_COMPILER)
  enable_language(Fortran)
endif()
include(cmake/Mpi.cmake)
