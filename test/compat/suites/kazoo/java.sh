#!/bin/sh
flags=
for a; do
  case $a in -D*) flags="$flags $a" ;; esac
done
SERVER_JVMFLAGS=$flags exec "$SUITES_BIN/zkServer.sh" start-foreground "$a"
