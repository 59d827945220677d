#!/bin/sh
# Runs before a removal, and does nothing before an upgrade. dpkg passes "remove"; rpm passes the number of remaining
# versions.
set -e
case "$1" in
    remove | 0)
        if [ -d /run/systemd/system ]; then
            systemctl disable --now kindling.service kindling.socket
        fi
        ;;
esac
