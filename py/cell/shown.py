"""What a program shows (RUN_SHOWN): the value of its last expression, what it gives to display(),
and matplotlib's figures, in the forms that live cells have them in, without IPython. And, when
somebody talks to it (RUN_ASKS), that it waits for them.

C calls these functions, or the program does. Code of the objects runs below them: what it raises is
told on stderr, and only what would end a program, an interrupt or sys.exit(), ends this one.
"""

from __future__ import annotations

import builtins
import io
import os
import sys
import threading
import traceback
from typing import Any, Dict, List, Optional, Tuple

import cloche_zygote
from cell import rehearsal
from cell.bundles import bundle, event_text

# What IPython's formatters ask an object for, and what they make of it.
METHODS = (
    ("_repr_html_", "text/html"),
    ("_repr_markdown_", "text/markdown"),
    ("_repr_svg_", "image/svg+xml"),
    ("_repr_png_", "image/png"),
    ("_repr_pdf_", "application/pdf"),
    ("_repr_jpeg_", "image/jpeg"),
    ("_repr_latex_", "text/latex"),
    ("_repr_json_", "application/json"),
    ("_repr_javascript_", "application/javascript"),
)
CANARY = "_ipython_canary_method_should_not_exist_"  # only what answers to every name has it
PLAIN = {bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset}
FORMATS = ("png", "retina", "jpeg", "svg", "pdf")  # RUN_PNG and its followers
PICTURES = {"jpeg": "image/jpeg", "svg": "image/svg+xml", "pdf": "application/pdf"}

Forms = Tuple[Dict[str, Any], Dict[str, Any]]  # data and metadata, by MIME type

_send = cloche_zygote.show
_input = builtins.input
_talks = 0  # the process that somebody answers
_lock = threading.RLock()  # one thread speaks, until it was heard
_formats: List[str] = ["png"]  # of figures


def choose_formats(bits: int) -> None:
    _formats[:] = [name for place, name in enumerate(FORMATS) if bits >> place & 1]


def _below(exc: BaseException) -> Any:
    """The traceback of an exception without our own part of it."""
    tb = exc.__traceback__
    while tb is not None and tb.tb_frame.f_code.co_filename == __file__:
        tb = tb.tb_next
    return tb


def _complain(exc: Exception) -> None:
    """An object's own code has failed: that is no end of the program."""
    try:
        traceback.print_exception(type(exc), exc, _below(exc))
    except Exception:
        pass


def _tell(kind: str, forms: Forms) -> None:
    """Nothing where no form can be told."""
    data, metadata = bundle(forms[0]), bundle(forms[1])
    if not data:
        return
    _say({"ev": kind, "data": data, "metadata": metadata})


def _say(event: Dict[str, Any]) -> None:
    text = event_text(event)
    for name in ("stdout", "stderr"):  # what was printed comes first
        try:
            getattr(sys, name).flush()
        except Exception:
            pass
    with _lock:
        _send(text)


# ---- forms ----


def _ask(value: Any, name: str, **how: Any) -> Any:
    """What that method of it gives; None where it has none, or fails."""
    try:
        method = getattr(value, name, None)
        return method(**how) if callable(method) else None
    except NotImplementedError:
        return None
    except Exception as exc:
        _complain(exc)
        return None


def _add(forms: Forms, mime: str, found: Any) -> None:
    """What a method gave: data, or data and its metadata."""
    if isinstance(found, tuple) and len(found) == 2:
        found, about = found
        if about:
            forms[1][mime] = about
    if found is not None:
        forms[0].setdefault(mime, found)


def _is_figure(value: Any) -> bool:
    module = sys.modules.get("matplotlib.figure")
    kind = getattr(module, "Figure", None)
    return isinstance(kind, type) and isinstance(value, kind)


def _add_rich(forms: Forms, value: Any) -> None:
    if _is_figure(value):
        for name in _formats if value.axes or value.lines else ():
            _draw(forms, value, name)
        return
    if type(value) in PLAIN or isinstance(value, type) or hasattr(value, CANARY):
        return
    found = _ask(value, "_repr_mimebundle_", include=None, exclude=None)
    if isinstance(found, tuple) and len(found) == 2:
        found, about = found
        forms[1].update(about or {})
    forms[0].update(found or {})
    for name, mime in METHODS:
        if mime not in forms[0]:
            _add(forms, mime, _ask(value, name))


