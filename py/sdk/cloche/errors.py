"""Every exception of this package. `ClocheError` is the base of all; a refusal of the server is an
`APIError`, with a class of its own for each code of docs/errors.md."""

from cloche._codes import *  # noqa: F401,F403
from cloche._errors import *  # noqa: F401,F403
