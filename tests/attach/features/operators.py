"""Operators with something odd about them: shapes that depend on values, libraries of their own, random numbers."""

import torch
from registry import feature, param


@feature("index_put_ with accumulation, scatter_add, index_add")
def scatter():
    w = param(6, 4)

    def step(i):
        index = torch.randint(0, 6, (10,))
        out = torch.zeros(6, 4)
        out.index_put_((index,), w[torch.randint(0, 6, (10,))], accumulate=True)
        out = out.scatter_add(0, index.view(-1, 1).expand(10, 4), torch.randn(10, 4) @ w.t() @ w)
        out = out.index_add(0, index, torch.randn(10, 4)).scatter_reduce(0, torch.zeros(2, 4, dtype=torch.long), w[:2], "amax")
        out = out.clone()
        out[torch.tensor([0, 0, 1]), torch.tensor([1, 1, 2])] = 3.0
        return out.square().mean()
    return [w], step


@feature("cumsum, sort, topk, median")
def ordered():
    w = param(6, 4)

    def step(i):
        y = torch.randn(8, 6) @ w
        return (y.cumsum(0).logcumsumexp(1).sort(0).values[2:5].sum() + y.topk(2).values.sum() + y.median(1).values.mean()
                + y.cumprod(1).mean() + y.kthvalue(2, 1).values.sum() + y.argsort(1).float().mean())
    return [w], step


@feature("unique, nonzero, item, boolean indexing")
def data_dependent():
    w = param(6, 4)

    def step(i):
        y = torch.randn(8, 6) @ w
        values, inverse = torch.unique(torch.randint(0, 5, (8,)), return_inverse=True)
        rows = (y[:, 0] > 0).nonzero().view(-1)
        picked = y[y > 0.1]
        count = int((y > 0).sum()) + len(values)
        parts = y.split([3, 5])
        return (y[rows].sum() + picked.square().sum() / max(count, 1) + values.float().mean() + parts[1].mean()
                + y.masked_select(y < 0).sum() + torch.bincount(inverse).float().std())
    return [w], step


@feature("FFT")
def fft():
    w = param(6, 8)

    def step(i):
        y = torch.randn(4, 6) @ w
        return (torch.fft.fft(y).abs().mean() + torch.fft.irfft(torch.fft.rfft2(y), n=8).square().mean()
                + torch.stft(y.flatten(), 8, window=torch.hann_window(8), return_complex=True).abs().sum())
    return [w], step


@feature("linear algebra")
def linalg():
    w = param(5, 5, dtype=torch.float64)

    def step(i):
        spd = w @ w.t() + 2 * torch.eye(5, dtype=torch.float64)
        q, r = torch.linalg.qr(spd)
        return (torch.linalg.cholesky(spd).sum() + torch.linalg.solve(spd, w).sum() + torch.linalg.svdvals(spd).sum()
                + torch.linalg.eigvalsh(spd).square().sum() + torch.linalg.inv(spd).diagonal().sum() + q.abs().sum()
                + torch.logdet(spd) + torch.linalg.matrix_exp(w * 0.1).sum() + torch.linalg.lstsq(spd, w).solution.mean()
                + torch.linalg.lu_factor(spd).LU.mean() + torch.linalg.matrix_norm(w, "nuc"))
    return [w], step


@feature("several threads inside an operator")
def threads_inside():
    w = param(64, 64, scale=0.1)

    def step(i):
        torch.set_num_threads(2)
        x = torch.randn(512, 64)
        return (x @ w).relu().sum(0).square().mean() + torch.nn.functional.scaled_dot_product_attention(
            (x @ w).view(1, 4, 128, 64), x.view(1, 4, 128, 64), x.view(1, 4, 128, 64)).mean()
    return [w], step


@feature("random numbers, explicit generators")
def generators():
    w = param(6, 4)
    mine = torch.Generator().manual_seed(5)

    def step(i):
        y = torch.randn(8, 6, generator=mine) @ w
        noise = torch.empty(8, 4).uniform_(generator=mine).bernoulli_(0.3, generator=mine)
        order = torch.randperm(8, generator=mine)
        picks = torch.multinomial(torch.rand(4), 2)
        state = torch.get_rng_state()
        a = torch.rand(4)
        torch.set_rng_state(state)
        return (y[order] * noise).mean() + torch.nn.functional.dropout(y, 0.4).sum() + picks.float().sum() + (
            torch.rand(4) - a).sum() + torch.normal(y.detach(), 1.0).mean() + torch.poisson(y.detach().abs()).mean()
    return [w], step


@feature("einsum, conv, pooling, interpolate, grid_sample")
def images():
    w, k = param(3, 4), param(4, 2, 3, 3)

    def step(i):
        f = torch.nn.functional
        x = f.conv2d(torch.randn(2, 2, 8, 8), k, padding=1)
        x = f.interpolate(f.max_pool2d(x, 2), scale_factor=2, mode="bilinear", align_corners=False)
        x = f.conv_transpose2d(x, k) + f.adaptive_avg_pool2d(x, 1).mean()
        grid = torch.rand(2, 4, 4, 2) * 2 - 1
        return (f.grid_sample(x, grid, align_corners=True).square().mean() + torch.einsum("ij,kj,k->i", w, w, w[:, 0]).sum()
                + f.pixel_shuffle(torch.randn(1, 4, 3, 3) * w[0].view(1, 4, 1, 1), 2).mean() + f.unfold(x, 2).mean())
    return [w, k], step


@feature("packed sequences (LSTM, GRU)")
def packed():
    lstm, gru = torch.nn.LSTM(3, 5, 2, dropout=0.1, bidirectional=True), torch.nn.GRU(10, 4, batch_first=False)

    def step(i):
        rows = [torch.randn(n, 3) for n in (6, 4, 3)]
        x = torch.nn.utils.rnn.pack_sequence(rows)
        y, _ = gru(lstm(x)[0])
        padded, lengths = torch.nn.utils.rnn.pad_packed_sequence(y)
        return padded.square().mean() * lengths.float().mean()
    return [*lstm.parameters(), *gru.parameters()], step


@feature("_foreach_ operators")
def foreach():
    ws = [param(3, 3), param(4), param(2, 2)]

    def step(i):
        with torch.no_grad():
            copies = torch._foreach_mul(ws, 0.5)
            torch._foreach_add_(copies, 1.0)
            torch._foreach_lerp_(copies, [w.detach() for w in ws], 0.25)
            norms = torch._foreach_norm(copies)
        return sum((w * c).square().sum() / n for w, c, n in zip(ws, copies, norms))
    return ws, step