def _add_text(forms: Forms, value: Any) -> None:
    if "text/plain" not in forms[0]:
        forms[0]["text/plain"] = repr(value)


def _forms(value: Any) -> Forms:
    forms: Forms = ({}, {})
    for add in (_add_rich, _add_text):
        try:
            add(forms, value)
        except Exception as exc:
            _complain(exc)
    return forms


# ---- figures ----


def _draw(forms: Forms, figure: Any, name: str) -> None:
    """As IPython's inline figures are drawn."""
    to = io.BytesIO()
    retina = name == "retina"
    figure.savefig(
        to,
        format="png" if retina else name,
        dpi=figure.dpi * (2 if retina else 1),
        facecolor=figure.get_facecolor(),
        edgecolor=figure.get_edgecolor(),
        bbox_inches="tight",
    )
    data = to.getvalue()
    about = None
    if retina:  # the size is in a PNG's header
        width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
        about = {"width": width // 2, "height": height // 2}
    shown = data.decode("utf-8") if name == "svg" else data
    _add(forms, PICTURES.get(name, "image/png"), (shown, about))


def show_figures(*args: Any, **kwargs: Any) -> None:
    """plt.show(): all figures that are open."""
    pyplot: Any = sys.modules["matplotlib.pyplot"]
    try:
        for number in pyplot.get_fignums():
            _tell("display", _forms(pyplot.figure(number)))
    finally:
        pyplot.close("all")


# ---- what is called ----


def _guarded(function: Any, *args: Any) -> Optional[BaseException]:
    """What ends the program, if anything does."""
    try:
        function(*args)
    except Exception as exc:
        _complain(exc)
    except BaseException as exc:
        return exc.with_traceback(_below(exc))
    return None


def _show_value(value: Any) -> None:
    _tell("result", _forms(value))


def show_value(value: Any) -> Optional[BaseException]:
    """Of a last expression, and not None."""
    return _guarded(_show_value, value)


def end_figures() -> Optional[BaseException]:
    """Those that the program left open."""
    return _guarded(show_figures)


def display(*values: Any, raw: bool = False, metadata: Any = None) -> None:
    """Shows these values, in all their forms; with raw=True each is a dict of data by MIME type."""
    for value in values:
        data, about = (dict(value), {}) if raw else _forms(value)
        _tell("display", (data, {**about, **(metadata or {})}))


# ---- what is asked ----


def _wait_for(*prompt: Any, password: bool = False) -> str:
    """Whoever talks to the program hears that it waits; what they answer comes as its stdin."""
    if sys.stdin is not sys.__stdin__ or os.getpid() != _talks:
        return _input(*prompt)
    _say({"ev": "input", "prompt": "".join(map(str, prompt)), "password": password})
    return _input()


def input(*prompt: Any) -> str:
    """Read a string from standard input.  The trailing newline is stripped."""
    return _wait_for(*prompt)


def getpass(prompt: Any = "Password: ", stream: Any = None) -> str:
    """Prompt for a password, with echo turned off."""
    return _wait_for(prompt, password=True)


def talk() -> None:
    """Somebody answers: input() and getpass() tell that they wait."""
    global _talks
    import getpass as module

    _talks = os.getpid()
    setattr(builtins, "input", input)
    setattr(module, "getpass", getpass)


def _rehearse() -> None:
    """No program's first value is the first of its kind: see rehearsal.py."""
    for value in (1, [1], Exception()) * rehearsal.TIMES:
        data, metadata = _forms(value)
        event_text({"ev": "result", "data": bundle(data), "metadata": bundle(metadata)})


def parts() -> Dict[str, Any]:
    """In the zygote: what C calls and looks at."""
    _rehearse()
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    helpers: Any = sys.modules.get("matplotlib._pylab_helpers")
    figures = getattr(getattr(helpers, "Gcf", None), "figs", None)
    return {
        "display": display,
        "show_value": show_value,
        "show_figures": show_figures,
        "end_figures": end_figures,
        "choose_formats": choose_formats,
        "talk": talk,
        "pyplot": pyplot,
        "figures": figures if pyplot and isinstance(figures, dict) else None,
    }
