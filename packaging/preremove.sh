#!/bin/sh
# Before removal, not before an upgrade. dpkg passes "remove", rpm the number of versions that remain.
set -e
case "$1" in
    remove | 0)
        if [ -d /run/systemd/system ]; then
            systemctl disable --now kindling.service kindling.socket
        fi
        ;;
esac
