import dataclasses
import typing
from typing import Generic, NamedTuple, Protocol, TypeVar, get_type_hints

T = TypeVar("T")


@dataclasses.dataclass(order=True, frozen=True, slots=True)
class D:
    a: int
    b: list = dataclasses.field(default_factory=list, compare=False)


class N(NamedTuple):
    x: int
    y: str = "d"


class Proto(Protocol):
    def f(self) -> int: ...


class G(Generic[T]):
    def f(self) -> "D": ...


print(D(1), D(1) < D(2), dataclasses.asdict(D(3)), N(1), get_type_hints(G.f))
try:
    D(1).a = 2
except dataclasses.FrozenInstanceError as e:
    print(type(e).__name__, e)
print(G[int], typing.Optional[int], D.__slots__)
match D(5):
    case D(a=5, b=[]):
        print("matched")
