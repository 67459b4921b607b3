# SPDX-License-Identifier: GPL-2.0
"""Loading and unloading ored.ko by the system calls themselves."""
import ctypes
import os
import subprocess

from . import raw

NAME = "ored"
MODPROBE = "/usr/sbin/modprobe"
PARAMETER = "/sys/module/ored/parameters/family"
FINIT_MODULE, DELETE_MODULE = 313, 176	# x86-64

libc = raw.libc


def system_call(number, *arguments):
    return raw.checked(libc.syscall(ctypes.c_long(number), *arguments))


def loaded():
    return os.path.exists("/sys/module/" + NAME)


def references():
    """References to the module: some for each socket, 0 if it isn't loaded."""
    with open("/proc/modules") as file:
        for line in file:
            name, _, count = line.split()[:3]
            if name == NAME:
                return int(count)
    return 0


def modprobe():
    """Loads it, and what it depends on, where they aren't yet."""
    subprocess.run([MODPROBE, NAME], check=True)


def load(options=""):
    """Loads the file that modprobe() takes; that must have run once before."""
    path = f"/lib/modules/{os.uname().release}/updates/{NAME}.ko"
    with open(path, "rb") as file:
        system_call(FINIT_MODULE, ctypes.c_int(file.fileno()),
                    options.encode(), ctypes.c_int(0))


def unload():
    """BlockingIOError while it is in use."""
    system_call(DELETE_MODULE, NAME.encode(), ctypes.c_int(os.O_NONBLOCK))
