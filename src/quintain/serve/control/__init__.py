"""The control plane: environments and episodes as a JSON API under `/v1`, for trainers and operators."""
