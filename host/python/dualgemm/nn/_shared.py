"""Lets linears of one input, such as query, key and value of an attention module, share one launch."""
import logging

import torch

from ._weights import lasting

_log = logging.getLogger(__name__)
# Buffers that are joined; the elements, whose name depends on the format, are, too.
_JOINED = ("atoms", "launch_bias", "exponents")
ATOM = 128                          # rows of an atom of factors
_PATIENCE = 2                       # sharing ends after so many launches in a row whose results were not all fetched


def obstacle(linears):
    """Returns a sentence that says why these cannot share a launch, or None. It does not look at their scales."""
    first = linears[0]
    for i, each in enumerate(linears):
        if each.shared is not None: return f"linears[{i}]: shares a launch already"
        if any(each is other for other in linears[:i]): return f"linears[{i}]: is there twice"
        if each.activation != 0 or each.tp_size > 1: return f"linears[{i}]: has an activation, or is a rank's part"
        for name in ("k", "format", "a_format", "flags"):
            if getattr(each, name) != getattr(first, name):
                return f"linears[{i}]: has {name}={getattr(each, name)!r}, and linears[0] {getattr(first, name)!r}"
        if (each.bias is None) != (first.bias is None): return f"linears[{i}]: either all have a bias or none"
        if i + 1 < len(linears) and each.n % ATOM:
            return f"linears[{i}]: has out_features={each.n}: all but the last need a multiple of {ATOM}"
    return None


def share_input(*linears):
    """Lets several nn.Linear that are called with one x, in this order, compute all results in one launch.

    The first linear's forward launches the rows of all. The forward of another one returns its part of the result if
    it gets the same tensor object and that has not been changed in between. Any other call computes its own rows. A
    change of x is noticed by its version. Tensors made under torch.inference_mode() have no version, and inside
    torch.compile it is not read: there a change is not noticed. Results are views of one tensor, whose rows have the
    out_features of all. Weights become views of one tensor, too, and take no more memory. If parts of the results of
    two launches in a row are not fetched, sharing ends, and a warning says so once.

    All linears need the same in_features, format, a_format and flags. Either all have a bias or none has one. None has
    an activation, or is a rank's part. out_features of all but the last are multiples of 128. A ValueError names the
    linear that breaks one of these rules. Their scales may differ: while they do, each linear has its own launch."""
    if len(linears) < 2: raise ValueError(f"linears: are {len(linears)}, and must be two at least")
    if (problem := obstacle(linears)) is not None: raise ValueError(problem)
    shared = SharedInput(linears)
    for place, each in enumerate(linears): each.shared, each.place = shared, place
    shared.join()


def _consecutive(parts):
    """Returns whether these tensors follow each other without a gap in one memory."""
    storage, end = parts[0].untyped_storage().data_ptr(), parts[0].data_ptr()
    for each in parts:
        if not each.is_contiguous() or each.data_ptr() != end or each.untyped_storage().data_ptr() != storage:
            return False
        end += each.nbytes
    return True


def _equal(tensors):
    """Returns whether these tensors hold the same numbers, or are all None."""
    first = tensors[0]
    if first is None: return all(each is None for each in tensors)
    return all(each is not None and torch.equal(each, first) for each in tensors)


class SharedInput:
    """What linears of one input have in common. Each linear holds it as `shared`, and its own number in it as
    `place`."""

    def __init__(self, linears):
        self.linears, self.kept, self.unwanted = list(linears), None, 0
        self.joined, self.current, self.elements, self.rows = False, False, (), {}

    def __getstate__(self):
        """Returns the state for a copy, without the results of a call. The tensors of a copy may no longer lie in one
        memory, so it looks at them again."""
        return {**self.__dict__, "kept": None, "joined": False, "current": False, "elements": ()}

    # ---- memory ----

    def _alike(self):
        """Returns whether the linears can share a launch now: their tensors are there and of the same types, and their
        scales are equal."""
        first = self.linears[0]
        if not all(each.prepared and not each.stale and each.format == first.format and each.device == first.device
                   for each in self.linears): return False
        for name in (first.names.elements, *_JOINED):
            if len({getattr(each._buffers[name], "dtype", None) for each in self.linears}) > 1: return False
        return all(_equal([each._buffers[name] for each in self.linears]) for name in ("decode", "encode_a"))

    @lasting
    def join(self):
        """Makes the tensors of all linears views of one tensor, unless they are. Each linear calls it when it has been
        prepared."""
        self.current, self.joined, self.kept, self.elements = True, self._alike(), None, ()
        if not self.joined: return
        first = self.linears[0]
        for name in (first.names.elements, *_JOINED):
            parts = [each._buffers[name] for each in self.linears]
            if parts[0] is None: continue
            self.rows[name] = sum(len(each) for each in parts)
            if not _consecutive(parts): self._move(name, parts)
        self.elements = [each._buffers[each.names.elements] for each in self.linears]

    def _move(self, name, parts):
        dtype, start = parts[0].dtype, 0
        whole = torch.cat([each.view(torch.uint8) if each.element_size() == 1 else each for each in parts]).view(dtype)
        for linear, part in zip(self.linears, parts):
            linear._buffers[name] = whole[start:start + len(part)]
            start += len(part)

    def _whole(self, linear):
        """Returns what the launch of all takes: the first linear's tensors, extended over those of the others, which
        follow them in memory."""
        def all_rows(name, tensor):
            return tensor if tensor is None else tensor.as_strided((self.rows[name], *tensor.shape[1:]),
                                                                   tensor.stride())
        w = linear.operands()
        return w._replace(elements=all_rows(linear.names.elements, w.elements), atoms=all_rows("atoms", w.atoms),
                          bias=all_rows("launch_bias", w.bias), exponents=all_rows("exponents", w.exponents))

    # ---- forward ----

    def result(self, linear, x):
        """Returns the linear's part of a launch of all, or None if it has to compute alone."""
        compiling = torch.compiler.is_compiling()
        if not (self.current or compiling): self.join()
        held = linear._buffers[linear.names.elements]
        if not (self.joined and linear.prepared and not linear.stale): return None
        if not compiling and held is not self.elements[linear.place]: return None  # set by name, or a replica's
        version = None if compiling or x.is_inference() else x._version
        if linear.place == 0: return self._all(linear, x, version, compiling)
        kept = self.kept  # read once: another thread may call, too
        if kept is None or kept[0] is not x or kept[1] != version or kept[2][linear.place] is None: return None
        parts = tuple(None if place == linear.place else part for place, part in enumerate(kept[2]))
        self.kept = (x, version, parts) if any(part is not None for part in parts) else None
        return kept[2][linear.place]

    def _all(self, linear, x, version, compiling):
        if not compiling:
            self.unwanted = 0 if self.kept is None else self.unwanted + 1
            if self.unwanted == _PATIENCE: return self._end()
        y, parts, start = linear.launch(x, self._whole(linear)), [], 0
        for each in self.linears:
            parts.append(y.narrow(-1, start, each.n))
            start += each.n
        self.kept = x, version, (None, *parts[1:])
        return parts[0]

    def _end(self):
        _log.warning("%d linears of one input (out_features=%s): the results of all are not wanted together, so each "
                     "is computed alone from now on", len(self.linears), [each.n for each in self.linears])
        self.kept = None
        for each in self.linears: each.shared = None
