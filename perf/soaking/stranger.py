"""Who has no business with a job and probes its listeners all the same, until a SIGTERM: perf/soak runs it in a node.

  stranger.py TABLE SEED SPARED_FIRST SPARED_LAST

TABLE is the /proc/PID/net/tcp of the node whose listeners are meant: those that are bound to an address of a network,
but for the ports that are to be spared. It opens the table as the one who started it, and then is user 65534.
"""
import os
import random
import signal
import socket
import struct
import sys
import time

NOBODY = 65534
LISTENING = "0A"
OPEN_AT_ONCE = 400


def listeners(table, spared):
    """(address, port) of each."""
    table.seek(0)
    found = []
    for line in table.read().splitlines()[1:]:
        local, state = line.split()[1], line.split()[3]
        address, port = local.split(":")
        number = int(port, 16)
        if state == LISTENING and number not in spared and address != "00000000" and not address.endswith("7F"):
            found.append((socket.inet_ntoa(struct.pack("=I", int(address, 16))), number))
    return found


def connected(where):
    made = socket.socket()
    made.setblocking(False)
    made.connect_ex(where)
    return made


def silence(_, where):
    return connected(where)


def reset(_, where):
    made = connected(where)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    made.close()


def said(where, text):
    """Waits for the connection, a moment; says it as far as it is taken."""
    made = socket.socket()
    made.settimeout(0.05)
    try:
        made.connect(where)
        made.sendall(text)
    except OSError:
        pass
    made.setblocking(False)
    return made


def guess(chance, where):
    return said(where, chance.randbytes(chance.choice((1, 4, 8, 15, 16, 17, 24, 32, 40, 48, 64, 65, 128, 4096))))


def greeting(chance, where):
    """What a rank might say first: a token, who it is."""
    return said(where, chance.randbytes(8) + struct.pack("=ii", chance.choice((0, 1, 2, -1, 1 << 30)), 0))


def nothing_but_zeros(_, where):
    return said(where, bytes(1 << 16))


def half_a_handshake(chance, where):
    """Answers what it is asked with as many bytes, and stops in the middle of the next."""
    made = socket.socket()
    made.settimeout(0.05)
    try:
        made.connect(where)
        made.sendall(chance.randbytes(16))
        made.sendall(chance.randbytes(len(made.recv(256)) or 1))
        made.sendall(chance.randbytes(7))
    except OSError:
        pass
    made.setblocking(False)
    return made


WAYS = (silence, reset, guess, greeting, nothing_but_zeros, half_a_handshake)


def main():
    path, seed, first, last = sys.argv[1:]
    chance = random.Random(seed)
    spared = range(int(first), int(last) + 1)
    over = []
    signal.signal(signal.SIGTERM, lambda *_: over.append(True))
    held, made = [], 0
    with open(path, encoding="ascii") as table:
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        while not over:
            for where in listeners(table, spared):
                way = chance.choice(WAYS)
                for _ in range(chance.choice((1, 1, 1, 50)) if way in (silence, reset) else 1):
                    try:
                        connection = way(chance, where)
                    except OSError:  # too many files of our own
                        held.clear()
                        continue
                    made += 1
                    if connection is not None:
                        held.append(connection)
                del held[:-OPEN_AT_ONCE]
            time.sleep(0.02)
    print(f"stranger: {made} connections")


if __name__ == "__main__":
    main()
