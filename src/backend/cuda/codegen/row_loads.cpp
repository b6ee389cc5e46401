// Of RowWriter: where operands are read.
#include "backend/cuda/codegen/row_writer.h"
#include "backend/cuda/device_types.h"

namespace tokamak::cuda {

using Keep = RowPlan::Keep;

// What a row needs, as one value, so that the next row's can be under way while this one's are worked on.
void RowWriter::write_load_function() {
  text_.open("struct Operands");
  for (int v = 0; v < count(); ++v)
    if (is_loaded_ahead(v) && is_operand(v))
      text_.line("Packed<{}, kVector> x{}[kVectors];", device_type(value(v).dtype), v);
    else if (is_loaded_ahead(v))
      text_.line("float x{};", v);
  text_.close("};");
  text_.open("const auto load = [&](Index row)");
  text_.line("Operands loaded;");
  for (int v = 0; v < count(); ++v)
    if (is_loaded_ahead(v) && !is_operand(v))
      text_.line("loaded.x{} = to_float(a{}[{}]);", v, value(v).outer, expression_.place(v));
  write_vector_loop([&] {
    for (int v = 0; v < count(); ++v)
      if (is_operand(v)) write_load("loaded.", v);
  });
  text_.line("return loaded;");
  text_.close("};");
  for (int v = 0; v < count(); ++v)
    if (is_kept_column(v)) text_.line("Packed<{}, kVector> x{}[kVectors];", device_type(value(v).dtype), v);
  write_vector_loop([&] {
    for (int v = 0; v < count(); ++v)
      if (is_kept_column(v)) write_load("", v);
  });
  text_.line("Operands now = load(first_row < kRows ? first_row : kRows - 1);");
}

void RowWriter::write_load(const char* into, int v) {
  text_.line("{}x{}[k] = load_packed<kVector>(a{} + {});", into, v, value(v).outer, expression_.place(v));
}

void RowWriter::write_exchange() {
  text_.line("const Operands next = load(row + kStep < kRows ? row + kStep : row);");
  for (int v = 0; v < count(); ++v)
    if (is_loaded_ahead(v) && is_operand(v)) text_.line("const auto& x{0} = now.x{0};", v);
}

// Every operand of the row, once.
void RowWriter::write_loads() {
  if (plan_.keep == Keep::kNothing) return;
  if (plan_.keep == Keep::kShared) text_.line("extern __shared__ __align__(16) unsigned char staged[];");
  int64_t at = 0;
  for (int v = 0; v < count(); ++v) {
    if (!is_operand(v)) continue;
    const char* type = device_type(value(v).dtype);
    if (plan_.keep == Keep::kRegisters) {
      text_.line("Packed<{}, kVector> x{}[kVectors];", type, v);
    } else {
      text_.line("{0}* const x{1} = reinterpret_cast<{0}*>(staged + {2});", type, v, at);
      at += staged_bytes(body_, value(v));
    }
  }
  write_vector_loop([&] {
    for (int v = 0; v < count(); ++v) {
      if (!is_operand(v)) continue;
      if (plan_.keep == Keep::kRegisters)
        write_load("", v);
      else
        text_.line("stage<kVector>(x{} + column, a{} + {});", v, value(v).outer, expression_.place(v));
    }
  });
  if (plan_.keep == Keep::kShared) text_.line("wait_for_staged();");
}

// The packed vector of an argument that is not in registers.
void RowWriter::write_source(int v) {
  if (!value(v).is_input() || in_registers(v)) return;
  if (is_operand(v) && plan_.keep == Keep::kShared)
    text_.line("const auto p{0} = load_packed<kVector>(x{0} + column);", v);
  else
    text_.line("const auto p{} = load_packed<kVector>({}(a{}) + {});", v, plan_.ahead ? "again" : "", value(v).outer,
               expression_.place(v));
}

}  // namespace tokamak::cuda
