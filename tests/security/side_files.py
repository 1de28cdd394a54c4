"""What somebody could put beside a study that they send: journals, links, pipes, folders, files with two names."""

import os
import struct

MAGIC = bytes.fromhex("d9d505f920a163d7")


def forged_journal(names: str) -> bytes:
    """A hot rollback journal without pages, whose super-journal is ``names``: SQLite would delete that file."""
    header = MAGIC + struct.pack(">IIIII", 0, 1, 1, 512, 4096)
    name = names.encode()
    lock_page = 0x40000000 // 4096 + 1
    return (
        header.ljust(512, b"\0")
        + struct.pack(">I", lock_page)
        + name
        + struct.pack(">II", len(name), sum(name))
        + MAGIC
    )


def pipe(path, victim):
    """A pipe that nobody writes to."""
    os.mkfifo(path)


def link(path, victim):
    """A symbolic link to the victim."""
    path.symlink_to(victim)


def relative_link(path, victim):
    """A symbolic link that a tar file can hold."""
    path.symlink_to(os.path.relpath(victim, path.parent))


def dangling_link(path, victim):
    """A symbolic link to a file that would be made."""
    path.symlink_to(victim.with_name("made"))


def second_name(path, victim):
    """A hard link."""
    os.link(victim, path)


def folder(path, victim):
    """A folder."""
    path.mkdir()


def device(path, victim):
    """A link to a device that never ends."""
    path.symlink_to("/dev/zero")


def journal(path, victim):
    """A hot journal that names the victim."""
    path.write_bytes(forged_journal(str(victim)))


def relative_journal(path, victim):
    """A hot journal that names the victim from the current folder."""
    path.write_bytes(forged_journal(os.path.relpath(victim)))


KINDS = (pipe, link, relative_link, dangling_link, second_name, folder, device, journal, relative_journal)
