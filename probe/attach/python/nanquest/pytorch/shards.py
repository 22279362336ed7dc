"""Weights that are sharded over processes (DTensor, as fully_shard and tensor parallelism make them, and those of DeepSpeed's ZeRO 3):
the library reads this process's part."""

from __future__ import annotations

import sys

import torch

from .names import is_plain


def is_sharded(tensor) -> bool:
    # A program that shards nothing has not imported it.
    tensors = sys.modules.get("torch.distributed.tensor")
    kind = getattr(tensors, "DTensor", None)
    return kind is not None and isinstance(tensor, kind)


def gathers(tensor) -> bool:
    """Whether it is a weight of ZeRO 3, which has elements only while it is gathered; small ones always have."""
    return getattr(tensor, "ds_tensor", None) is not None


def own_part(tensor):
    """The tensor itself, or this process's part of a sharded one. Shares its memory."""
    if is_sharded(tensor):
        return tensor._local_tensor
    return tensor.ds_tensor if gathers(tensor) and tensor.numel() == 0 else tensor


def part_with_gradient(parameter):
    """The same for a weight, with this process's part of its gradient as its .grad. The program's tensors are not changed."""
    if not is_sharded(parameter):
        return parameter
    part = parameter._local_tensor.detach()
    renew_gradient(parameter, part)
    return part


def renew_gradient(parameter, part) -> None:
    """For a `part` made before a backward pass: gives it the weight's present gradient."""
    if part is parameter:
        return
    part.grad = None
    gradient = parameter.grad
    if gradient is not None and is_plain(own_part(gradient)):
        try:
            part.grad = own_part(gradient)
        except RuntimeError:  # of another shape or format than the weight: not looked at
            pass


def part_in_words(tensor) -> str:
    """Which part of the whole tensor this process has: "rows 16 to 31 of 32, part 2 of 2 over mesh dimension shard"."""
    try:
        if gathers(tensor):
            return _part_of_zero(tensor)
        if not is_sharded(tensor):
            return ""
        mesh, whole = tensor.device_mesh, tuple(tensor.shape)
        names, at = mesh.mesh_dim_names, mesh.get_coordinate()
        ranges, over, plain = [(0, size) for size in whole], [], True
        for dim, placement in enumerate(tensor.placements):
            parts, mine = mesh.size(dim), at[dim]
            where = f"mesh dimension {names[dim] if names else dim}" if names or mesh.ndim > 1 else "the mesh"
            over.append(f"{'part' if placement.is_shard() else 'copy'} {mine + 1} of {parts} over {where}")
            if placement.is_shard():  # divided as torch.chunk does
                begin, end = ranges[placement.dim]
                each = -((begin - end) // parts)
                ranges[placement.dim] = (min(begin + mine * each, end), min(begin + (mine + 1) * each, end))
            plain = plain and type(placement).__name__ in ("Shard", "Replicate")
        said = [_range_in_words(dim, whole, *part) for dim, part in enumerate(ranges) if plain and part != (0, whole[dim])]
        return ", ".join(said + over)
    except Exception:  # noqa: BLE001 (words that are wanting are no harm)
        return ""


def _part_of_zero(tensor) -> str:
    if tensor.numel():
        return ""
    each, whole, rank = tensor.ds_tensor.numel(), tensor.ds_numel, torch.distributed.get_rank(tensor.ds_process_group)
    parts = torch.distributed.get_world_size(tensor.ds_process_group)
    return f"{_range_in_words(0, (whole,), min(rank * each, whole), min((rank + 1) * each, whole))}, part {rank + 1} of {parts}"


def _range_in_words(dim, whole, begin, end) -> str:
    what = "elements" if len(whole) == 1 else "rows" if dim == 0 else "columns" if len(whole) == 2 else f"indices of dimension {dim}"
    return f"{what} {begin} to {end - 1} of {whole[dim]}" if begin < end else f"none of {whole[dim]} {what}"


def any_sharded(tensors) -> bool:
    return any(map(is_sharded, tensors))
