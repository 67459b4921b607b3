# SPDX-License-Identifier: GPL-2.0
"""Users without privileges."""
import os

USER, OTHER = 1234, 4321


def as_user(uid, function):
    """Runs it in a child with that uid and no capabilities; True if it returned."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            function()
            status = 0
        except BaseException as error:  # nothing may get out of the child
            os.write(2, f"uid {uid}: {error!r}\n".encode())
        os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
