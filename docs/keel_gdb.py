"""gdb: how Tensor, Shape and Var are printed. Load it with  gdb -x docs/keel_gdb.py.

A Tensor shows dtype, device, shape and its first numbers; on a real GPU, which gdb cannot read, no numbers.
`set print elements N` says how many numbers at most (0 and `unlimited`: all)."""
import struct

import gdb
import gdb.printing


def sizes_of(shape):
    return [int(shape["sizes_"]["_M_elems"][axis]) for axis in range(int(shape["rank_"]))]


def nested(numbers, sizes):
    """Row-major numbers as text, a pair of brackets an axis; fewer numbers than there are end in dots."""
    if not sizes:
        return next(numbers, "...")
    parts = []
    for _ in range(sizes[0]):
        parts.append(nested(numbers, sizes[1:]))
        if parts[-1].endswith("..."):
            break
    cut = bool(parts) and parts[-1].endswith("...")
    return "[" + ", ".join(parts) + ("" if cut else "]")


class ShapePrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        return str(sizes_of(self.value))


class TensorPrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        block = self.value["storage_"]["block_"]
        if not block:
            return "Tensor, not filled"
        wide = "f64" in str(self.value["dtype_"])
        sizes = sizes_of(self.value["shape_"])
        kind = f"{'float64' if wide else 'float32'} {sizes}"
        block = block.dereference()
        device = int(block["device"]["index_"])
        if device >= 0:
            kind += f" on cuda:{device}"
        count = 1
        for size in sizes:
            count *= size
        most = gdb.parameter("print elements") or count
        count, width = min(count, most), 8 if wide else 4
        try:
            raw = gdb.selected_inferior().read_memory(int(block["data"]) + int(self.value["offset_"]), count * width)
        except gdb.MemoryError:
            return kind
        numbers = struct.unpack(f"{count}{'d' if wide else 'f'}", raw)
        return f"{kind} {nested(iter([f'{number:.6g}' for number in numbers]), sizes)}"


class VarPrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        slot = int(self.value["slot_"])
        return f"{'constant' if slot < 0 else f'slot {slot}'}: {TensorPrinter(self.value['value_']).to_string()}"


printers = gdb.printing.RegexpCollectionPrettyPrinter("keel")
printers.add_printer("Shape", "^keel::Shape$", ShapePrinter)
printers.add_printer("Tensor", "^keel::Tensor$", TensorPrinter)
printers.add_printer("Var", "^keel::Var$", VarPrinter)
gdb.printing.register_pretty_printer(None, printers)
