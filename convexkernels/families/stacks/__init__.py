"""Gram matrices of many candidates: packed, streamed or by their features, and how they are filled."""
