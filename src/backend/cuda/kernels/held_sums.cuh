// The sums that a thread holds of a product of Hopper's tensor cores, as operands of its instruction: PTX numbers each,
// and C++ has no list of them.
#pragma once

/// Their names in the text, when they are the first operands: of 32, 64 and 96 numbers.
#define TOKAMAK_SUMS_32 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define TOKAMAK_SUMS_64 TOKAMAK_SUMS_32 \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define TOKAMAK_SUMS_96 TOKAMAK_SUMS_64 \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"

/// The numbers d[0], d[1], ... themselves, which are read and written.
#define TOKAMAK_HELD_8(d, i) \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), \
  "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define TOKAMAK_HELD_32(d) \
  TOKAMAK_HELD_8(d, 0), TOKAMAK_HELD_8(d, 8), TOKAMAK_HELD_8(d, 16), TOKAMAK_HELD_8(d, 24)
#define TOKAMAK_HELD_64(d) \
  TOKAMAK_HELD_32(d), TOKAMAK_HELD_8(d, 32), TOKAMAK_HELD_8(d, 40), TOKAMAK_HELD_8(d, 48), TOKAMAK_HELD_8(d, 56)
#define TOKAMAK_HELD_96(d) \
  TOKAMAK_HELD_64(d), TOKAMAK_HELD_8(d, 64), TOKAMAK_HELD_8(d, 72), TOKAMAK_HELD_8(d, 80), TOKAMAK_HELD_8(d, 88)
