"""A launch that is prepared once: what its tensors and fields say is looked at then, and not in each call."""
from ._arguments import FIELDS, check_place, checked_view, in_place
from ._library import load
from ._tensors import CUDA, View, stream_handle


def _strides(view):
    """Returns the strides, of which that of a dimension with one element says nothing."""
    return tuple(0 if size == 1 else stride for size, stride in zip(view.shape, view.strides))


def _check_alike(name, new, old):
    """Checks that a tensor can take the place of another one. Of an address nothing is known."""
    if new.shape is None or old.shape is None or new[1:5] == old[1:5]: return
    for what, said, prepared in (("shape", new.shape, old.shape), ("elements", new.element, old.element),
                                 ("strides", _strides(new), _strides(old))):
        if said != prepared: raise ValueError(f"{name}: has {what} {said}, and {what} {prepared} was prepared")


class Prepared:
    """Launches whenever it is called. It holds the tensors of the last call. Threads need one each."""

    def __init__(self, args):
        self._args, self._launch = in_place(args, CUDA), load().dualgemm_launch_ex
        self._prepared = {name: view._replace(held=None) for name, view in args.views.items() if view != View(0)}

    def __call__(self, *, stream=0, **tensors):
        """Launches on `stream`. Tensors by their names replace those of the calls before. They have to be like the ones
        that were prepared, in shape, strides and elements; of an address nothing is checked."""
        if tensors: self._replace(tensors)
        self._launch(self._args, stream_handle(stream))

    def _replace(self, tensors):
        views = {name: self._view(name, tensor) for name, tensor in tensors.items()}
        for name, view in views.items(): setattr(self._args, FIELDS.get(name, name), view.address)
        self._args.views.update(views)

    def _view(self, name, tensor):
        if name not in self._prepared: raise TypeError(f"{name}: no tensor of this name was prepared")
        view = checked_view(self._args, name, tensor)
        check_place(name, view, CUDA)
        _check_alike(name, view, self._prepared[name])
        return view
