"""What the server sends, as objects: each holds the JSON as it came (`raw`) and reads from it, so
that nothing is lost that a newer server adds."""

from __future__ import annotations

from typing import Any, Dict, Generic, List, Mapping, Optional, Type, TypeVar, Union, cast, overload

from cloche._errors import BadReply

T = TypeVar("T")
R = TypeVar("R", bound="Record")
SHOWN = 60  # characters of a value in a repr


class Record:
    """A JSON object of the server."""

    __slots__ = ("raw",)

    def __init__(self, raw: Mapping[str, Any]) -> None:
        if not isinstance(raw, Mapping):
            raise BadReply(f"the server sent something else than a {type(self).__name__}")
        self.raw: Dict[str, Any] = dict(raw)

    def __repr__(self) -> str:
        kinds = reversed(type(self).__mro__)
        names = [n for k in kinds for n, v in vars(k).items() if isinstance(v, (Field, One, Many))]
        shown = ", ".join(f"{n}={_short(self.raw[n])}" for n in names if self.raw.get(n))
        return f"{type(self).__name__}({shown})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and cast(Record, other).raw == self.raw

    __hash__ = None  # type: ignore[assignment]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."


class Field(Generic[T]):
    """A member, or the default where it is missing or null."""

    def __init__(self, default: T) -> None:
        self.default = default
        self.name = ""

    def __set_name__(self, owner: Type[Record], name: str) -> None:
        self.name = name

    @overload
    def __get__(self, record: None, owner: Type[Record]) -> Field[T]:
        ...

    @overload
    def __get__(self, record: Record, owner: Type[Record]) -> T:
        ...

    def __get__(self, record: Optional[Record], owner: Type[Record]) -> Union[T, Field[T]]:
        if record is None:
            return self
        value = record.raw.get(self.name)
        return self.default if value is None else cast(T, value)


class One(Generic[R]):
    """A member that is an object, or null."""

    def __init__(self, kind: Type[R]) -> None:
        self.kind = kind
        self.name = ""

    def __set_name__(self, owner: Type[Record], name: str) -> None:
        self.name = name

    @overload
    def __get__(self, record: None, owner: Type[Record]) -> One[R]:
        ...

    @overload
    def __get__(self, record: Record, owner: Type[Record]) -> Optional[R]:
        ...

    def __get__(self, record: Optional[Record], owner: Type[Record]) -> Union[None, R, One[R]]:
        if record is None:
            return self
        value = record.raw.get(self.name)
        return None if value is None else self.kind(value)


class Many(Generic[R]):
    """A member that is a list of objects."""

    def __init__(self, kind: Type[R]) -> None:
        self.kind = kind
        self.name = ""

    def __set_name__(self, owner: Type[Record], name: str) -> None:
        self.name = name

    @overload
    def __get__(self, record: None, owner: Type[Record]) -> Many[R]:
        ...

    @overload
    def __get__(self, record: Record, owner: Type[Record]) -> List[R]:
        ...

    def __get__(self, record: Optional[Record], owner: Type[Record]) -> Union[List[R], Many[R]]:
        if record is None:
            return self
        return [self.kind(item) for item in listed(record.raw.get(self.name))]


def listed(value: Any) -> List[Any]:
    """A list of the server's; null is an empty one."""
    if value is not None and not isinstance(value, list):
        raise BadReply("the server sent something else than a list")
    return value or []
