"""Does each set and wait stand on a pipe that is ordered with the access beside it?

What
----
A set or wait acts on its own pipe only. It stands next to an access in the text, but the access runs on another pipe
of the core and no flag, lock or barrier orders the two. Putting it on the access's pipe repairs it.

Why it hurts
------------
The text reads as if it were right. A set on the wrong pipe is sent before the access is done; a wait on the wrong
pipe stalls a pipe that does nothing while the access goes ahead.

Bad
---

    kernel ready_on_another_pipe():
        READY = 0
        buffer tile in Vec

        section cube:
            move tile <- x @ FIX
            set_cross_core READY @ M  # FP207

        section vector:
            wait_cross_core READY @ V
            exp y <- tile @ V

Good
----

    kernel ready_on_the_writing_pipe():
        READY = 0
        buffer tile in Vec

        section cube:
            move tile <- x @ FIX
            set_cross_core READY @ FIX

        section vector:
            wait_cross_core READY @ V
            exp y <- tile @ V

Suppress
--------
If another mechanism orders the two pipes, write it down in the kernel (a flag or a mutex) rather than in a comment.
Otherwise: `# fencepost: ignore[207] reason`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="207",
    name="sync-on-wrong-pipe",
    title="set or wait on a pipe that does not carry the access",
    row=Row.EVENT_POSITION,
    severity=Severity.ERROR,
    sentence="{sync} is not ordered with {access} (slot {slot} of {buffer}): it belongs on pipe {needed}, not {pipe}",
)
