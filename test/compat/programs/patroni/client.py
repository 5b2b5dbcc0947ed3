"""client.py is the client of patroni.go: client.py write|read PORTS. It reports and judges nothing."""

import select
import sys

import psycopg2


def connect(ports, want):
    return psycopg2.connect(host=",".join(["127.0.0.1"] * len(ports)), port=",".join(ports), user="postgres",
                            dbname="postgres", connect_timeout=2, target_session_attrs=want)


def ended():
    return select.select([sys.stdin], [], [], 0.01)[0]


def write(ports):
    """Inserts numbers, each until it is committed, and prints those."""
    connection, number = None, 0
    while not ended():
        try:
            if connection is None:
                connection = connect(ports, "read-write")
                connection.cursor().execute("CREATE TABLE IF NOT EXISTS numbers (number text PRIMARY KEY)")
            # A commit whose reply was lost is there already.
            connection.cursor().execute("INSERT INTO numbers VALUES (%s) ON CONFLICT DO NOTHING", (str(number),))
            connection.commit()
        except psycopg2.Error as e:
            print("retry", number, str(e).split("\n")[0], flush=True)
            if connection is not None:
                connection.close()
            connection = None
            continue
        # With this warning only the primary has the row, and synchronous mode promises nothing.
        alone = [n for n in connection.notices if "canceling" in n]
        connection.notices.clear()
        print("alone" if alone else "acked", number, flush=True)
        number += 1


def read(ports):
    with connect(ports, "any") as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT number FROM numbers")
        for (number,) in cursor:
            print("got", number)


{"write": write, "read": read}[sys.argv[1]](sys.argv[2].split(","))
