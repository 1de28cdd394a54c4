"""How durations and long messages are said to people."""


def duration(seconds: float) -> str:
    """``3.2 s``, ``42 s``, ``3 min 20 s``, ``5 h 7 min``, ``2 d 3 h``."""
    whole = round(seconds)
    for size, unit, inner_size, inner in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // inner_size
            return f"{whole // size} {unit}" + (f" {rest} {inner}" if rest else "")
    return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"


def first_line(message: object, most: int = 300) -> str:
    """The first line that is not blank, without what is beyond ``most`` characters."""
    return next((line.strip() for line in str(message).splitlines() if line.strip()), "")[:most]
