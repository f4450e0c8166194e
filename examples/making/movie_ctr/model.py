"""DeepFM (Guo et al., 2017) in PyTorch: first order, pairs, and a tower over the same embeddings."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["DeepFm"]


class DeepFm(nn.Module):
    """One table for all fields; an id that its field does not know is read as 0, `unknown`."""

    def __init__(self, sizes: list[int], n_genres: int, n_history: int, dim: int = 8) -> None:
        super().__init__()
        self.register_buffer("sizes", torch.tensor(sizes))
        self.register_buffer("starts", torch.tensor([sum(sizes[:i]) for i in range(len(sizes))]))
        self.factors = nn.Embedding(sum(sizes), dim)
        self.bias = nn.Embedding(sum(sizes), 1)
        self.genre_factors = nn.Linear(n_genres, dim, bias=False)
        self.linear = nn.Linear(n_genres + n_history, 1)
        self.tower = nn.Sequential(
            nn.Linear(dim * (len(sizes) + 1) + n_history, 64),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Linear(64, 32),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Linear(32, 1),
        )
        nn.init.normal_(self.factors.weight, std=0.01)
        nn.init.normal_(self.bias.weight, std=0.01)

    def forward(self, ids: torch.Tensor, genres: torch.Tensor, history: torch.Tensor) -> torch.Tensor:
        """The chance of a liking, `[batch, 1]`."""
        return torch.sigmoid(self.logit(ids, genres, history))

    def logit(self, ids: torch.Tensor, genres: torch.Tensor, history: torch.Tensor) -> torch.Tensor:
        """The same before the sigmoid."""
        known = (ids >= 0) & (ids < self.sizes)
        rows = torch.where(known, ids, 0) + self.starts
        genre = self.genre_factors(genres / genres.sum(1, keepdim=True).clamp(min=1)).unsqueeze(1)
        factors = torch.cat([self.factors(rows), genre], 1)
        pairs = 0.5 * (factors.sum(1).square() - factors.square().sum(1)).sum(1, keepdim=True)
        first = self.bias(rows).sum(1) + self.linear(torch.cat([genres, history], 1))
        return first + pairs + self.tower(torch.cat([factors.flatten(1), history], 1))
