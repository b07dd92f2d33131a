"""A page that stands in for one that is still being made, where pages are served."""

from leaderboards.report.rendering import render


def render_waiting(trouble: str) -> str:
    """Make the page that stands in for another one.

    Args:
        trouble: why that cannot be made, if so.
    """
    return render("waiting.html.j2", title="Being made", trouble=trouble, links=[], parcels={})
