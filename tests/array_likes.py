"""Arrays of other libraries, as far as they are looked at: a tensor on a GPU, and one that offers DLPack alone."""

from typing import Any

import numpy as np


class Tensor:
    """What a tensor on a GPU offers: arrays only once it is detached and copied."""

    def __init__(self, values: Any, *, on_host: bool = False) -> None:
        self.values, self.on_host = np.asarray(values), on_host

    def detach(self) -> "Tensor":
        return self

    def cpu(self) -> "Tensor":
        return Tensor(self.values, on_host=True)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if not self.on_host:
            raise TypeError("can't convert a CUDA tensor")
        return self.values

    def __len__(self) -> int:
        return len(self.values)


class Capsule:
    """What offers `__dlpack__` alone."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.values.__dlpack_device__()

    def __len__(self) -> int:
        return len(self.values)
