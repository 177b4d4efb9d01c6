! Cross-mesh resharding for Fortran programs: plait_reshard_* of plait_mpi.h, which says what they do and want. Compile
! this file with the program and link with libplait.so.
!
! Meshes and shapes are in C's order, as everywhere in Plait: the first dimension is the slowest. Of a Fortran array
! a(n1,n2) the shape is [n2,n1]. Ranks count from 0. With mpi_f08 pass comm%MPI_VAL, type%MPI_VAL and request%MPI_VAL.
module plait_reshard
  use, intrinsic :: iso_c_binding
  implicit none
  private
  public :: plait_reshard_create, plait_reshard_local, plait_reshard_execute, plait_reshard_start, plait_reshard_free
  integer(c_int), parameter, public :: plait_reshard_source = 0, plait_reshard_destination = 1
  type(c_ptr), parameter, public :: plait_reshard_null = c_null_ptr

  interface
    function c_create(comm, src_ndims, src_dims, src_ranks, src_spec, dst_ndims, dst_dims, dst_ranks, dst_spec, &
                      ndims, shape, element, options, plan) bind(c, name="plait_reshard_create_f") result(error)
      import :: c_int, c_int64_t, c_ptr, c_char
      integer(c_int), value :: comm, src_ndims, dst_ndims, ndims, element
      integer(c_int), intent(in) :: src_dims(*), dst_dims(*)
      type(c_ptr), value :: src_ranks, dst_ranks
      character(kind=c_char), intent(in) :: src_spec(*), dst_spec(*), options(*)
      integer(c_int64_t), intent(in) :: shape(*)
      type(c_ptr), intent(out) :: plan
      integer(c_int) :: error
    end function
    function c_local(plan, side, offset, length) bind(c, name="plait_reshard_local") result(error)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: plan
      integer(c_int), value :: side
      integer(c_int64_t), intent(out) :: offset(*), length(*)
      integer(c_int) :: error
    end function
    function c_execute(plan, source, destination) bind(c, name="plait_reshard_execute") result(error)
      import :: c_int, c_ptr
      type(c_ptr), value :: plan
      type(*), intent(in) :: source(*)
      type(*) :: destination(*)
      integer(c_int) :: error
    end function
    function c_start(plan, source, destination, request) bind(c, name="plait_reshard_start_f") result(error)
      import :: c_int, c_ptr
      type(c_ptr), value :: plan
      type(*), intent(in), asynchronous :: source(*)
      type(*), asynchronous :: destination(*)
      integer(c_int), intent(out) :: request
      integer(c_int) :: error
    end function
    function c_free(plan) bind(c, name="plait_reshard_free") result(error)
      import :: c_int, c_ptr
      type(c_ptr), intent(inout) :: plan
      integer(c_int) :: error
    end function
  end interface

contains

  subroutine plait_reshard_create(comm, src_dims, src_ranks, src_spec, dst_dims, dst_ranks, dst_spec, shape, element, &
                                  options, plan, ierror)
    integer, intent(in) :: comm, src_dims(:), dst_dims(:), element
    integer(c_int), intent(in), target :: src_ranks(:), dst_ranks(:)
    character(*), intent(in) :: src_spec, dst_spec, options
    integer(c_int64_t), intent(in) :: shape(:)
    type(c_ptr), intent(out) :: plan
    integer, intent(out) :: ierror
    integer(c_int), allocatable, target :: sources(:), destinations(:)
    sources = src_ranks
    destinations = dst_ranks
    ierror = c_create(comm, size(src_dims), src_dims, address(sources), text(src_spec), size(dst_dims), dst_dims, &
                      address(destinations), text(dst_spec), size(shape), shape, element, text(options), plan)
  end subroutine

  subroutine plait_reshard_local(plan, side, offset, length, ierror)
    type(c_ptr), intent(in) :: plan
    integer, intent(in) :: side
    integer(c_int64_t), intent(out) :: offset(*), length(*)
    integer, intent(out) :: ierror
    ierror = c_local(plan, side, offset, length)
  end subroutine

  subroutine plait_reshard_execute(plan, source, destination, ierror)
    type(c_ptr), intent(in) :: plan
    type(*), intent(in) :: source(*)
    type(*) :: destination(*)
    integer, intent(out) :: ierror
    ierror = c_execute(plan, source, destination)
  end subroutine

  subroutine plait_reshard_start(plan, source, destination, request, ierror)
    type(c_ptr), intent(in) :: plan
    type(*), intent(in), asynchronous :: source(*)
    type(*), asynchronous :: destination(*)
    integer, intent(out) :: request, ierror
    ierror = c_start(plan, source, destination, request)
  end subroutine

  subroutine plait_reshard_free(plan, ierror)
    type(c_ptr), intent(inout) :: plan
    integer, intent(out) :: ierror
    ierror = c_free(plan)
  end subroutine

  ! Nothing for an empty list: the ranks are then 0, 1, ..
  function address(ranks)
    integer(c_int), intent(in), target :: ranks(:)
    type(c_ptr) :: address
    address = c_null_ptr
    if (size(ranks) > 0) address = c_loc(ranks)
  end function

  function text(words)
    character(*), intent(in) :: words
    character(kind=c_char) :: text(len_trim(words) + 1)
    integer :: i
    do i = 1, len_trim(words)
      text(i) = words(i:i)
    end do
    text(len_trim(words) + 1) = c_null_char
  end function

end module
